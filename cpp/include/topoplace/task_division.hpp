// Which machine gets which tasks of a job with groups.
//
// Required groups are each in one domain, and few domains are used from the top down (task_packing.hpp).
// Preferred groups are required one after the other, as many as possible, the largest first. For less
// communication between machines, equal groups, and the tasks of each group, are then exchanged
// (distribution.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/gpu_distances.hpp"
#include "topoplace/task_packing.hpp"

namespace topoplace::decide {

struct TaskDivisionParams {
    const DomainTree* tree = nullptr;
    std::int32_t num_tasks = 1;
    std::vector<Together> required{}, apart{};  // as in TaskPackingParams
    std::vector<Together> preferred{};
    std::int32_t balanced = -1;
    std::span<const double> edges{};  // (e, 3) two tasks, the lower one first, and GB between them; sorted
    const GpuDistances* distances = nullptr;  // null without edges
    std::span<const std::int32_t> gpus{};     // of each leaf, the one from which distances count
    StopCondition stop{};
    // What makes the first division better ends at this time, too.
    std::chrono::steady_clock::time_point better_until = std::chrono::steady_clock::time_point::max();
};

struct TaskDivision {
    bool found = false;
    bool complete = true;  // false: the search was stopped, so a division may exist all the same
    std::vector<std::int32_t> leaf_of{};  // of each task: the number from 0 of a leaf
};

// The first parameter that is out of range.
[[nodiscard]] Fault check(const TaskDivisionParams& params);

TaskDivision divide_tasks(const TaskDivisionParams& params);

// Whether there is a division.
bool can_be_divided(const TaskDivisionParams& params);

}  // namespace topoplace::decide
