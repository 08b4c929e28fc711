// Plans for rings: every domain that joins its vertices by rings of its own gets enough items for many
// channels.
#pragma once

#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::gang_mapping {

using Index = tree_mapping::Index;
using Plan = std::vector<Index>;  // leaf of each item, in their order

// Fills the tree from the top down, so that each domain of `depth` gets none or at least `least` items, and
// no leaf more than `room`; empty where that cannot be.
Plan ring_plan(const tree_mapping::Problem& problem, const std::vector<Index>& room, Index depth,
               Index least);

}  // namespace topoplace::gang_mapping
