// Packs the groups that the tree can hold; groups apart come beside them.
#include "topoplace/task_packing.hpp"

#include <algorithm>

#include "decide/apart_groups.hpp"
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

constexpr std::uint64_t kMostNodes = 1U << 20;

}  // namespace

Fault check_groups(std::span<const Together> groups, std::size_t levels, std::int32_t num_tasks) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const Together& one = groups[i];
        if (one.level >= levels) return traffic::wrong("level", i, one.level, "not a level");
        if (one.tasks.empty()) return "a group has no tasks";
        if (auto fault = traffic::check_once("group", one.tasks, index(num_tasks))) return fault;
    }
    return std::nullopt;
}

groups::PackResult packed(const DomainTree& tree, std::span<const std::int32_t> room,
                          const TaskForest& forest, std::int32_t balanced, StopCondition stop) {
    const std::vector<std::int32_t> own = forest.own();
    stop.max_nodes = kMostNodes;
    return groups::pack_groups({.parent = tree.parent(),
                                .room = room,
                                .group_parent = forest.parent,
                                .group_depth = forest.depth,
                                .own_tasks = own,
                                .balanced = balanced < 0 ? -1 : balanced + 1,
                                .stop = stop});
}

Fault TaskForest::check(std::span<const Together> together, std::span<const std::int32_t> tasks,
                        std::int32_t num_tasks) {
    if (num_tasks < 1) return traffic::wrong("num_tasks", 0, num_tasks, "below 1");
    if (auto fault = traffic::check_once("tasks", tasks, index(num_tasks))) return fault;
    return check_groups(together, index(INT32_MAX), num_tasks);
}

Fault check(const TaskPackingParams& params) {
    if (params.tree == nullptr || params.tree->num_leaves() == 0) return "a tree with leaves is missing";
    if (auto fault = TaskForest::check({}, params.tasks, params.num_tasks)) return fault;
    const std::size_t levels = params.tree->num_depths() - 1;
    for (const auto* some : {&params.together, &params.apart}) {
        if (auto fault = check_groups(*some, levels, params.num_tasks)) return fault;
    }
    if (params.balanced < -1 || params.balanced >= static_cast<std::int32_t>(levels))
        return traffic::wrong("balanced", 0, params.balanced, "not a level");
    return std::nullopt;
}

TaskPacking pack_tasks(const TaskPackingParams& params) {
    if (!params.apart.empty()) return pack_apart(params);
    TaskPacking found{.forest = TaskForest(params.together, {}, params.tasks, params.num_tasks)};
    groups::PackResult made =
        packed(*params.tree, params.tree->room(), found.forest, params.balanced, params.stop);
    found.found = made.found;
    found.complete = made.found || made.complete;
    found.shares = std::move(made.shares);
    return found;
}

}  // namespace topoplace::decide
