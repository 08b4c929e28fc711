// Estimates where the values of an assignment's targets will end, by coordinate ascent on its dual.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/scheduling/assignment/assignment.hpp"

namespace topoplace::flow {

// Returns a value for each target. Goes on for `rounds` at most, as long as each raises the dual; one takes
// two passes over all options.
std::vector<std::int64_t> estimate_values(const Assignment& assignment, std::int32_t rounds);

// Gives all places these values.
void set_values(Assignment& assignment, const std::vector<std::int64_t>& values);

}  // namespace topoplace::flow
