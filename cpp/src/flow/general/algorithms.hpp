// The general algorithms, which solve any problem; one file each.
#pragma once

#include "flow/general/problem.hpp"
#include "topoplace/deadline.hpp"

namespace topoplace::flow {

// Each ends with the status `timeout` if `counter` stops.
Solution cost_scaling(const Problem& problem, NodeCounter& counter);
Solution network_simplex(const Problem& problem, NodeCounter& counter);
Solution successive_shortest_path(const Problem& problem, NodeCounter& counter);
Solution cycle_canceling(const Problem& problem, NodeCounter& counter);

// True if the costs are small enough for cost_scaling, which throws std::invalid_argument for others: prices
// fall by four times the largest cost, once for every node.
bool scalable(const Problem& problem);
// True if cost scaling is usually the faster of the general algorithms, as where many nodes supply one
// unit each.
bool prefers_scaling(const Problem& problem);

}  // namespace topoplace::flow
