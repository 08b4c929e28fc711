// How many edges a few vertices of a sparse graph, such as a torus of which a part is busy, have among them
// at most.
#pragma once

#include <cstdint>
#include <vector>

#include "match/graphs/ragged.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::match {

// By number of vertices up to `most`: no set of so many has more edges among them. neighbors: of every
// vertex, each edge from both ends. Throws Stopped where `meter` stops.
std::vector<std::int32_t> densest_sets(const Ragged<std::int32_t>& neighbors, std::int32_t size,
                                       std::int32_t most, WorkMeter& meter);

}  // namespace topoplace::match
