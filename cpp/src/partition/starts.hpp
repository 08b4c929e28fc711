// Where the heuristic begins: side vectors made without looking back.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/refine.hpp"
#include "topoplace/random.hpp"

namespace topoplace::partition {

// The memory of a start.
struct StartMemory {
    std::vector<std::int32_t> queue;
    std::vector<std::uint8_t> reached;
};

// Side 0 grown breadth first from the vertices fixed to it, then from random ones, until it holds `share`.
void grow(const RefineTask& task, std::int64_t share, Random& random, StartMemory& memory,
          std::vector<std::int8_t>& side);

// All on the side that may hold more: refinement moves off it what is too much, cheapest first.
std::vector<std::int8_t> gathered(const RefineTask& task);

// About what it cuts to move off that side, of all vertices there, those of the least degree (in edge weight)
// until it is balanced, if no two of them are neighbors.
double shedding_cost(const RefineTask& task);

// Heaviest first, each to the side with more room: for weights that growing does not balance.
std::vector<std::int8_t> packed(const RefineTask& task);

}  // namespace topoplace::partition
