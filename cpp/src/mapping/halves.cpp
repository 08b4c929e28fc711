// The tree of a target's halves: every part is split by partition::bipartition where little similarity
// (largest distance inside the part - distance) crosses.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/index.hpp"
#include "mapping/problem/target.hpp"
#include "topoplace/partition.hpp"

namespace topoplace::mapping {
namespace {

// Halves may differ by so much that three machines of equal size are split between machines.
constexpr double kImbalance = 0.34;
// Above, a vertex is tied to this number of its nearest ones only, so that a split takes time linear in them.
constexpr std::int32_t kDense = 64;
constexpr std::int32_t kBlock = 32;

class Builder {
  public:
    Builder(const Target::Impl& target, WorkMeter& meter) : target_(target), meter_(meter) {}

    std::optional<Halves> build() {
        halves_.order.resize(index(target_.size()));
        std::iota(halves_.order.begin(), halves_.order.end(), 0);
        halves_.parts.push_back({.begin = 0, .end = target_.size()});
        for (std::size_t part = 0; part < halves_.parts.size(); ++part) {
            if (halves_.parts[part].size() > 1 && !split(part)) return std::nullopt;
        }
        TOPOPLACE_ASSERT(target_.size() == 0 || std::ssize(halves_.parts) == 2 * target_.size() - 1);
        return std::move(halves_);
    }

  private:
    // This and what it calls end early where the meter stops.
    [[nodiscard]] bool split(std::size_t part) {
        const Part whole = halves_.parts[part];
        const std::span<std::int32_t> members(halves_.order.data() + whole.begin, index(whole.size()));
        const auto found = sides(members);
        if (!found) return false;
        const std::vector<std::int8_t>& side = *found;
        TOPOPLACE_ASSERT(std::ranges::count(side, 0) + std::ranges::count(side, 1) == whole.size());
        std::size_t place = 0;
        sorted_.assign(members.begin(), members.end());
        for (const std::int8_t wanted : {std::int8_t{0}, std::int8_t{1}}) {
            const auto begin = whole.begin + static_cast<std::int32_t>(place);
            for (std::size_t i = 0; i < side.size(); ++i) {
                if (side[i] == wanted) members[place++] = sorted_[i];
            }
            const auto end = whole.begin + static_cast<std::int32_t>(place);
            halves_.parts[part].half[wanted] = static_cast<std::int32_t>(halves_.parts.size());
            TOPOPLACE_ASSERT(begin < end);
            halves_.parts.push_back({.begin = begin, .end = end});
        }
        return true;
    }

    // Both sides have members.
    std::optional<std::vector<std::int8_t>> sides(std::span<const std::int32_t> members) {
        const auto size = static_cast<std::int32_t>(members.size());
        ties(members);
        if (meter_.stopped()) return std::nullopt;
        std::vector<std::int8_t> side(members.size(), 0);
        std::fill(side.begin() + (size + 1) / 2, side.end(), std::int8_t{1});
        if (size == 2 || edges_.empty()) return side;
        partition::BipartitionParams params;
        params.imbalance = kImbalance;
        params.starts = 4;
        params.stop = meter_.deadline();
        Fault fault;
        const auto graph = Graph::of_edges(size, edges_, params.stop, fault);
        TOPOPLACE_ASSERT(!fault);
        if (!graph) return std::nullopt;
        const auto found = partition::bipartition(*graph, params, &workspace_);
        if (meter_.look_at_clock()) return std::nullopt;
        const auto ones = std::count(found.side.begin(), found.side.end(), 1);
        return ones > 0 && ones < size ? found.side : side;
    }

    // The similar pairs among the members, into edges_: those less far apart than the farthest.
    void ties(std::span<const std::int32_t> members) {
        const auto size = static_cast<std::int32_t>(members.size());
        edges_.clear();
        double largest = 0;
        for (std::int32_t i = 0; i < size; ++i) {
            if (meter_.pass_time(16 * members.size())) return;
            largest = std::max(largest, nearest(members, i));
            edges_.insert(edges_.end(), near_.begin(), near_.end());
        }
        std::erase_if(edges_, [&](const Edge& edge) { return edge.weight >= largest; });
        unite(size);
        for (Edge& edge : edges_) edge.weight = largest - edge.weight;
    }

