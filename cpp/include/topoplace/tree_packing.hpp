// Spanning trees that reach the throughput bound of an all-gather (Zhao et al., ForestColl, arXiv
// 2402.06787).
//
// Each chosen terminal sends what it holds to all others over trees with itself as the root. All trees have
// one rate, every root has equally many, and together they fit the capacities; `throughput_bound` proves that
// no schedule is faster. A hop of a tree leads from a terminal to another one, directly or through vertices
// that only forward.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/terminal_cuts.hpp"

namespace topoplace::collective {

// Some copies of a tree's hop, over the vertices from one terminal to the next.
struct HopWay {
    std::vector<std::int32_t> vertices{};
    std::int64_t count = 0;
};

// A hop of all copies of a tree.
struct TreeHop {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::vector<HopWay> ways{};  // their counts add up to the tree's
};

struct Tree {
    std::int32_t root = 0;
    std::int64_t count = 0;       // of equal trees
    std::vector<TreeHop> hops{};  // a hop begins where an earlier one ended, or at the root
};

struct TreePacking {
    std::vector<Tree> trees{};
    std::int64_t per_root = 0;        // 0: some terminal cannot be reached
    std::int64_t rate_numerator = 0;  // the rate of one tree is rate_numerator / rate_denominator
    std::int64_t rate_denominator = 1;
    bool complete = true;     // false: the search was stopped, and there are no trees
    std::uint64_t flows = 0;  // maximum flows computed
};

// What `check` says, more than 512 vertices that take part, or a vertex that only forwards and whose arcs
// into it do not have the capacity of those out of it.
[[nodiscard]] Fault check_trees(const TerminalGraph& graph, const CutParams& params);

TreePacking pack_trees(const TerminalGraph& graph, const CutParams& params);

// Checks trees by the definition alone: that every root has its number of trees, each tree reaches all chosen
// terminals hop by hop over arcs there are, and all together fit the capacities.
Fault verify_trees(const TerminalGraph& graph, const CutParams& params, const TreePacking& found);

}  // namespace topoplace::collective
