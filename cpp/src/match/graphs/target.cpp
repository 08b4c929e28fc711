// A target's weights in fixed point, its levels and its neighbourhoods, made once for all searches over it.
#include "match/graphs/target.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "graph/index.hpp"
#include "match/graphs/symmetry.hpp"

namespace topoplace::match {
namespace {

constexpr int kFixedPointBits = 40;
// Within these every weight has a fixed-point value of its own magnitude, and no sum overflows.
constexpr double kLightest = 1e-150;
constexpr double kHeaviest = 1e150;
constexpr double kWidestRange = 1e11;
// Beyond this the automorphism group costs more than it saves.
constexpr std::int32_t kMaxSymmetryVertices = 512;
// Beyond this, halving the target for a first mapping takes too long.
constexpr std::int32_t kMaxMappedVertices = 1024;

// Where to split the weights from `begin` to before `end`: at their widest gap, or in the middle of their
// range where no gap is wide, as among measured weights of one kind of link.
std::size_t split_of(std::span<const Fixed> distinct, std::size_t begin, std::size_t end) {
    std::size_t widest = begin + 1;
    for (std::size_t i = begin + 1; i < end; ++i) {
        if (distinct[i - 1] - distinct[i] > distinct[widest - 1] - distinct[widest]) widest = i;
    }
    const Fixed range = distinct[begin] - distinct[end - 1];
    if (4 * (distinct[widest - 1] - distinct[widest]) >= range) return widest;
    const auto half = std::lower_bound(distinct.begin() + static_cast<std::ptrdiff_t>(begin),
                                       distinct.begin() + static_cast<std::ptrdiff_t>(end),
                                       distinct[begin] - range / 2, std::greater<>());
    return std::max(static_cast<std::size_t>(half - distinct.begin()), begin + 1);
}

// The first weight of each level: the level of the widest range is split until there are enough.
std::vector<std::size_t> level_starts(std::span<const Fixed> distinct) {
    std::vector<std::size_t> starts;
    if (!distinct.empty()) starts.push_back(0);
    const auto end_of = [&](std::size_t i) {
        return i + 1 < starts.size() ? starts[i + 1] : distinct.size();
    };
    while (starts.size() < std::min(kMaxLevels, distinct.size())) {
        std::size_t widest = 0;
        Fixed range = -1;
        for (std::size_t i = 0; i < starts.size(); ++i) {
            const Fixed its = distinct[starts[i]] - distinct[end_of(i) - 1];
            if (its > range) widest = i;
            range = std::max(range, its);
        }
        const std::size_t split = split_of(distinct, starts[widest], end_of(widest));
        starts.insert(starts.begin() + static_cast<std::ptrdiff_t>(widest) + 1, split);
    }
    return starts;
}

}  // namespace

struct Target::Impl::Lazy {
    std::once_flag once;
    std::vector<Permutation> generators;
    std::once_flag distances_once;
    std::optional<mapping::Target> distances;
};

std::int32_t width_of(std::int32_t n) {
    return with_width(n, [](auto width) { return static_cast<std::int32_t>(width()); });
}

Target::Impl::Impl(const Graph& graph, WorkMeter& meter) : graph_(graph), lazy_(std::make_shared<Lazy>()) {
    const std::int32_t n = size();
    if (n > kMaxTargetVertices) {
        throw std::invalid_argument("the target has " + std::to_string(n) + " vertices; at most " +
                                    std::to_string(kMaxTargetVertices) + " can be searched");
    }
    set_scale(meter);
    set_weights(meter);
    levels_ = make_levels(distinct_, meter);
    edges_ = rows_of(1, 0, meter);
}

// The distinct weights are sorted whenever as many have come as there were, so that no sort takes long before
// the last.
void Target::Impl::set_weights(WorkMeter& meter) {
    constexpr std::size_t kSortedAtLeast = 1U << 12;
    const std::int32_t n = size();
    std::size_t sorted = 0;
    const auto sort = [&] {
        const auto fresh = distinct_.begin() + static_cast<std::ptrdiff_t>(sorted);
        std::sort(fresh, distinct_.end(), std::greater<>());
        distinct_.erase(std::unique(fresh, distinct_.end()), distinct_.end());
        std::inplace_merge(distinct_.begin(), fresh, distinct_.end(), std::greater<>());
        distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
        sorted = distinct_.size();
    };
    weight_.reserve(pair_of(n, 0));
    for (std::int32_t v = 0; v < n; ++v) {
        const auto row = graph_.neighbors(v);
        meter.prepare(8 * index(n) + 64 * row.size());
        weight_.resize(weight_.size() + index(n), 0);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const Fixed weight = comparable_ ? std::llround(graph_.weights(v)[i] * scale_) : 1;
            TOPOPLACE_ASSERT(weight > 0 && weight <= Fixed{1} << kFixedPointBits);
            weight_[pair_of(v, row[i])] = weight;
            distinct_.push_back(weight);
        }
        if (distinct_.size() - sorted > std::max(sorted, kSortedAtLeast)) sort();
    }
    sort();
}

void Target::Impl::set_scale(WorkMeter& meter) {
    for (std::int32_t v = 0; v < size(); ++v) {
        meter.prepare(8 * graph_.weights(v).size());
        for (const double weight : graph_.weights(v)) {
            heaviest_ = std::max(heaviest_, weight);
            lightest_ = std::min(lightest_, weight);
        }
    }
    if (heaviest_ == 0) return;
    comparable_ = lightest_ >= kLightest && heaviest_ <= kHeaviest && heaviest_ / lightest_ <= kWidestRange;
    TOPOPLACE_ASSERT(lightest_ > 0 && lightest_ <= heaviest_);
    if (comparable_) scale_ = std::ldexp(1.0, kFixedPointBits - 1 - std::ilogb(heaviest_));
}

