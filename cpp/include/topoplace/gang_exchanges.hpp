// What the units of a gang exchange: groups of tasks that are together on one machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/job_traffic.hpp"

namespace topoplace::decide {

// Tasks that are together on one machine: `size` of each unit, unit after unit; each task is in one.
struct Units {
    std::span<const std::int32_t> tasks{};
    std::int32_t size = 1;

    std::int32_t count() const { return static_cast<std::int32_t>(tasks.size()) / size; }
};

// The first thing of the collectives or the units that is out of range.
[[nodiscard]] Fault check(const traffic::JobCollectives& job, const Units& units);

std::vector<std::int32_t> unit_of_tasks(const Units& units);

// What two units exchange in a phase, each pair once.
struct Exchanges {
    std::vector<std::int64_t> phase_ends{};  // pairs of each phase and those before it
    std::vector<std::int32_t> from{}, to{};  // from < to; in each phase ascending
    std::vector<double> gigabytes{};         // both directions together
};

// What is exchanged inside a unit does not count; nor do collectives that run in rings, unless `rings`.
Exchanges exchanges_of(const traffic::JobCollectives& job, const Units& units, bool rings);

// GB of the largest flow in one direction in each phase; those inside a unit do not count.
std::vector<double> largest_flows(const traffic::JobCollectives& job, const Units& units);

}  // namespace topoplace::decide
