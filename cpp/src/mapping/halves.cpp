// The tree of a target's halves: every part is split by partition::bipartition where little similarity
// (largest distance inside the part - distance) crosses.
#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/index.hpp"
#include "mapping/problem/target.hpp"
#include "topoplace/partition.hpp"

namespace topoplace::mapping {
namespace {

// Halves may differ by so much that three machines of equal size are split between machines.
constexpr double kImbalance = 0.34;
// Above, a vertex is tied to this number of its nearest ones only, so that a split takes time linear in them.
constexpr std::int32_t kDense = 64;

class Builder {
  public:
    Builder(const Target::Impl& target, WorkMeter& meter) : target_(target), meter_(meter) {}

    Halves build() {
        halves_.order.resize(index(target_.size()));
        std::iota(halves_.order.begin(), halves_.order.end(), 0);
        halves_.parts.push_back({.begin = 0, .end = target_.size()});
        for (std::size_t part = 0; part < halves_.parts.size(); ++part) {
            if (halves_.parts[part].size() > 1) split(part);
        }
        TOPOPLACE_ASSERT(target_.size() == 0 || std::ssize(halves_.parts) == 2 * target_.size() - 1);
        return std::move(halves_);
    }

  private:
    void split(std::size_t part) {
        const Part whole = halves_.parts[part];
        const std::span<std::int32_t> members(halves_.order.data() + whole.begin, index(whole.size()));
        const auto side = sides(members);
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
    }

    // Both sides have members.
    std::vector<std::int8_t> sides(std::span<const std::int32_t> members) {
        const auto size = static_cast<std::int32_t>(members.size());
        ties(members);
        std::vector<std::int8_t> side(members.size(), 0);
        std::fill(side.begin() + (size + 1) / 2, side.end(), std::int8_t{1});
        if (size == 2 || edges_.empty()) return side;
        partition::BipartitionParams params;
        params.imbalance = kImbalance;
        params.starts = 4;
        params.stop = meter_.deadline();
        const auto found = partition::bipartition(Graph(size, edges_), params, &workspace_);
        meter_.look_at_clock();
        meter_.prepare(0);
        const auto ones = std::count(found.side.begin(), found.side.end(), 1);
        return ones > 0 && ones < size ? found.side : side;
    }

    // The similar pairs among the members, into edges_.
    void ties(std::span<const std::int32_t> members) {
        const auto size = static_cast<std::int32_t>(members.size());
        edges_.clear();
        double largest = 0;
        for (const std::int32_t u : members) {
            meter_.prepare(4 * members.size());
            for (const std::int32_t v : members) largest = std::max(largest, target_.distance(u, v));
        }
        for (std::int32_t i = 0; i < size; ++i) {
            near_.clear();
            meter_.prepare(64 * members.size());
            for (std::int32_t j = 1; j < size; ++j) {
                const std::int32_t other = i + j < size ? i + j : i + j - size;
                const double distance = target_.distance(members[index(i)], members[index(other)]);
                TOPOPLACE_ASSERT(distance <= largest);
                if (distance < largest) near_.push_back({i, other, largest - distance});
            }
            if (size > kDense) keep_nearest(size);
            edges_.insert(edges_.end(), near_.begin(), near_.end());
        }
        unite();
    }

    // Of equally near ones the next in the round, so that they form rings and not stars.
    void keep_nearest(std::int32_t size) {
        if (near_.size() <= index(kDense)) return;
        const auto ahead = [size](const Edge& edge) { return edge.v > edge.u ? edge.v : edge.v + size; };
        const auto nearer = [&](const Edge& a, const Edge& b) {
            return a.weight != b.weight ? a.weight > b.weight : ahead(a) < ahead(b);
        };
        std::nth_element(near_.begin(), near_.begin() + kDense, near_.end(), nearer);
        near_.resize(index(kDense));
    }

    // Each pair once.
    void unite() {
        for (Edge& edge : edges_) {
            if (edge.u > edge.v) std::swap(edge.u, edge.v);
        }
        const auto key = [](const Edge& edge) { return std::pair(edge.u, edge.v); };
        std::sort(edges_.begin(), edges_.end(),
                  [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
        const auto same = [&](const Edge& a, const Edge& b) { return key(a) == key(b); };
        edges_.erase(std::unique(edges_.begin(), edges_.end(), same), edges_.end());
    }

    const Target::Impl& target_;
    WorkMeter& meter_;
    Halves halves_;
    std::vector<Edge> edges_;
    std::vector<Edge> near_;
    std::vector<std::int32_t> sorted_;
    partition::BipartitionWorkspace workspace_;
};

}  // namespace

Halves halve(const Target::Impl& target, WorkMeter& meter) { return Builder(target, meter).build(); }

}  // namespace topoplace::mapping