void Target::Impl::check_comparable() const {
    if (comparable_) return;
    std::ostringstream message;
    message << "weights from " << lightest_ << " to " << heaviest_ << " cannot be compared exactly: between "
            << kLightest << " and " << kHeaviest << ", the heaviest may be " << kWidestRange
            << " times the lightest";
    throw std::invalid_argument(message.str());
}

Fixed Target::Impl::to_fixed(double weight) const {
    if (!comparable_ || weight <= lightest_) return 1;
    return weight > heaviest_ ? std::numeric_limits<Fixed>::max() : std::llround(weight * scale_);
}

Levels Target::Impl::make_levels(std::span<const Fixed> distinct, WorkMeter& meter) const {
    TOPOPLACE_ASSERT(std::is_sorted(distinct.begin(), distinct.end(), std::greater_equal<>()));
    Levels levels;
    std::vector<Fixed> lightest;
    const std::vector<std::size_t> starts = level_starts(distinct);
    const std::size_t count = starts.size();
    for (std::size_t i = 0; i < count; ++i) {
        levels.heaviest.push_back(distinct[starts[i]]);
        lightest.push_back(distinct[(i + 1 < count ? starts[i + 1] : distinct.size()) - 1]);
    }
    levels.level_of.assign(weight_.size(), 0);
    levels.at_least = BitRows(count * index(size()), width_of(size()));
    std::int64_t arcs = 0;
    for (std::int32_t u = 0; u < size(); ++u) {
        meter.prepare(16 * graph_.neighbors(u).size() * (1 + count));
        for (const std::int32_t v : graph_.neighbors(u)) {
            for (std::size_t i = count; i-- > 0 && weight(u, v) >= lightest[i];) {
                levels.level_of[pair_of(u, v)] = static_cast<std::uint8_t>(i);
                levels.at_least.set(pair_of(static_cast<std::int32_t>(i), u), v);
                arcs += i + 1 == count ? 1 : 0;
            }
        }
    }
    TOPOPLACE_ASSERT(std::is_sorted(levels.heaviest.rbegin(), levels.heaviest.rend()));
    levels.exact = count == distinct.size();
    levels.complete = arcs == std::int64_t{size()} * (size() - 1);
    return levels;
}

Levels Target::Impl::levels_from(Fixed min_weight, WorkMeter& meter) const {
    const auto end = std::upper_bound(distinct_.begin(), distinct_.end(), min_weight, std::greater<>());
    return make_levels(std::span(distinct_.begin(), end), meter);
}

BitRows Target::Impl::adjacency(double min_weight, WorkMeter& meter) const {
    return adjacency(1, min_weight, meter);
}

BitRows Target::Impl::adjacency(Fixed threshold, double min_weight, WorkMeter& meter) const {
    if (everything(threshold) && min_weight <= lightest_) return edges_;
    return rows_of(threshold, min_weight, meter);
}

BitRows Target::Impl::rows_of(Fixed threshold, double min_weight, WorkMeter& meter) const {
    BitRows rows(index(size()), width_of(size()));
    for (std::int32_t u = 0; u < size(); ++u) {
        const auto row = graph_.neighbors(u);
        meter.prepare(32 * row.size());
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (weight(u, row[i]) >= threshold && graph_.weights(u)[i] >= min_weight) {
                rows.set(index(u), row[i]);
            }
        }
    }
    return rows;
}

std::vector<std::int32_t> Target::Impl::orbits(const std::vector<bool>& free, WorkMeter& meter) const {
    const std::int32_t n = size();
    std::call_once(lazy_->once, [&] {
        if (n > kMaxSymmetryVertices) return;
        ColoredGraph colored{n, {}};
        for (const Fixed weight : weight_) {
            const auto found = std::lower_bound(distinct_.begin(), distinct_.end(), weight, std::greater<>());
            colored.color.push_back(static_cast<std::uint32_t>(found - distinct_.begin()));
        }
        std::vector<std::int32_t> ids(index(n));
        std::iota(ids.begin(), ids.end(), 0);
        lazy_->generators = stabilizer_chain(colored, ids, meter).generators;
    });
    std::vector<Permutation> keeping;
    for (const Permutation& image : lazy_->generators) {
        bool keeps = true;
        for (std::size_t v = 0; v < image.size(); ++v) keeps &= free[v] == free[index(image[v])];
        if (keeps) keeping.push_back(image);
    }
    TOPOPLACE_ASSERT(std::ssize(free) == n);
    return orbits_of(n, keeping);
}

const mapping::Target* Target::Impl::distances(WorkMeter& meter) const {
    const std::int32_t n = size();
    if (n > kMaxMappedVertices) return nullptr;
    std::call_once(lazy_->distances_once, [&] {
        std::vector<double> distance;
        for (std::int32_t u = 0; u < n; ++u) {
            meter.prepare(8 * index(n));
            for (std::int32_t v = 0; v < n; ++v) {
                const Fixed its = weight(u, v);
                const double lacking = heaviest_ - (its > 0 ? to_double(its) : -heaviest_);
                distance.push_back(u == v ? 0.0 : std::max(lacking, 0.0));
            }
        }
        lazy_->distances.emplace(n, std::move(distance));
    });
    return &*lazy_->distances;
}

Target::Target(const Graph& graph, const StopCondition& stop) {
    WorkMeter meter(stop);
    impl_ = std::make_shared<const Impl>(graph, meter);
}
std::int32_t Target::num_vertices() const { return impl_->size(); }

}  // namespace topoplace::match
