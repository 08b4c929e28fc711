// Branch and bound for the least cost.
#pragma once

#include <optional>

#include "mapping/problem/problem.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::mapping {

enum class Ties {
    keep,    // a mapping as good as the start is not looked for
    broken,  // of all mappings of least cost the lexicographically smallest, in the order of placing
};

struct Proven {
    Places places;
    double bound = 0;       // no mapping costs less
    bool complete = false;  // then none costs less than `places`, and ties are broken as asked
};

// `start`: some mapping. None where `meter` stops before the search begins.
std::optional<Proven> prove(const Problem& problem, const Places& start, Ties ties, WorkMeter& meter);

}  // namespace topoplace::mapping
