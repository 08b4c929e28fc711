// Least cuts and most edges of vertex sets, by size: from all sets, or along an order of the vertices where
// few are open at a time, or by degrees.
#include "match/graphs/spread.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

// Patterns of which every set of vertices is looked at.
constexpr std::int32_t kMaxEnumerated = 16;
// Of tables along an order; beyond it, only degrees are looked at.
constexpr std::size_t kMaxEntries = 1U << 18;
constexpr std::int32_t kMaxFrontier = 12;
constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 4;

using Neighbors = Ragged<std::int32_t>;

std::vector<std::int32_t> breadth_first(const Neighbors& neighbors, std::int32_t size) {
    std::vector<std::int32_t> order;
    std::vector<bool> seen(index(size));
    const auto visit = [&](std::int32_t u) {
        if (!seen[index(u)]) order.push_back(u);
        seen[index(u)] = true;
    };
    std::size_t next = 0;
    for (std::int32_t start = 0; start < size; ++start) {
        visit(start);
        for (; next < order.size(); ++next) {
            for (const std::int32_t v : neighbors[order[next]]) visit(v);
        }
    }
    return order;
}

// Where each vertex stands in an order, and the last place at which it still has a neighbour.
struct Order {
    std::vector<std::int32_t> vertices;
    std::vector<std::int32_t> place_of;
    std::vector<std::int32_t> last;
    std::int32_t frontier = 0;  // the most vertices at once with neighbours before and after

    Order(std::vector<std::int32_t> order, const Neighbors& neighbors)
        : vertices(std::move(order)), place_of(vertices.size()), last(vertices.size()) {
        const auto size = static_cast<std::int32_t>(vertices.size());
        for (std::int32_t at = 0; at < size; ++at) place_of[index(vertices[index(at)])] = at;
        for (std::int32_t at = 0; at < size; ++at) {
            last[index(at)] = at;
            for (const std::int32_t v : neighbors[vertices[index(at)]])
                last[index(at)] = std::max(last[index(at)], place_of[index(v)]);
        }
        for (std::int32_t at = 0; at < size; ++at) {
            std::int32_t open = 0;
            for (std::int32_t i = 0; i <= at; ++i) open += last[index(i)] > at ? 1 : 0;
            frontier = std::max(frontier, open);
        }
    }
};

// What an edge costs by how many of its ends are in a set.
struct EdgeCost {
    std::int32_t one_end;
    std::int32_t both_ends;
};
constexpr EdgeCost kCut{.one_end = 1, .both_ends = 0};
constexpr EdgeCost kLacking{.one_end = 0, .both_ends = -1};

// The vertices join a set or do not, one after the other. What counts of those before is how many joined, and
// which of the frontier did. An edge is counted at its later end.
class AlongOrder {
  public:
    AlongOrder(const Order& order, const Neighbors& neighbors, EdgeCost cost)
        : order_(order),
          neighbors_(neighbors),
          cost_(cost),
          size_(static_cast<std::int32_t>(order.vertices.size())) {}

    // The least cost of a set, by its size.
    std::vector<std::int32_t> least() {
        Table now = table(0);
        now[0] = 0;
        for (std::int32_t at = 0; at < size_; ++at) now = after(at, now);
        TOPOPLACE_ASSERT(frontier_.empty());
        return now;
    }

  private:
    using Table = std::vector<std::int32_t>;  // cost by subset of the frontier, then by number of vertices

    Table table(std::size_t frontier) const { return Table((index(size_) + 1) << frontier, kNever); }

    Table after(std::int32_t at, const Table& now) {
        const std::uint32_t before = neighbors_in_frontier(at);
        const std::uint32_t self = std::uint32_t{1} << frontier_.size();
        const std::uint32_t kept = advance(at);
        Table result = table(frontier_.size());
        for (std::uint32_t set = 0; set < self; ++set) {
            const std::int32_t in = std::popcount(set & before);
            const std::int32_t out = std::popcount(~set & before);
            const std::int32_t stays = in * cost_.one_end;
            const std::int32_t joins = in * cost_.both_ends + out * cost_.one_end;
            for (std::int32_t count = 0; count <= at; ++count) {
                const std::int32_t cost = now[position(set, count)];
                if (cost == kNever) continue;
                relax(result[position(packed(set, kept), count)], cost + stays);
                relax(result[position(packed(set | self, kept), count + 1)], cost + joins);
            }
        }
        return result;
    }

