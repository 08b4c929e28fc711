// The levels of a large graph: each a contraction of the one before, its vertices clusters of the finer
// one's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "partition/problem.hpp"
#include "partition/refine.hpp"
#include "topoplace/random.hpp"

namespace topoplace::partition {

// A graph whose vertices stand for clusters of a finer graph's.
struct Level {
    IntegerGraph graph;
    std::vector<std::int64_t> vertex_weights;
    std::vector<std::int8_t> fixed;
    std::vector<std::int32_t> coarse_of;  // of each vertex of the finer graph

    // Dividing this level; sides may hold its heaviest vertex more than `limits`.
    RefineTask task(const std::array<std::int64_t, 2>& limits, bool buckets_allowed) const;
};

// The memory that making levels shares.
struct CoarsenMemory {
    std::vector<std::int32_t> order;    // in which vertices are asked
    std::vector<std::int64_t> weight;   // of each cluster
    std::vector<std::int32_t> end;      // of each cluster, in members
    std::vector<std::int32_t> members;  // fine vertices by cluster
    std::vector<std::int64_t> place;    // of each coarse neighbor in the row that is written
};

// Makes the coarser graph; false where the search was stopped. Vertices are asked in their own order, in
// which meshes often lie well, and where `side` is given, which calls for another graph each time, in one a
// little shuffled; one that is alone joins the neighbor or the neighbor's cluster for which w^2 / c is
// largest, where w is the weight of the edge and c what that neighbor or cluster weighs: this rating by edge
// and cluster weight is the "expansion*2" of Holtgrewe, Sanders and Schulz (IPDPS 2010). No two join whose
// sides are fixed differently or which `side`, where given, has on different sides; none that together weigh
// more than `heaviest`.
bool coarsen(Level& level, const RefineTask& task, std::int64_t heaviest,
             const std::vector<std::int8_t>* side, Random& random, WorkMeter& meter, CoarsenMemory& memory);

// A side vector of the finer graph, as one of the level's.
std::vector<std::int8_t> lifted(const Level& level, const std::vector<std::int8_t>& side);

}  // namespace topoplace::partition
