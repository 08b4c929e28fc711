// The most edges among j vertices of a graph: f(j) is the smallest of several upper limits, computed for
// small sets first.
//
// - Loads: divide every edge between its two ends. The edges inside a set are at most the loads of its
//   vertices, so f(j) is at most the sum of the j largest loads. Any division gives a limit; even loads give
//   the best one. This is the dual of the linear program of the densest subgraph.
// - Averages: a set of j vertices has j subsets of j - 1 vertices, and each of its edges is in j - 2 of them.
//   So f(j) <= j f(j - 1) / (j - 2).
// - Degrees: the vertex of least degree in the set has at most 2 f(j) / j edges, and at most as many as the
//   core number of the graph. Without this vertex the set has at most f(j - 1) edges.
// - Lists of all connected sets, as long as they are short. A connected set with e edges consists of a
//   connected set with one vertex less, which has almost e edges, and a neighbour of it. The vertex that is
//   taken away is no cut vertex. If the set has no cut vertex, its degree is limited as above. Otherwise the
//   set has two end blocks. The smaller one has b vertices, where b - 1 <= (j - 1) / 2, and at least c of its
//   edges are at its cut vertex: c = 1, or 2 if b > 2. So one of its other vertices has at most
//   (2 f(b) - c) / (b - 1) edges.
// - Sets that are not connected: the sum of the limits of two smaller sets.
#include "match/packing/densest_sets.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {
namespace {

constexpr std::int32_t kRounds = 128;       // of sharing out all edges
constexpr std::size_t kLargest = 16;        // vertices of a set that is listed
constexpr std::uint64_t kLooks = 1U << 18;  // at neighbours, for all lists
constexpr std::uint64_t kStepsPerLook = 32;
constexpr std::uint64_t kStepsPerShare = 8;
constexpr std::int32_t kUnknown = std::numeric_limits<std::int32_t>::max();

// A connected set: its vertices in ascending order, and the edges among them.
struct Set {
    std::array<std::uint16_t, kLargest> vertices{};
    std::int32_t edges = 0;

    // Puts equal sets next to each other.
    friend bool operator<(const Set& a, const Set& b) {
        return std::memcmp(a.vertices.data(), b.vertices.data(), sizeof a.vertices) < 0;
    }
    friend bool operator==(const Set& a, const Set& b) { return a.vertices == b.vertices; }
};

// All connected sets of a size that have at least `needed` edges.
struct List {
    std::int32_t needed = 0;
    std::vector<Set> sets{};
};

// Limits that mean nothing where `meter` stops.
class DensestSets {
  public:
    DensestSets(const Ragged<std::int32_t>& neighbors, std::int32_t size, std::int32_t most, WorkMeter& meter)
        : neighbors_(neighbors),
          size_(size),
          meter_(meter),
          core_(core_number()),
          lists_sets_(index(most) <= kLargest),
          counts_(index(size), 0) {
        const std::vector<std::int32_t> loads = most_by_loads(most);
        const bool has_edges = loads.back() > 0;
        lists_.resize(2);
        for (std::int32_t v = 0; v < size_; ++v)
            lists_[1].sets.push_back({.vertices = {static_cast<std::uint16_t>(v)}});
        most_ = connected_ = {0, 0, has_edges ? 1 : 0};
        for (std::int32_t count = 3; count <= most && !meter.stopped(); ++count)
            add(count, loads[index(count)]);
        most_.resize(index(most) + 1);
    }

    std::vector<std::int32_t>&& take() { return std::move(most_); }

  private:
    // Adds the limits of sets of `count` vertices.
    void add(std::int32_t count, std::int32_t by_loads) {
        const std::int32_t smaller = most_.back();
        std::int32_t upper = std::min({by_loads, count * smaller / (count - 2), smaller + core_});
        while (upper > smaller && 2 * upper / count < upper - smaller) --upper;
        std::int32_t apart = 0;
        for (std::int32_t part = 1; part < count; ++part)
            apart = std::max(apart, connected_[index(part)] + most_[index(count - part)]);
        std::int32_t joined = upper;
        while (joined > apart && is_refuted(count, joined)) --joined;
        connected_.push_back(joined);
        most_.push_back(std::min(upper, std::max(joined, apart)));
    }

    // True if it is proven that no connected set of `count` vertices has `edges` edges.
    bool is_refuted(std::int32_t count, std::int32_t edges) {
        if (!lists_sets_ || is_exhausted()) return false;
        std::vector<std::int32_t> needed(index(count) + 1, 0);
        needed.back() = edges;
        for (std::int32_t i = count; i > 2; --i) {
            needed[index(i) - 1] = needed[index(i)] - most_lacking(i, needed[index(i)]);
            if (needed[index(i) - 1] > connected_[index(i) - 1]) return true;
        }
        list(index(count), needed);
        return !is_exhausted() &&
               std::none_of(lists_[index(count)].sets.begin(), lists_[index(count)].sets.end(),
                            [&](const Set& set) { return set.edges >= edges; });
    }

    // Lists the connected sets of `count` vertices: the lists grow from the largest that is known. needed:
    // the least edges of a set, by its size.
    void list(std::size_t count, const std::vector<std::int32_t>& needed) {
        if (lists_.size() <= count) lists_.resize(count + 1, {.needed = kUnknown});
        std::size_t known = count;
        while (known > 1 && lists_[known].needed > needed[known]) --known;
        for (; known < count && !is_exhausted(); ++known)
            lists_[known + 1] = {needed[known + 1], grown(known, needed)};
    }

