// A network as the general algorithms take it: no lower bounds, no loops, no infinite capacity, supplies and
// demands in balance; and the way back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topoplace/flow.hpp"

namespace topoplace::flow {

struct Problem {
    std::int32_t num_nodes = 0;
    std::vector<std::int32_t> tail;
    std::vector<std::int32_t> head;
    std::vector<std::int64_t> capacity;  // at most 2^61, like the sum of all supplies
    std::vector<std::int64_t> cost;
    std::vector<std::int64_t> supply;  // sums to zero
};

struct Solution {
    Status status = Status::timeout;  // optimal, infeasible or timeout
    std::vector<std::int64_t> flow;
    std::vector<std::int64_t> potential;
};

// One file each: cost_scaling.cpp, network_simplex.cpp, successive_shortest_path.cpp, cycle_canceling.cpp.
Solution cost_scaling(const Problem& problem, NodeCounter& counter);
Solution network_simplex(const Problem& problem, NodeCounter& counter);
Solution successive_shortest_path(const Problem& problem, NodeCounter& counter);
Solution cycle_canceling(const Problem& problem, NodeCounter& counter);

}  // namespace topoplace::flow
