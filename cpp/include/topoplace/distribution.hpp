// Distribution: divide the tasks of a source graph among blocks of limited room, such as machines, so that
// what they exchange travels a short way. Where a task is inside its block does not matter.
//
// The cost is the sum over source edges (a, b) of weight(a, b) * distance(block of a, block of b). Distances
// are symmetric, finite and not negative; that on the diagonal is between tasks of one block. Two costs that
// differ by less than 1e-12 of what the dearest distribution could cost count as equal.
//
// The entry point is `distribute`; cpp/src/mapping/blocks/distribute.cpp describes its method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::mapping {

struct DistributeParams {
    std::span<const std::int32_t> room{};  // the most tasks that each block may have
    std::span<const double> distance{};    // blocks x blocks, row-major
    std::int32_t starts = 4;               // bisections, each with its own seed
    std::uint64_t seed = 0;                // of the first one
    StopCondition stop{};
};

struct DistributeResult {
    bool found = false;                    // false: more tasks than room
    std::vector<std::int32_t> block_of{};  // the block of each task
    double cost = 0;
    double bound = 0;             // no distribution costs less
    bool optimal = false;         // none costs less than `block_of`
    bool complete = true;         // false: the search was stopped early
    std::uint64_t exchanges = 0;  // moves and swaps made by refinement
};

// The parameter, the index and the value that is out of range.
[[nodiscard]] Fault check(const Source& source, const DistributeParams& params);

// Blocks that are near each other should have near numbers.
DistributeResult distribute(const Source& source, const DistributeParams& params);

// Checks a result by the definition alone: a block for each task, no block over its room, and `cost` theirs
// to within 1e-9 of the dearest distribution's.
Fault verify_distribution(const Graph& source, const DistributeParams& params,
                          std::span<const std::int32_t> block_of, double cost);

}  // namespace topoplace::mapping
