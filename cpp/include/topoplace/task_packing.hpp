// Groups of a job's tasks, packed into the tree of the domains of machines (group_packing.hpp).
//
// A group whose level crosses a higher one may be in several domains of the tree: it is `apart`. It goes
// where the other groups leave room in one domain of its own level. If there is no such domain, all ways to
// divide it among the parts of one domain are tried.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/domain_tree.hpp"
#include "topoplace/fault.hpp"
#include "topoplace/group_packing.hpp"
#include "topoplace/stop_condition.hpp"
#include "topoplace/together.hpp"

namespace topoplace::decide {

// Groups as `pack_groups` takes them: nested or disjoint, without those that others imply. Groups with a task
// in common are in the same domain of the outer one's level, and count there as one.
class TaskForest {
  public:
    // What is out of range.
    [[nodiscard]] static Fault check(std::span<const Together> together, std::span<const std::int32_t> tasks,
                                     std::int32_t num_tasks);
    // tasks: those that are placed. Groups apart, and their tasks, are not among the groups.
    TaskForest(std::span<const Together> together, std::span<const Together> apart,
               std::span<const std::int32_t> tasks, std::int32_t num_tasks);

    std::size_t size() const { return parent.size(); }
    // Of each group: its tasks in no group inside it.
    std::vector<std::int32_t> own() const;
    // Groups around it have to be there.
    void add(std::int32_t around, std::int32_t depth_of_domain, std::span<const std::int32_t> tasks);

    std::vector<std::int32_t> parent{-1}, depth{0};  // below 0: the depth of a group apart
    std::vector<std::int32_t> inner;                 // group of each task; -1 for those that are not placed
};

struct TaskPackingParams {
    const DomainTree* tree = nullptr;
    std::int32_t num_tasks = 1;
    std::span<const std::int32_t> tasks{};  // those that are placed
    std::vector<Together> together{};       // each in one domain; `apart` are further ones
    std::vector<Together> apart{};
    std::int32_t balanced = -1;  // level over whose domains the tasks are as even as possible; -1: none
    StopCondition stop{};        // of the search for even shares, and of any where no group is apart
};

struct TaskPacking {
    bool found = false;
    bool complete = true;  // false: the search was stopped, so a packing may exist all the same
    TaskForest forest;
    std::vector<groups::Share> shares{};  // leaves are domains of the tree
};

// The first parameter that is out of range.
[[nodiscard]] Fault check(const TaskPackingParams& params);

TaskPacking pack_tasks(const TaskPackingParams& params);

}  // namespace topoplace::decide
