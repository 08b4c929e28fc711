// Checks of the arguments of a gang mapping.
#pragma once

#include "topoplace/gang_mapping.hpp"
#include "tree_mapping/problem.hpp"

namespace topoplace::gang_mapping {

// Throws std::invalid_argument naming the parameter, the index and the value that is out of range.
void check(const GangParams& params, const tree_mapping::Problem& problem);

}  // namespace topoplace::gang_mapping
