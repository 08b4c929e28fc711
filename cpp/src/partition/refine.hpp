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

// What a run improves: a side vector, the weight each side holds, and its score.
struct Division {
    std::vector<std::int8_t> side;
    std::array<std::int64_t, 2> held{};
    Score score;
};

// The memory of a run.
struct RefineMemory {
    std::vector<std::int64_t> gains;
    std::vector<std::uint8_t> locked;
    std::vector<std::int32_t> moved;
    std::array<BucketQueue, 2> buckets;
    std::array<HeapQueue, 2> heaps;
};

struct RefineTask {
    const IntegerGraph& graph;
    std::span<const std::int64_t> vertex_weights;  // empty: all 1
    std::span<const std::int8_t> fixed;            // empty: all free
    std::array<std::int64_t, 2> limits{};
    std::int64_t largest_gain = 0;  // the largest weighted degree
    bool buckets = false;           // else heaps

    std::int64_t vertex_weight(std::size_t v) const { return vertex_weights.empty() ? 1 : vertex_weights[v]; }
    bool is_free(std::size_t v) const { return fixed.empty() || fixed[v] == -1; }
    std::int64_t excess(const std::array<std::int64_t, 2>& held) const {
        return std::max<std::int64_t>(0, held[0] - limits[0]) +
               std::max<std::int64_t>(0, held[1] - limits[1]);
    }
};

// Sets what the division holds, and its score, from its sides.
void measure(const RefineTask& task, Division& division);

// Passes until one improves nothing or the deadline has passed; counts its work in `result`.
void refine(const RefineTask& task, Division& division, RefineMemory& memory, NodeCounter& counter,
            BipartitionResult& result);

}  // namespace topoplace::partition
