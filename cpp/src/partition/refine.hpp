// Fiduccia-Mattheyses refinement: passes of single-vertex moves over a side vector.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "partition/gain_queue.hpp"
#include "partition/problem.hpp"

namespace topoplace::partition {

// How good a division is: first how much weight is too much on its sides, then what it cuts. Less is better.
struct Score {
    std::int64_t excess = 0;
    std::int64_t cut = 0;

    auto operator<=>(const Score&) const = default;
};

// What a run improves: a side vector, and what is known of it.
struct Division {
    std::vector<std::int8_t> side;
    std::array<std::int64_t, 2> held{};
    Score score;
    std::vector<std::int32_t> boundary;  // with every vertex that has a neighbor on the other side
    std::int64_t start_cut = -1;         // of the balanced start it grew from; -1: that was not balanced
};

// The memory of a run.
struct RefineMemory {
    std::vector<std::int64_t> gains;     // of the vertices known
    std::vector<std::int64_t> external;  // weight of the edges to the other side, of the vertices known
    std::vector<std::uint8_t> state;     // of each vertex
    std::vector<std::int32_t> known;     // vertices whose gain is kept
    std::vector<std::int32_t> moved;
    std::array<BucketQueue, 2> buckets;
    std::array<HeapQueue, 2> heaps;
};

struct RefineTask {
    const IntegerGraph& graph;
    std::span<const std::int64_t> vertex_weights{};  // empty: all 1
    std::span<const std::int8_t> fixed{};            // empty: all free
    std::array<std::int64_t, 2> limits{};
    std::int64_t slack = 0;         // by how much a side may exceed its limit: coarse vertices are too heavy
    std::int64_t largest_gain = 0;  // the largest weighted degree
    bool buckets = false;           // else heaps

    std::int64_t vertex_weight(std::size_t v) const {
        TOPOPLACE_ASSERT(v < graph.size() && (vertex_weights.empty() || vertex_weights[v] >= 0));
        return vertex_weights.empty() ? 1 : vertex_weights[v];
    }
    bool is_free(std::size_t v) const { return fixed.empty() || fixed[v] == kFreeVertex; }
    bool is_balanced(const std::array<std::int64_t, 2>& held) const {
        return held[0] <= limits[0] && held[1] <= limits[1];
    }
    std::int64_t excess(const std::array<std::int64_t, 2>& held, std::int64_t allowed) const {
        return std::max<std::int64_t>(0, held[0] - limits[0] - allowed) +
               std::max<std::int64_t>(0, held[1] - limits[1] - allowed);
    }
    // Sets `largest_gain`, and `buckets` where they serve.
    void measure_gains(bool buckets_allowed);
};

// Sets what the division holds, and how much of it is too much, from its sides.
void weigh(const RefineTask& task, Division& division);

// Sets its score and its boundary as well.
void measure(const RefineTask& task, Division& division);

// Passes until one improves nothing or the search is stopped; counts its work in `result`. A division that
// keeps the limits without slack keeps them. Once the search is stopped, boundaries are not kept up.
void refine(const RefineTask& task, Division& division, RefineMemory& memory, WorkMeter& meter,
            BipartitionResult& result);

}  // namespace topoplace::partition