    // The pairs of member i, weighed by distance, into near_. In a large part only the nearest; of equally
    // near ones the next in the round, so that they form rings and not stars. Returns the largest distance.
    double nearest(std::span<const std::int32_t> members, std::int32_t i) {
        const double* row = target_.row(members[index(i)]);
        const auto size = static_cast<std::int32_t>(members.size());
        double limit =
            std::numeric_limits<double>::infinity();  // what is not nearer is not among the nearest
        double largest = 0;
        near_.clear();
        // Block by block, as most of them hold none of the nearest.
        const auto look = [&](std::int32_t from, std::int32_t to) {
            for (std::int32_t begin = from; begin < to; begin += kBlock) {
                const auto block = members.subspan(index(begin), index(std::min(kBlock, to - begin)));
                const auto [low, high] = range(row, block);
                largest = std::max(largest, high);
                if (low < limit) limit = take(row, block, {i, begin, limit}, size);
            }
        };
        look(i + 1, size);
        look(0, i);
        if (size > kDense) keep_nearest(size);
        return largest;
    }

    static std::pair<double, double> range(const double* row, std::span<const std::int32_t> block) {
        double low = std::numeric_limits<double>::infinity();
        double high = 0;
        for (const std::int32_t v : block) {
            low = std::min(low, row[v]);
            high = std::max(high, row[v]);
        }
        return {low, high};
    }

    // Pairs of member edge.u with those of a block that begins at edge.v, where they are less than
    // edge.weight apart; returns the new limit.
    double take(const double* row, std::span<const std::int32_t> block, Edge edge, std::int32_t size) {
        for (const std::int32_t v : block) {
            if (row[v] < edge.weight) near_.push_back({edge.u, edge.v, row[v]});
            if (size > kDense && std::ssize(near_) == 4 * kDense) edge.weight = keep_nearest(size);
            ++edge.v;
        }
        return edge.weight;
    }

    // Returns the distance of the last one kept: of the members that come later in the round, only nearer
    // ones can take a place.
    double keep_nearest(std::int32_t size) {
        if (near_.size() <= index(kDense)) return std::numeric_limits<double>::infinity();
        const auto ahead = [size](const Edge& edge) { return edge.v > edge.u ? edge.v : edge.v + size; };
        const auto nearer = [&](const Edge& a, const Edge& b) {
            return a.weight != b.weight ? a.weight < b.weight : ahead(a) < ahead(b);
        };
        std::nth_element(near_.begin(), near_.begin() + kDense - 1, near_.end(), nearer);
        near_.resize(index(kDense));
        return near_.back().weight;
    }

    // Each pair once, sorted: dealt out by the smaller end first.
    void unite(std::int32_t size) {
        begin_.assign(index(size) + 1, 0);
        for (const Edge& edge : edges_) ++begin_[index(std::min(edge.u, edge.v)) + 1];
        std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
        dealt_.resize(edges_.size());
        if (meter_.pass_time(32 * edges_.size())) return;
        for (const Edge& edge : edges_) {
            const auto [u, v] = std::minmax(edge.u, edge.v);
            dealt_[begin_[index(u)]++] = {u, v, edge.weight};
        }
        edges_.clear();
        std::size_t begin = 0;
        for (std::int32_t u = 0; u < size; ++u) {
            const auto row = std::span(dealt_).subspan(begin, begin_[index(u)] - begin);
            if (meter_.pass_time(64 * row.size())) return;
            std::sort(row.begin(), row.end(), [](const Edge& a, const Edge& b) { return a.v < b.v; });
            const auto same = [](const Edge& a, const Edge& b) { return a.v == b.v; };
            edges_.insert(edges_.end(), row.begin(), std::unique(row.begin(), row.end(), same));
            begin = begin_[index(u)];
        }
    }

    const Target::Impl& target_;
    WorkMeter& meter_;
    Halves halves_;
    std::vector<Edge> edges_;
    std::vector<Edge> near_;
    std::vector<Edge> dealt_;
    std::vector<std::size_t> begin_;  // by vertex, in dealt_
    std::vector<std::int32_t> sorted_;
    partition::BipartitionWorkspace workspace_;
};

}  // namespace

std::optional<Halves> halve(const Target::Impl& target, WorkMeter& meter) {
    return Builder(target, meter).build();
}

}  // namespace topoplace::mapping
