// Lower bounds on the time of any mapping.
#pragma once

#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

// No mapping takes less time in all.
double least_seconds(const Problem& problem);

// No mapping takes less time in each phase; several may not be possible at once.
std::vector<double> least_phase_seconds(const Problem& problem);

}  // namespace topoplace::tree_mapping
