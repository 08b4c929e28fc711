// Lower bounds on the time of any mapping.
#pragma once

#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

struct Least {
    double seconds = 0.0;          // no mapping takes less time in all
    std::vector<double> phases{};  // nor in each phase; several may not be possible at once
};

// Less, but true, if the search has to stop.
Least least_times(const Problem& problem, WorkMeter& meter);

}  // namespace topoplace::tree_mapping
