// Least cuts by number of vertices: from all sets, or set by set along an order of the vertices, or by degrees.
#include "match/graphs/least_cuts.hpp"

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
    for (std::int32_t start = 0; start < size; ++start) {
        visit(start);
        for (std::size_t next = 0; next < order.size(); ++next) {
            for (const std::int32_t v : neighbors[order[next]]) visit(v);
        }
    }
    return order;
}

bool is_connected(const Neighbors& neighbors, std::int32_t size) {
    std::vector<bool> reached(index(size));
    std::vector<std::int32_t> queue(1, 0);
    reached[0] = true;
    for (std::size_t next = 0; next < queue.size(); ++next) {
        for (const std::int32_t v : neighbors[queue[next]]) {
            if (!reached[index(v)]) queue.push_back(v);
            reached[index(v)] = true;
        }
    }
    return queue.size() == index(size);
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

// The vertices join or do not, one after the other. What counts of those before is how many joined, and which
// of the frontier did. An edge is counted at its later end.
class AlongOrder {
  public:
    AlongOrder(const Order& order, const Neighbors& neighbors)
        : order_(order), neighbors_(neighbors), size_(static_cast<std::int32_t>(order.vertices.size())) {}

    std::vector<std::int32_t> least() {
        Table now = table(0);
        now[0] = 0;
        for (std::int32_t at = 0; at < size_; ++at) now = after(at, now);
        TOPOPLACE_ASSERT(frontier_.empty());
        return now;
    }

  private:
    using Table = std::vector<std::int32_t>;  // cut by subset of the frontier, then by number of vertices

    Table table(std::size_t frontier) const { return Table((index(size_) + 1) << frontier, kNever); }

    Table after(std::int32_t at, const Table& now) {
        std::vector<std::int32_t> next;  // the frontier after this vertex
        std::uint32_t kept = 0;          // of the frontier before, and of this vertex as its last one
        for (std::size_t i = 0; i <= frontier_.size(); ++i) {
            const std::int32_t place = i < frontier_.size() ? frontier_[i] : at;
            if (order_.last[index(place)] <= at) continue;
            kept |= std::uint32_t{1} << i;
            next.push_back(place);
        }
        std::uint32_t before = 0;  // neighbours of this vertex in the frontier
        for (const std::int32_t v : neighbors_[order_.vertices[index(at)]]) {
            const auto found = std::find(frontier_.begin(), frontier_.end(), order_.place_of[index(v)]);
            if (found != frontier_.end()) before |= std::uint32_t{1} << (found - frontier_.begin());
        }
        Table result = table(next.size());
        const std::uint32_t self = std::uint32_t{1} << frontier_.size();
        for (std::uint32_t set = 0; set < self; ++set) {
            const std::int32_t joined = std::popcount(set & before);
            const std::int32_t apart = std::popcount(~set & before);
            for (std::int32_t count = 0; count <= at; ++count) {
                const std::int32_t cut = now[position(set, count)];
                relax(result[position(packed(set, kept), count)], cut + joined);
                relax(result[position(packed(set | self, kept), count + 1)], cut + apart);
            }
        }
        frontier_ = std::move(next);
        return result;
    }

    std::size_t position(std::uint32_t set, std::int32_t count) const {
        return std::size_t{set} * (index(size_) + 1) + index(count);
    }
    static void relax(std::int32_t& best, std::int32_t cut) { best = std::min(best, cut); }
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
    const std::int32_t size_;
    std::vector<std::int32_t> frontier_;  // places
};

std::vector<std::int32_t> least_of_all_sets(const Neighbors& neighbors, std::int32_t size) {
    std::vector<std::int32_t> least(index(size) + 1, kNever);
    std::vector<std::uint32_t> adjacent_to(index(size), 0);
    for (std::int32_t u = 0; u < size; ++u) {
        for (const std::int32_t v : neighbors[u]) adjacent_to[index(u)] |= std::uint32_t{1} << v;
    }
    least[0] = 0;
    std::vector<std::uint16_t> cut(std::size_t{1} << size, 0);
    for (std::uint32_t set = 1; set < cut.size(); ++set) {
        const std::int32_t u = std::countr_zero(set);
        const std::uint32_t rest = set & (set - 1);
        const auto degree = static_cast<std::int32_t>(neighbors[u].size());
        const std::int32_t edges = cut[rest] + degree - 2 * std::popcount(adjacent_to[index(u)] & rest);
        TOPOPLACE_ASSERT(edges >= 0);
        cut[set] = static_cast<std::uint16_t>(edges);
        least[index(std::popcount(set))] = std::min(least[index(std::popcount(set))], edges);
    }
    return least;
}

// Each of some vertices has edges to the others, but for those to one another; the same holds for the rest.
std::vector<std::int32_t> least_by_degrees(const Neighbors& neighbors, std::int32_t size) {
    std::vector<std::int32_t> degrees;
    for (std::int32_t u = 0; u < size; ++u) degrees.push_back(static_cast<std::int32_t>(neighbors[u].size()));
    std::sort(degrees.begin(), degrees.end());
    std::vector<std::int32_t> leaving(index(size) + 1, 0);
    for (std::int32_t count = 1; count < size; ++count) {
        for (std::int32_t i = 0; i < count; ++i)
            leaving[index(count)] += std::max(degrees[index(i)] - (count - 1), 0);
    }
    const std::int32_t least_if_connected = is_connected(neighbors, size) ? 1 : 0;
    std::vector<std::int32_t> least(leaving.size(), 0);
    for (std::int32_t count = 1; count < size; ++count) {
        const std::int32_t ends = std::max(leaving[index(count)], leaving[index(size - count)]);
        least[index(count)] = std::max(ends, least_if_connected);
    }
    return least;
}

// The smallest number of parts that are large enough together.
std::int32_t fewest(std::span<const std::int32_t> sizes, std::int32_t size) {
    std::vector<std::int32_t> largest_first(sizes.begin(), sizes.end());
    std::sort(largest_first.rbegin(), largest_first.rend());
    std::int32_t count = 0;
    for (std::int32_t room = 0; room < size; ++count) room += largest_first[index(count)];
    return count;
}

std::vector<std::int32_t> least_cuts(const Neighbors& neighbors, std::int32_t size) {
    if (size <= kMaxEnumerated) return least_of_all_sets(neighbors, size);
    std::vector<std::int32_t> by_number(index(size));
    std::iota(by_number.begin(), by_number.end(), 0);
    const Order natural(std::move(by_number), neighbors);
    const Order outwards(breadth_first(neighbors, size), neighbors);
    const Order& order = natural.frontier <= outwards.frontier ? natural : outwards;
    const bool is_narrow =
        order.frontier <= kMaxFrontier && (index(size) << (order.frontier + 1)) <= kMaxEntries;
    return is_narrow ? AlongOrder(order, neighbors).least() : least_by_degrees(neighbors, size);
}

}  // namespace

