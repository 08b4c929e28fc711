// Plans for rings: every domain that joins its vertices by rings of its own gets enough items for many
// channels.
#pragma once

#include <cstdint>
#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::gang_mapping {

using tree_mapping::Index;
using Plan = std::vector<Index>;  // leaf of each item, in their order

// Which domains a block of items gets: those that are near each other, those with the most room wherever they
// are, or as many as it can fill, with the least room.
enum class Choice : std::uint8_t { kNear, kLargest, kTightest };

// Fills the tree with one block of items after the other, so that each domain of `depth` gets none or at
// least `least` items of a block, and no leaf more than `room`; empty where that is not found.
Plan ring_plan(const tree_mapping::Problem& problem, std::vector<Index> room, Index depth, Index least,
               Index block, Choice choice);

}  // namespace topoplace::gang_mapping