    // A connected set of `count` vertices and `edges` edges has a vertex with at most this many edges in it,
    // without which it stays connected.
    std::int32_t most_lacking(std::int32_t count, std::int32_t edges) const {
        std::int32_t most = std::min(core_, 2 * edges / count);
        for (std::int32_t block = 2; block <= (count + 1) / 2; ++block) {
            const std::int32_t of_cut_vertex = block > 2 ? 2 : 1;
            most = std::max(most, (2 * most_[index(block)] - of_cut_vertex) / (block - 1));
        }
        return most;
    }

    bool is_exhausted() const { return looks_ > kLooks || meter_.stopped(); }

    // The sets of one vertex more that have as many edges as needed.
    std::vector<Set> grown(std::size_t count, const std::vector<std::int32_t>& needed) {
        std::vector<Set> larger;
        for (const Set& set : lists_[count].sets) {
            if (is_exhausted()) return larger;
            if (set.edges < needed[count]) continue;
            const auto members = std::span(set.vertices).first(count);
            std::uint64_t looks = 0;
            for (const std::uint16_t u : members) {
                for (const std::int32_t v : neighbors_[u]) ++counts_[index(v)];
                looks += neighbors_[u].size();
            }
            looks_ += looks;
            meter_.spend(kStepsPerLook * looks);
            for (const std::uint16_t u : members) {
                for (const std::int32_t v : neighbors_[u]) {
                    const std::int32_t edges = set.edges + std::exchange(counts_[index(v)], 0);
                    if (edges > set.edges && edges >= needed[count + 1] && !is_member(members, v))
                        larger.push_back(with(set, count, static_cast<std::uint16_t>(v), edges));
                }
            }
        }
        std::sort(larger.begin(), larger.end());
        larger.erase(std::unique(larger.begin(), larger.end()), larger.end());
        return larger;
    }

    static bool is_member(std::span<const std::uint16_t> members, std::int32_t v) {
        return std::binary_search(members.begin(), members.end(), v);
    }

    static Set with(Set set, std::size_t count, std::uint16_t v, std::int32_t edges) {
        std::size_t i = count;
        for (; i > 0 && set.vertices[i - 1] > v; --i) set.vertices[i] = set.vertices[i - 1];
        set.vertices[i] = v;
        set.edges = edges;
        return set;
    }

    // The largest least degree of a subgraph.
    std::int32_t core_number() {
        std::vector<std::int32_t> degree(index(size_));
        std::vector<std::int32_t> left(index(size_));
        std::iota(left.begin(), left.end(), 0);
        for (const std::int32_t v : left) degree[index(v)] = static_cast<std::int32_t>(neighbors_[v].size());
        std::int32_t core = 0;
        while (!left.empty() && !meter_.spend(kStepsPerShare * left.size())) {
            const auto least = std::min_element(
                left.begin(), left.end(),
                [&](std::int32_t a, std::int32_t b) { return degree[index(a)] < degree[index(b)]; });
            core = std::max(core, degree[index(*least)]);
            for (const std::int32_t v : neighbors_[*least]) --degree[index(v)];
            left.erase(least);
        }
        return core;
    }

    // In each round every edge counts for that of its ends which has the smaller load so far.
    std::vector<std::int32_t> most_by_loads(std::int32_t most) {
        std::vector<std::int64_t> loads(index(size_), 0);
        for (std::int32_t round = 0; round < kRounds && !meter_.stopped(); ++round) {
            for (std::int32_t i = 0; i < size_; ++i) {
                const std::int32_t u = round % 2 == 0 ? i : size_ - 1 - i;
                if (meter_.spend(kStepsPerShare * neighbors_[u].size())) break;
                for (const std::int32_t v : neighbors_[u]) {
                    if (u < v) ++loads[index(loads[index(v)] < loads[index(u)] ? v : u)];
                }
            }
        }
        std::sort(loads.begin(), loads.end(), std::greater<>());
        std::vector<std::int32_t> limits{0};
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < index(most); ++i) {
            sum += i < loads.size() ? loads[i] : 0;
            limits.push_back(static_cast<std::int32_t>(sum / kRounds));
        }
        return limits;
    }

    const Ragged<std::int32_t>& neighbors_;
    const std::int32_t size_;
    WorkMeter& meter_;
    const std::int32_t core_;
    const bool lists_sets_;
    std::vector<std::int32_t> counts_;  // of a vertex's neighbours in a set
    std::vector<std::int32_t> most_;
    std::vector<std::int32_t> connected_;  // the same of connected sets
    std::vector<List> lists_;              // by size
    std::uint64_t looks_ = 0;
};

}  // namespace

std::optional<std::vector<std::int32_t>> densest_sets(const Ragged<std::int32_t>& neighbors,
                                                      std::int32_t size, std::int32_t most,
                                                      WorkMeter& meter) {
    TOPOPLACE_ASSERT(size >= 0 && size <= kMaxDenseVertices && most >= 0);
    DensestSets sets(neighbors, size, most, meter);
    if (meter.stopped()) return std::nullopt;
    return sets.take();
}

}  // namespace topoplace::match
