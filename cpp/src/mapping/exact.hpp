// Branch and bound for the least cost, and of all mappings of that cost the lexicographically smallest.
#pragma once

#include "mapping/problem.hpp"
#include "topoplace/deadline.hpp"

namespace topoplace::mapping {

struct Proven {
    Places places;
    double cost = 0;
    double bound = 0;       // no mapping costs less
    bool complete = false;  // then `cost` is the least, and ties were broken to the end
};

// `start`: some mapping.
Proven prove(const Problem& problem, const Places& start, NodeCounter& counter);

}  // namespace topoplace::mapping
