// The levels of a large graph: each half as large as the one before, its vertices pairs of the finer one's.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/problem.hpp"
#include "partition/refine.hpp"
#include "topoplace/random.hpp"

namespace topoplace::partition {

// A graph whose vertices stand for one or two of a finer graph's.
struct Level {
    IntegerGraph graph;
    std::vector<std::int64_t> vertex_weights;
    std::vector<std::int8_t> fixed;
    std::vector<std::int32_t> coarse_of;  // of each vertex of the finer graph
};

// The coarser graph. A vertex is matched with the free neighbor its heaviest edge leads to, the lightest of
// these where several do (Karypis and Kumar's heavy-edge matching); no two whose sides are fixed differently,
// none that together weigh more than `heaviest`. Vertices are asked in a random order.
Level coarsen(const RefineTask& task, std::int64_t heaviest, Random& random);

}  // namespace topoplace::partition