    std::uint32_t neighbors_in_frontier(std::int32_t at) const {
        std::uint32_t found = 0;
        for (const std::int32_t v : neighbors_[order_.vertices[index(at)]]) {
            const auto place = std::find(frontier_.begin(), frontier_.end(), order_.place_of[index(v)]);
            if (place != frontier_.end()) found |= std::uint32_t{1} << (place - frontier_.begin());
        }
        return found;
    }
    // Leaves in the frontier who has neighbours after `at`. Returns who of them was there, and `at` as the
    // last.
    std::uint32_t advance(std::int32_t at) {
        frontier_.push_back(at);
        std::uint32_t kept = 0;
        std::vector<std::int32_t> next;
        for (std::size_t i = 0; i < frontier_.size(); ++i) {
            if (order_.last[index(frontier_[i])] <= at) continue;
            kept |= std::uint32_t{1} << i;
            next.push_back(frontier_[i]);
        }
        frontier_ = std::move(next);
        return kept;
    }

    std::size_t position(std::uint32_t set, std::int32_t count) const {
        return std::size_t{set} * (index(size_) + 1) + index(count);
    }
    static void relax(std::int32_t& best, std::int32_t cost) { best = std::min(best, cost); }
    // The bits of `set` that are in `kept`, side by side.
    static std::uint32_t packed(std::uint32_t set, std::uint32_t kept) {
        std::uint32_t result = 0;
        for (std::uint32_t bit = 1; kept != 0; kept &= kept - 1, bit <<= 1) {
            if ((set & kept & ~(kept - 1)) != 0) result |= bit;
        }
        return result;
    }

    const Order& order_;
    const Neighbors& neighbors_;
    const EdgeCost cost_;
    const std::int32_t size_;
    std::vector<std::int32_t> frontier_;  // places
};

struct Limits {
    std::vector<std::int32_t> least_cuts;
    std::vector<std::int32_t> most_edges;
};

Limits of_all_sets(const Neighbors& neighbors, std::int32_t size) {
    Limits limits{std::vector<std::int32_t>(index(size) + 1, kNever),
                  std::vector<std::int32_t>(index(size) + 1, 0)};
    std::vector<std::uint32_t> adjacent_to(index(size), 0);
    for (std::int32_t u = 0; u < size; ++u) {
        for (const std::int32_t v : neighbors[u]) adjacent_to[index(u)] |= std::uint32_t{1} << v;
    }
    limits.least_cuts[0] = 0;
    struct Counts {
        std::uint16_t cut;
        std::uint16_t inside;
    };
    std::vector<Counts> counts(std::size_t{1} << size);
    for (std::uint32_t set = 1; set < counts.size(); ++set) {
        const std::int32_t u = std::countr_zero(set);
        const Counts rest = counts[set & (set - 1)];
        const std::int32_t joined = std::popcount(adjacent_to[index(u)] & set);
        const std::int32_t cut = rest.cut + static_cast<std::int32_t>(neighbors[u].size()) - 2 * joined;
        TOPOPLACE_ASSERT(cut >= 0);
        counts[set] = {static_cast<std::uint16_t>(cut), static_cast<std::uint16_t>(rest.inside + joined)};
        const std::size_t count = index(std::popcount(set));
        limits.least_cuts[count] = std::min(limits.least_cuts[count], cut);
        limits.most_edges[count] = std::max<std::int32_t>(limits.most_edges[count], counts[set].inside);
    }
    return limits;
}

Limits along(const Order& order, const Neighbors& neighbors) {
    Limits limits{AlongOrder(order, neighbors, kCut).least(), AlongOrder(order, neighbors, kLacking).least()};
    for (std::int32_t& edges : limits.most_edges) edges = -edges;
    return limits;
}

// Each of some vertices has edges to the others, but for those to one another; the same holds for the rest.
Limits by_degrees(const Neighbors& neighbors, std::int32_t size) {
    std::vector<std::int32_t> degrees;
    for (std::int32_t u = 0; u < size; ++u) degrees.push_back(static_cast<std::int32_t>(neighbors[u].size()));
    std::sort(degrees.begin(), degrees.end());
    std::vector<std::int32_t> leaving(index(size) + 1, 0);
    Limits limits{leaving, leaving};
    for (std::int32_t count = 1; count <= size; ++count) {
        std::int32_t ends = 0;
        for (std::int32_t i = 0; i < count; ++i) {
            if (count < size) leaving[index(count)] += std::max(degrees[index(i)] - (count - 1), 0);
            ends += std::min(degrees[index(size - 1 - i)], count - 1);
        }
        limits.most_edges[index(count)] = ends / 2;
    }
    for (std::int32_t count = 1; count < size; ++count)
        limits.least_cuts[index(count)] = std::max(leaving[index(count)], leaving[index(size - count)]);
    return limits;
}

