// Chains of displacements: each task takes its best place, raises the price by what its second best would
// cost more, and the task that was there goes on.
//
// This is the augmenting row reduction of Jonker and Volgenant ("A shortest augmenting path algorithm for
// dense and sparse linear assignment problems", Computing 38, 1987). It only displaces from places of one
// task, where a raise concerns nobody else. Searches are still needed for the tasks left over.
#pragma once

#include "flow/scheduling/assignment/assignment.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::flow {

// Takes the tasks that wait through chains until `meter` stops, and lists those left over. Keeps both
// invariants.
void displace(Assignment& assignment, WorkMeter& meter);

}  // namespace topoplace::flow
