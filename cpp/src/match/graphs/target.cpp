// A target's weights in fixed point, its levels and its neighbourhoods, made once for all searches over it.
#include "match/graphs/target.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/index.hpp"
#include "match/graphs/symmetry.hpp"
#include "topoplace/made_once.hpp"

namespace topoplace::match {
namespace {

// Beyond this the automorphism group costs more than it saves.
constexpr std::int32_t kMaxSymmetryVertices = 512;
// Beyond this, halving the target for a first mapping takes too long.
constexpr std::int32_t kMaxMappedVertices = 1024;
// Twice as much is a distance that the mapping kernel takes.
constexpr double kHeaviestMapped = 1e99;

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
    MadeOnce<std::vector<Permutation>> generators;
    MadeOnce<mapping::Target> distances;
};

std::int32_t width_of(std::int32_t n) {
    return with_width(n, [](auto width) { return static_cast<std::int32_t>(width()); });
}

Target::Impl::Impl(const Graph& graph, const FixedPoint& points)
    : graph_(graph), points_(points), lazy_(std::make_shared<Lazy>()) {}

std::optional<Target::Impl> Target::Impl::make(const Graph& graph, WorkMeter& meter) {
    const auto points = FixedPoint::make(graph, meter);
    if (!points) return std::nullopt;
    Impl made(graph, *points);
    TOPOPLACE_ASSERT(made.size() <= kMaxDenseVertices);
    if (!made.set_weights(meter)) return std::nullopt;
    auto levels = made.make_levels(made.distinct_, meter);
    if (!levels) return std::nullopt;
    made.levels_ = std::move(*levels);
    auto edges = made.rows_of(1, 0, meter);
    if (!edges) return std::nullopt;
    made.edges_ = std::move(*edges);
    return made;
}

bool Target::Impl::set_weights(WorkMeter& meter) {
    const std::int32_t n = size();
    DistinctWeights distinct;
    weight_.reserve(pair_of(n, 0));
    for (std::int32_t v = 0; v < n; ++v) {
        const auto row = graph_.neighbors(v);
        if (meter.pass_time(8 * index(n) + 64 * row.size())) return false;
        weight_.resize(weight_.size() + index(n), 0);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const Fixed weight = points_.of(graph_.weights(v)[i]);
            weight_[pair_of(v, row[i])] = weight;
            if (v < row[i]) distinct.add(weight);
        }
    }
    distinct_ = distinct.take();
    for (const Fixed weight : distinct_) divisor_ = std::gcd(divisor_, weight - distinct_.back());
    return true;
}

Fixed Target::Impl::sum_below(Fixed most, std::int64_t num_weights) const {
    if (distinct_.empty() || most < num_weights * distinct_.back()) return most;
    const Fixed least = num_weights * distinct_.back();
    return divisor_ == 0 ? least : least + (most - least) / divisor_ * divisor_;
}

std::optional<Levels> Target::Impl::make_levels(std::span<const Fixed> distinct, WorkMeter& meter) const {
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
        if (meter.pass_time(16 * graph_.neighbors(u).size() * (1 + count))) return std::nullopt;
        for (const std::int32_t v : graph_.neighbors(u)) {
            for (std::size_t i = count; i-- > 0 && weight(u, v) >= lightest[i];) {
                levels.level_of[pair_of(u, v)] = static_cast<std::uint8_t>(i);
                levels.at_least.set(i * index(size()) + index(u), v);
                arcs += i + 1 == count ? 1 : 0;
            }
        }
    }
    TOPOPLACE_ASSERT(std::is_sorted(levels.heaviest.rbegin(), levels.heaviest.rend()));
    levels.exact = count == distinct.size();
    levels.complete = arcs == std::int64_t{size()} * (size() - 1);
    return levels;
}

std::optional<Levels> Target::Impl::levels_from(Fixed min_weight, WorkMeter& meter) const {
    const auto end = std::upper_bound(distinct_.begin(), distinct_.end(), min_weight, std::greater<>());
    return make_levels(std::span(distinct_.begin(), end), meter);
}

std::optional<BitRows> Target::Impl::adjacency(double min_weight, WorkMeter& meter) const {
    return adjacency(1, min_weight, meter);
}

std::optional<BitRows> Target::Impl::adjacency(Fixed threshold, double min_weight, WorkMeter& meter) const {
    if (everything(threshold) && min_weight <= points_.lightest()) return edges_;
    return rows_of(threshold, min_weight, meter);
}

std::optional<BitRows> Target::Impl::rows_of(Fixed threshold, double min_weight, WorkMeter& meter) const {
    BitRows rows(index(size()), width_of(size()));
    for (std::int32_t u = 0; u < size(); ++u) {
        const auto row = graph_.neighbors(u);
        if (meter.pass_time(32 * row.size())) return std::nullopt;
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
    const auto* generators = lazy_->generators.get([&]() -> std::optional<std::vector<Permutation>> {
        if (n > kMaxSymmetryVertices) return std::vector<Permutation>{};
        ColoredGraph colored{n, {}};
        for (const Fixed weight : weight_) {
            const auto found = std::lower_bound(distinct_.begin(), distinct_.end(), weight, std::greater<>());
            colored.color.push_back(static_cast<std::uint32_t>(found - distinct_.begin()));
        }
        std::vector<std::int32_t> ids(index(n));
        std::iota(ids.begin(), ids.end(), 0);
        auto chain = stabilizer_chain(colored, ids, meter);
        if (!chain) return std::nullopt;
        return std::move(chain->generators);
    });
    std::vector<Permutation> keeping;
    if (generators == nullptr) return orbits_of(n, {});
    for (const Permutation& image : *generators) {
        bool keeps = true;
        for (std::size_t v = 0; v < image.size(); ++v) keeps &= free[v] == free[index(image[v])];
        if (keeps) keeping.push_back(image);
    }
    TOPOPLACE_ASSERT(std::ssize(free) == n);
    return orbits_of(n, keeping);
}

const mapping::Target* Target::Impl::distances(WorkMeter& meter) const {
    const std::int32_t n = size();
    if (n > kMaxMappedVertices || points_.heaviest() > kHeaviestMapped) return nullptr;
    return lazy_->distances.get([&]() -> std::optional<mapping::Target> {
        const double heaviest = points_.heaviest();
        std::vector<double> distance;
        for (std::int32_t u = 0; u < n; ++u) {
            if (meter.pass_time(8 * index(n))) return std::nullopt;
            for (std::int32_t v = 0; v < n; ++v) {
                const Fixed its = weight(u, v);
                const double lacking = heaviest - (its > 0 ? to_double(its) : -heaviest);
                distance.push_back(u == v ? 0.0 : std::max(lacking, 0.0));
            }
        }
        return mapping::Target(n, std::move(distance));
    });
}

}  // namespace topoplace::match
