// The proof: branch and bound over the side vectors of at most kMaxExactVertices vertices.
#pragma once

#include <array>
#include <cstdint>

#include "partition/problem.hpp"

namespace topoplace::partition {

// Fills `side`, `status`, `complete`, `optimal` and `nodes` of the result.
void prove(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
           BipartitionResult& result);

}  // namespace topoplace::partition
