// How many edges a few vertices of a sparse graph, such as a torus of which a part is busy, have among them
// at most.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "match/graphs/ragged.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::match {

// For each number of vertices up to `most`: no set of that size has more edges among its vertices. neighbors:
// of every vertex, so that each edge is there twice. None where `meter` stops.
std::optional<std::vector<std::int32_t>> densest_sets(const Ragged<std::int32_t>& neighbors,
                                                      std::int32_t size, std::int32_t most, WorkMeter& meter);

}  // namespace topoplace::match
