// The cut edges leave trees, each inside one part. So no tree is larger than the largest part. The number
// of trees larger than any given size is limited, too: a part of s vertices holds s / (size + 1) of them.
// For each size of a part, tables built from the leaves upwards give the fewest cuts that keep to both
// limits. The largest of these numbers is the answer.
#include "match/packing/tree_cuts.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 4;
// Beyond this, a limit on the number of large trees hardly tells.
constexpr std::int32_t kMostLarge = 6;
constexpr std::int64_t kMostSteps = 1 << 21;

// The vertices of a forest, every one before its neighbours but its parent; empty where there is a cycle.
struct Forest {
    std::vector<std::int32_t> order;
    std::vector<std::int32_t> parent;

    explicit Forest(const Pattern::Impl& pattern) : parent(index(pattern.size()), kAbsent) {
        std::vector<bool> seen(index(pattern.size()), false);
        std::int64_t edges = 0;
        for (std::int32_t start = 0; start < pattern.size(); ++start) {
            if (seen[index(start)]) continue;
            seen[index(start)] = true;
            order.push_back(start);
            for (std::size_t next = order.size() - 1; next < order.size(); ++next) {
                for (const std::int32_t v : pattern.neighbors(order[next])) {
                    if (seen[index(v)]) continue;
                    seen[index(v)] = true;
                    parent[index(v)] = order[next];
                    order.push_back(v);
                    ++edges;
                }
            }
        }
        if (edges != pattern.num_edges()) order.clear();
    }
};

// Which trees are allowed: of up to `largest` vertices, `most_large` of them of more than `small`.
struct Limits {
    std::int32_t largest;
    std::int32_t small;
    std::int32_t most_large;
};

class Cuts {
  public:
    Cuts(const Forest& forest, const Limits& limits)
        : forest_(forest), limits_(limits), tables_(forest.order.size()) {}

    std::int32_t fewest() {
        Table done = table();
        at(done, 0, 0) = 0;
        for (auto v = forest_.order.rbegin(); v != forest_.order.rend(); ++v) {
            Table& own = tables_[index(*v)];
            if (own.empty()) own = leaf();
            const std::int32_t parent = forest_.parent[index(*v)];
            if (parent == kAbsent) {
                done = joined(done, own, 0, false);
                continue;
            }
            Table& above = tables_[index(parent)];
            above = joined(above.empty() ? leaf() : above, own, 1, true);
            own.clear();
        }
        return *std::min_element(done.begin(), done.end());
    }

  private:
    // Cuts, by the size of the tree that the topmost vertex is in, and by the number of large trees below.
    using Table = std::vector<std::int32_t>;

    std::int32_t& at(Table& table, std::int32_t size, std::int32_t large) const {
        return table[index(size) * index(limits_.most_large + 1) + index(large)];
    }
    Table table() const { return Table(index(limits_.largest + 1) * index(limits_.most_large + 1), kNever); }
    Table leaf() const {
        Table result = table();
        at(result, 1, 0) = 0;
        return result;
    }

    // The tree at `below` becomes a part of the one above where it may, or is cut off for `cut`.
    Table joined(Table above, Table& below, std::int32_t cut, bool may_join) const {
        Table result = table();
        for (std::int32_t size = 0; size <= limits_.largest; ++size) {
            for (std::int32_t large = 0; large <= limits_.most_large; ++large) {
                const std::int32_t own = at(above, size, large);
                if (own < kNever) add(result, below, {size, large, own}, cut, may_join);
            }
        }
        return result;
    }
    struct Entry {
        std::int32_t size;
        std::int32_t large;
        std::int32_t cuts;
    };
    void add(Table& result, Table& below, const Entry& above, std::int32_t cut, bool may_join) const {
        for (std::int32_t size = 1; size <= limits_.largest; ++size) {
            for (std::int32_t large = 0; above.large + large <= limits_.most_large; ++large) {
                const std::int32_t cuts = above.cuts + at(below, size, large);
                if (cuts >= kNever) continue;
                const std::int32_t closed = above.large + large + (size > limits_.small ? 1 : 0);
                if (closed <= limits_.most_large) relax(at(result, above.size, closed), cuts + cut);
                if (may_join && above.size + size <= limits_.largest)
                    relax(at(result, above.size + size, above.large + large), cuts);
            }
        }
    }
    static void relax(std::int32_t& least, std::int32_t cuts) { least = std::min(least, cuts); }

    const Forest& forest_;
    const Limits limits_;
    std::vector<Table> tables_;
};

}  // namespace

std::int32_t fewest_cuts(const Pattern::Impl& pattern, std::vector<std::int32_t> sizes) {
    TOPOPLACE_ASSERT(!sizes.empty());
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    if (pattern.num_edges() >= pattern.size() || sizes.front() >= pattern.size()) return 0;
    const Forest forest(pattern);
    if (forest.order.empty()) return 0;
    std::int32_t most = 0;
    std::int32_t last = kAbsent;
    for (const std::int32_t small : sizes) {
        std::int32_t large = 0;
        for (const std::int32_t size : sizes) large += size / (small + 1);
        if (large > kMostLarge) break;
        if (small == last) continue;
        last = small;
        const std::int64_t entries = std::int64_t{sizes.front() + 1} * (large + 1);
        if (pattern.size() * entries * entries > kMostSteps) continue;
        most = std::max(most, Cuts(forest, {sizes.front(), small, large}).fewest());
    }
    return most;
}

}  // namespace topoplace::match
