// Orders of the items in which those that exchange much follow each other.
#pragma once

#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

using Order = std::vector<Index>;

// At most `most` different orders, that of the items' numbers first: it alone where the search has to stop.
std::vector<Order> orders_of(const Problem& problem, std::size_t most, WorkMeter& meter);

// The three phases of most GB, that of the most first; fewer if there are not so many.
std::vector<Index> main_phases(const Problem& problem);

}  // namespace topoplace::tree_mapping
