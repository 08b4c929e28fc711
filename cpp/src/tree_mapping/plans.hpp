// Plans: how many items each leaf takes, and in which sequence leaves are filled.
#pragma once

#include <vector>

#include "topoplace/stop_condition.hpp"
#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

using Plan = std::vector<Index>;  // of each place in an order, its leaf

// At most `most` different plans, the most promising ones first. The first ones put all items into one domain
// of each depth, the deepest first: the one with the least room that has enough. There and below, few domains
// take them: the fewest, and of these the ones with the least room together. Others take the largest domains,
// or skip depths. If others use uplinks, plans are also made with the domains with idle uplinks first. In
// later ones, each leaf that is used takes at least so many items, or domains take multiples of some number
// of them, or at most some number. There is room for all items; the first plan is made even where the search
// has to stop.
std::vector<Plan> plans_of(const Problem& problem, std::size_t most, WorkMeter& meter);

// With as many items in each domain of leaves as in a mapping, on the fewest leaves there.
Plan compacted(const Problem& problem, const std::vector<Index>& leaf_of);

}  // namespace topoplace::tree_mapping
