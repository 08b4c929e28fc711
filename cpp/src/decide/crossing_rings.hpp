// Rings of two phases that have few tasks in common, as those of two dimensions of a job have.
//
// A machine with k tasks is passed by p rings of one phase and q of the other. If any two of them have at
// most c tasks in common, p q c is at least k. So rings of one phase are inside machines, or few pass them,
// only if many of the other phase do; and they share the adapters of k GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decide/batches.hpp"
#include "topoplace/gang_bounds.hpp"
#include "topoplace/gang_units.hpp"

namespace topoplace::decide {

// Rings of equal size in a phase; each task is in one of them.
struct PhaseRings {
    std::size_t phase = 0;
    std::size_t size = 0;
    double gigabytes = 0.0;               // of a ring, at least
    std::vector<std::int32_t> tasks{};    // ring after ring
    std::vector<std::int32_t> ring_of{};  // of each task

    std::size_t count() const { return tasks.size() / size; }
    std::span<const std::int32_t> row(std::size_t ring) const {
        return std::span(tasks).subspan(ring * size, size);
    }
    // The fewest rings that together have this number of tasks.
    std::int64_t fewest(std::int64_t of_tasks) const {
        const auto own = static_cast<std::int64_t>(size);
        return (of_tasks + own - 1) / own;
    }
};

// Of phases that have such: the few with the most GB in each ring, as pairs of phases are compared.
std::vector<PhaseRings> rings_of_phases(std::span<const Phase> phases, std::size_t num_tasks);

// The most tasks that a ring of one phase has in common with one of the other.
std::int64_t most_in_common(const PhaseRings& one, const PhaseRings& other);

// Some machine has no more tasks than this, as larger ones have too little room together; 0 without room.
std::int64_t most_of_some_machine(std::vector<std::int64_t> rooms, std::int64_t num_tasks);

// The least seconds of `count` rings that together have `tasks` on a machine. Rings that are not inside pass
// its adapters. One of them has no more tasks there than rings have on average, and uses the adapters of
// these.
double seconds_of_passing(const GangLimits& limits, const PhaseRings& rings, std::int64_t tasks,
                          std::int64_t count);

// Blocks of the tasks that as many rings of one phase and of another have in common as is fastest on machines
// of these rooms; none where such blocks are not all equally large. Of three phases or more, those of the
// slowest two.
GangUnits block_units(const GangLimits& limits, const traffic::JobCollectives& job, std::int32_t num_tasks,
                      const std::vector<std::int64_t>& rooms);

}  // namespace topoplace::decide
