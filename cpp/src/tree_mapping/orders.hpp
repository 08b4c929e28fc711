// Orders of the items in which those that exchange much follow each other.
#pragma once

#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

using Order = std::vector<Index>;

// At most `most` different orders, that of the items' numbers first.
std::vector<Order> orders_of(const Problem& problem, std::size_t most);

}  // namespace topoplace::tree_mapping