Limits limits_of(const Neighbors& neighbors, std::int32_t size) {
    if (size <= kMaxEnumerated) return of_all_sets(neighbors, size);
    std::vector<std::int32_t> by_number(index(size));
    std::iota(by_number.begin(), by_number.end(), 0);
    const Order natural(std::move(by_number), neighbors);
    const Order outwards(breadth_first(neighbors, size), neighbors);
    const Order& order = natural.frontier <= outwards.frontier ? natural : outwards;
    const bool is_narrow =
        order.frontier <= kMaxFrontier && (index(size) << (order.frontier + 1)) <= kMaxEntries;
    return is_narrow ? along(order, neighbors) : by_degrees(neighbors, size);
}

// By number of vertices in all parts: the least total cost of the parts. `cost`: of one part, by its number
// of them.
template <class Cost>
std::vector<std::int32_t> least_sums(std::span<const Spread::Part> parts, std::int32_t size, Cost&& cost) {
    std::vector<std::int32_t> least(index(size) + 1, kNever);
    least[0] = 0;
    std::int32_t room = 0;
    for (const Spread::Part& part : parts) {
        const std::int32_t filled = std::min(room, size);
        room += part.size;
        for (std::int32_t total = std::min(room, size); total > 0; --total) {
            const std::int32_t most_here = std::min(part.size, total);
            for (std::int32_t here = std::max(1, total - filled); here <= most_here; ++here)
                least[index(total)] =
                    std::min(least[index(total)], least[index(total - here)] + cost(part, here));
        }
    }
    return least;
}

}  // namespace

Spread::Spread(const Ragged<std::int32_t>& neighbors, std::int32_t size) {
    Limits limits = limits_of(neighbors, size);
    least_cuts_ = std::move(limits.least_cuts);
    most_edges_ = std::move(limits.most_edges);
    for (std::int32_t u = 0; u < size; ++u) {
        num_edges_ += static_cast<std::int32_t>(neighbors[u].size());
        is_regular_ = is_regular_ && neighbors[u].size() == neighbors[0].size();
    }
    num_edges_ /= 2;
    TOPOPLACE_ASSERT(least_cuts_.front() == 0 && least_cuts_.back() == 0);
    TOPOPLACE_ASSERT(most_edges_.back() >= num_edges_);
}

// Each edge between parts leaves two of them: half the least sum of cuts over the ways to fill the parts.
std::int32_t Spread::most_inside(std::span<const Part> parts) const {
    const auto size = static_cast<std::int32_t>(least_cuts_.size()) - 1;
    std::int32_t room = 0;
    for (const Part& part : parts) room += std::min(part.size, size);
    if (room < size) return 0;
    const auto lacking = [this](const Part& part, std::int32_t here) { return -most_edges(part, here); };
    const auto cut = [this](const Part&, std::int32_t here) { return least_cuts_[index(here)]; };
    const std::int32_t most = std::min(-least_sums(parts, size, lacking).back(), num_edges_);
    if (is_regular_) return most;
    const std::int32_t crossing = (least_sums(parts, size, cut).back() + 1) / 2;
    return std::min(most, num_edges_ - crossing);
}

// By number of parts, up to `fewest_parts`, which stands for more as well, and number of vertices in them.
std::int32_t Spread::most_inside(std::span<const Part> parts, std::int32_t fewest_parts) const {
    const auto size = static_cast<std::int32_t>(least_cuts_.size()) - 1;
    using Sums = std::vector<std::int32_t>;
    std::vector<Sums> least(index(fewest_parts) + 1, Sums(index(size) + 1, kNever));
    least[0][0] = 0;
    for (const Part& part : parts) {
        for (std::int32_t total = size; total > 0; --total) {
            for (std::int32_t here = 1; here <= std::min(part.size, total); ++here) {
                const std::int32_t edges = most_edges(part, here);
                for (std::int32_t used = fewest_parts; used >= 0; --used) {
                    const std::int32_t before = least[index(used)][index(total - here)];
                    if (before == kNever) continue;
                    std::int32_t& sum = least[index(std::min(used + 1, fewest_parts))][index(total)];
                    sum = std::min(sum, before - edges);
                }
            }
        }
    }
    const std::int32_t best = least.back().back();
    return best == kNever ? -1 : std::min(-best, num_edges_);
}

}  // namespace topoplace::match
