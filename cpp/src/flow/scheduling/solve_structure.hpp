// Solves scheduling graphs as the assignments they are.
#pragma once

#include <optional>

#include "topoplace/flow.hpp"

namespace topoplace::flow {

// Solves a scheduling graph; nothing if the network is none, is infeasible, or searches take too long.
// Timeout when `counter` stops.
std::optional<FlowResult> solve_structure(const Network& network, NodeCounter& counter);

}  // namespace topoplace::flow
