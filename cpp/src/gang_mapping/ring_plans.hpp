// Plans for rings: every domain that joins its vertices by rings of its own gets enough items for many
// channels.
#pragma once

#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::gang_mapping {

using Index = tree_mapping::Index;
using Plan = std::vector<Index>;  // leaf of each item, in their order

// Fills the tree from the top down with one block of items after the other, so that each domain of `depth`
// gets none or at least `least` items of a block, and no leaf more than `room`; empty where that is not
// found. A block is in domains that are near each other, or else in those with the most room, wherever they
// are.
Plan ring_plan(const tree_mapping::Problem& problem, std::vector<Index> room, Index depth, Index least,
               Index block, bool near);

}  // namespace topoplace::gang_mapping
