// Sets of a machine's GPUs by what their rings carry: only those that may be among the fastest are rated.
#include "topoplace/rated_sets.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/index.hpp"

namespace topoplace::collective {
namespace {

constexpr std::uint64_t kMostListed = 4096;
constexpr std::uint64_t kVeryMany = std::uint64_t{1} << 62;
constexpr double kTie = 0.1, kRounding = 1e-9;

// The least bandwidth in the step of this one; steps are 10 % wide, as the rates of channels are quantised.
double least_tied(double gb_per_s) {
    if (gb_per_s <= 0.0) return 0.0;
    const double step = std::log1p(kTie);
    return std::exp((std::floor(std::log(gb_per_s) / step + kRounding) - kRounding) * step);
}

}  // namespace

std::uint64_t num_sets(std::size_t gpus, std::size_t size) {
    if (size > gpus) return 0;
    std::uint64_t found = 1;
    for (std::size_t i = 1; i <= std::min(size, gpus - size); ++i) {
        if (found > kVeryMany / gpus) return kVeryMany;
        found = found * (gpus - std::min(size, gpus - size) + i) / i;
    }
    return found;
}

std::vector<GpuSet> sets_of(std::span<const std::int32_t> gpus, std::size_t size) {
    std::vector<GpuSet> found;
    if (size > gpus.size()) return found;
    found.reserve(static_cast<std::size_t>(num_sets(gpus.size(), size)));
    std::vector<std::size_t> place(size);
    std::iota(place.begin(), place.end(), std::size_t{0});
    while (true) {
        GpuSet set = 0;
        for (const std::size_t one : place) set |= GpuSet{1} << index(gpus[one]);
        found.push_back(set);
        std::size_t i = size;
        while (i > 0 && place[i - 1] == gpus.size() - size + i - 1) --i;
        if (i == 0) return found;
        ++place[i - 1];
        for (; i < size; ++i) place[i] = place[i - 1] + 1;
    }
}

RatedSets::RatedSets(const RatedSetsParams& params)
    : rates_(params.rates),
      num_gpus_(params.rates->num_terminals()),
      are_alike_(params.are_alike),
      to_gpus_(params.to_gpus.begin(), params.to_gpus.end()),
      to_others_(params.to_others.begin(), params.to_others.end()) {}

double RatedSets::gb_per_s(GpuSet set) const {
    const int size = std::popcount(set);
    if (size < 2) return 0.0;
    if (are_alike_ && size < 64) set = (GpuSet{1} << size) - 1;
    std::vector<std::int32_t> gpus;
    for (; set != 0; set &= set - 1) gpus.push_back(std::countr_zero(set));
    return rates_->gb_per_s(gpus);
}

double RatedSets::bound(GpuSet set) const {
    double least = std::numeric_limits<double>::infinity();
    for (GpuSet left = set; left != 0; left &= left - 1) {
        const auto gpu = static_cast<std::size_t>(std::countr_zero(left));
        double sum = to_others_[gpu];
        for (GpuSet rest = set; rest != 0; rest &= rest - 1) {
            sum += to_gpus_[gpu * index(num_gpus_) + static_cast<std::size_t>(std::countr_zero(rest))];
        }
        least = std::min(least, sum);
    }
    return least;
}

std::vector<double> RatedSets::leading(std::span<const GpuSet> sets, std::size_t count, double share,
                                       WorkMeter& meter) const {
    return rated_down(sets, count, [share](double slowest) { return slowest * share; }, meter);
}

std::vector<double> RatedSets::fastest(std::span<const GpuSet> sets, WorkMeter& meter) const {
    return rated_down(sets, 1, least_tied, meter);
}

std::vector<double> RatedSets::rated(std::span<const GpuSet> sets, WorkMeter& meter) const {
    std::vector<double> found(sets.size(), -1.0);
    for (std::size_t i = 0; i < sets.size() && !meter.look_at_clock(); ++i) found[i] = gb_per_s(sets[i]);
    return found;
}

template <class Floor>
std::vector<double> RatedSets::rated_down(std::span<const GpuSet> sets, std::size_t count,
                                          const Floor& floor_of, WorkMeter& meter) const {
    if (are_alike_ || sets.size() <= count) return rated(sets, meter);
    std::vector<double> found(sets.size(), -1.0);
    std::vector<double> bounds(sets.size());
    std::ranges::transform(sets, bounds.begin(), [this](GpuSet set) { return bound(set); });
    std::vector<std::size_t> order(sets.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return bounds[a] > bounds[b]; });
    std::vector<double> fastest(count, 0.0);  // a heap, the slowest first
    double floor = 0.0;
    for (const std::size_t i : order) {
        if (bounds[i] < floor || meter.look_at_clock()) break;
        const double rate = found[i] = gb_per_s(sets[i]);
        if (rate <= fastest.front()) continue;
        std::ranges::pop_heap(fastest, std::greater{});
        fastest.back() = rate;
        std::ranges::push_heap(fastest, std::greater{});
        floor = floor_of(fastest.front());
    }
    return found;
}

double RatedSets::left(GpuSet free, GpuSet taken) const {
    const std::vector<Listed>& listed = *listed_.get([this] { return std::optional(list()); });
    double sum = 0.0, best = 0.0;
    std::int32_t size = 0;
    for (const Listed& one : listed) {
        if (one.size != size) {
            sum += best;
            best = 0.0;
            size = one.size;
        }
        if ((one.set & ~(free & ~taken)) == 0) best = std::max(best, one.gb_per_s);
    }
    return std::nearbyint((sum + best) * 1e6) / 1e6;
}

std::vector<RatedSets::Listed> RatedSets::list() const {
    std::vector<std::int32_t> gpus(index(num_gpus_));
    std::iota(gpus.begin(), gpus.end(), 0);
    std::vector<Listed> found;
    std::uint64_t left = kMostListed;
    for (std::int32_t size = 2; size <= num_gpus_; ++size) {
        const std::uint64_t count = num_sets(gpus.size(), index(size));
        if (count > left) break;
        left -= count;
        for (const GpuSet set : sets_of(gpus, index(size))) found.push_back({set, gb_per_s(set), size});
    }
    return found;
}

}  // namespace topoplace::collective