LeastCuts::LeastCuts(const Ragged<std::int32_t>& neighbors, std::int32_t size)
    : least_(least_cuts(neighbors, size)) {
    for (std::int32_t u = 0; u < size; ++u) num_edges_ += static_cast<std::int32_t>(neighbors[u].size());
    num_edges_ /= 2;
    is_connected_ = is_connected(neighbors, size);
    TOPOPLACE_ASSERT(least_.front() == 0 && least_.back() == 0);
}

// Each edge between parts leaves two of them: half the least sum of cuts over the ways to fill the parts. And
// the parts of a connected pattern hang together by at least one edge fewer than there are parts.
std::int32_t LeastCuts::crossing(std::span<const std::int32_t> sizes) const {
    const auto size = static_cast<std::int32_t>(least_.size()) - 1;
    std::vector<std::int32_t> cheapest(least_.size(), kNever);  // by number of vertices in the parts so far
    cheapest[0] = 0;
    std::int32_t room = 0;
    for (const std::int32_t part : sizes) {
        if (part >= size) return 0;
        const std::int32_t filled = std::min(room, size);
        room += part;
        for (std::int32_t total = std::min(room, size); total > 0; --total) {
            std::int32_t& best = cheapest[index(total)];
            for (std::int32_t here = std::max(1, total - filled); here <= std::min(part, total); ++here)
                best = std::min(best, cheapest[index(total - here)] + of(here));
        }
    }
    if (room < size) return num_edges_;
    const std::int32_t joints = is_connected_ ? fewest(sizes, size) - 1 : 0;
    return std::min(std::max((cheapest.back() + 1) / 2, joints), num_edges_);
}

}  // namespace topoplace::match
