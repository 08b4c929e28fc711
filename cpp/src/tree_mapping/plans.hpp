// Plans: how many items each leaf takes, and in which sequence leaves are filled.
#pragma once

#include <vector>

#include "topoplace/stop_condition.hpp"
#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

using Plan = std::vector<Index>;  // of each place in an order, its leaf

// At most `most` different plans: in each, few domains from the top down, the largest first and at last the
// smallest that suffices; of those that take as much, the ones with the least room. If others use
// uplinks, each plan is also made with the domains with idle uplinks first. In later ones, leaves and
// domains take multiples of some number of items, or at most some number of them. There is room for all
// items; the first plan is made even where the search has to stop.
std::vector<Plan> plans_of(const Problem& problem, std::size_t most, WorkMeter& meter);

}  // namespace topoplace::tree_mapping
