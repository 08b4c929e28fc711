// What binds the tasks of a gang to each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/gang_levels.hpp"
#include "topoplace/gpu_distances.hpp"
#include "topoplace/together.hpp"

namespace topoplace::decide {

struct GangGroups {
    // The levels into which groups are packed, the machines last; null: nothing binds the tasks. Groups, and
    // `balanced`, name these.
    const GangLevels* tree = nullptr;
    std::vector<std::size_t> level_of{};  // of each of these levels: the same level of the search
    std::vector<Together> required{}, apart{}, preferred{};  // as in TaskDivisionParams
    std::int32_t balanced = -1;
    bool on_machine = false;  // some group has to be within one machine
    // The outermost level of the search that a group names; others may use uplinks outside it.
    std::size_t outermost = SIZE_MAX;
    std::vector<std::span<const std::int32_t>> roles{};  // the tasks of each
    const GpuDistances* distances = nullptr;             // null: tasks are not exchanged after a division

    bool bind() const { return !required.empty() || !apart.empty() || !preferred.empty() || balanced >= 0; }
};

// The first thing that is out of range; levels: those of the search.
[[nodiscard]] Fault check(const GangGroups& groups, const GangLevels& levels, std::int32_t num_tasks);

}  // namespace topoplace::decide
