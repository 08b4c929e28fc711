// The units of a gang: tasks that are mapped as a whole, as a group that one machine has to have, or one of
// the dimension in which a task exchanges the most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/gang_exchanges.hpp"

namespace topoplace::decide {

struct TaskGroups {
    std::int32_t num_tasks = 0;
    bool are_stated = false;  // the job states its collectives, so that their groups may be units
    std::vector<std::span<const std::int32_t>> on_machine{};  // groups that must each be on one machine
    std::vector<std::span<const std::int32_t>> in_domain{};   // groups that must each be in one larger domain
};

[[nodiscard]] Fault check(const TaskGroups& groups);

struct GangUnits {
    std::vector<std::int32_t> tasks{};
    std::int32_t size = 1;

    Units view() const { return {tasks, size}; }
};

// Groups on one machine, or else those of the first dimension, if they are equally large, no group of a
// larger domain divides them, and machines have room for all of them; else single tasks. The job and the
// groups pass their checks. most: tasks on one machine; sizes: of machines, the most tasks.
GangUnits first_units(const traffic::JobCollectives& job, const TaskGroups& groups, std::int32_t most,
                      std::span<const std::int32_t> sizes);

// Such groups of a dimension in which less is exchanged; none if there are none.
GangUnits further_units(const traffic::JobCollectives& job, const TaskGroups& groups, std::int32_t most,
                        std::span<const std::int32_t> sizes);

GangUnits single_tasks(std::int32_t num_tasks);

}  // namespace topoplace::decide
