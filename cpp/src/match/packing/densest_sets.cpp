// The smallest of several limits, from small sets to larger ones. f(j) is the limit for j vertices.
//
// - Loads: share out every edge between its two ends. The edges inside a set are no more than the loads of
// its
//   vertices, so f(j) is the sum of the j largest loads, for any shares; even ones serve best. This is the
//   dual of the linear program of the densest subgraph.
// - Averages: of a set's subsets of one vertex less, each edge is in j - 2, so f(j) <= j f(j - 1) / (j - 2).
// - Degrees: the vertex of least degree has at most twice the edges over the vertices, and at most the core
//   number of the graph; without it, the others have no more than f(j - 1).
// - All connected sets, while they are few, if they are not to become large. A set of so many edges consists
// of a set of one vertex less, of
//   almost as many edges, and a neighbour. What it may lack is the least degree of a vertex that is no cut
//   vertex: as above where there is no cut vertex; otherwise, of the least of two end blocks, of b vertices
//   with b - 1 <= (j - 1) / 2, at most (2 f(b) - 1) / (b - 1), as the cut vertex has one of its edges at
//   least (two where b > 2).
// - Sets that are not connected: two smaller ones.
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

    // Puts equal sets beside each other.
    friend bool operator<(const Set& a, const Set& b) {
        return std::memcmp(a.vertices.data(), b.vertices.data(), sizeof a.vertices) < 0;
    }
    friend bool operator==(const Set& a, const Set& b) { return a.vertices == b.vertices; }
};

// All connected sets of a size that have so many edges.
struct List {
    std::int32_t needed = 0;
    std::vector<Set> sets{};
};

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
        for (std::int32_t count = 3; count <= most; ++count) add(count, loads[index(count)]);
        most_.resize(index(most) + 1);
    }

    std::vector<std::int32_t>&& take() { return std::move(most_); }

  private:
    void spend(std::uint64_t steps) {
        if (meter_.spend(steps)) throw Stopped{};
    }

    // The limits of sets of so many vertices.
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

    // No connected set of so many vertices has so many edges.
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

    // Makes the list of sets of so many vertices, from those of smaller ones that are known. needed: by size.
    void list(std::size_t count, const std::vector<std::int32_t>& needed) {
        if (lists_.size() <= count) lists_.resize(count + 1, {.needed = kUnknown});
        std::size_t known = count;
        while (known > 1 && lists_[known].needed > needed[known]) --known;
        for (; known < count && !is_exhausted(); ++known)
            lists_[known + 1] = {needed[known + 1], grown(known, needed)};
    }

    // How many edges some vertex has in a connected set of so many vertices and edges that stays connected
    // without it.
    std::int32_t most_lacking(std::int32_t count, std::int32_t edges) const {
        std::int32_t most = std::min(core_, 2 * edges / count);
        for (std::int32_t block = 2; block <= (count + 1) / 2; ++block) {
            const std::int32_t of_cut_vertex = block > 2 ? 2 : 1;
            most = std::max(most, (2 * most_[index(block)] - of_cut_vertex) / (block - 1));
        }
        return most;
    }

    bool is_exhausted() const { return looks_ > kLooks; }

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
            spend(kStepsPerLook * looks);
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
        while (!left.empty()) {
            spend(kStepsPerShare * left.size());
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
        for (std::int32_t round = 0; round < kRounds; ++round) {
            for (std::int32_t i = 0; i < size_; ++i) {
                const std::int32_t u = round % 2 == 0 ? i : size_ - 1 - i;
                spend(kStepsPerShare * neighbors_[u].size());
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

std::vector<std::int32_t> densest_sets(const Ragged<std::int32_t>& neighbors, std::int32_t size,
                                       std::int32_t most, WorkMeter& meter) {
    TOPOPLACE_ASSERT(size >= 0 && size <= kMaxDenseVertices && most >= 0);
    return DensestSets(neighbors, size, most, meter).take();
}

}  // namespace topoplace::match
