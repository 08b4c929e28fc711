// Proofs that a network has no optimal flow.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/general/problem.hpp"
#include "topoplace/deadline.hpp"

namespace topoplace::flow {

// Nodes that together supply more than their outgoing arcs take; empty where all supplies can be sent, or
// `counter` stops.
std::vector<std::int32_t> blocking_cut(const Problem& problem, NodeCounter& counter);

// Arcs of infinite capacity that close a cycle of negative cost; empty where there are none, or `counter`
// stops.
std::vector<std::int32_t> endless_cycle(const Network& network, NodeCounter& counter);

}  // namespace topoplace::flow
