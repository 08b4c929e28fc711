// The general algorithms, which solve any problem; one file each.
#pragma once

#include "flow/general/problem.hpp"
#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::flow {

// Each ends with the status `timeout` if `meter` stops.
Solution cost_scaling(const Problem& problem, WorkMeter& meter);
Solution network_simplex(const Problem& problem, WorkMeter& meter);
Solution successive_shortest_path(const Problem& problem, WorkMeter& meter);
Solution cycle_canceling(const Problem& problem, WorkMeter& meter);

// True if the costs are small enough for cost_scaling: prices fall by four times the largest cost, once for
// every node.
bool scalable(const Problem& problem);
[[nodiscard]] Fault check_scaling(const Problem& problem);
// True if cost scaling is usually the faster of the general algorithms, as where many nodes supply one
// unit each.
bool prefers_scaling(const Problem& problem);

}  // namespace topoplace::flow
