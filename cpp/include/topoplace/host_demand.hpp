// How many tasks of a job the CPUs and memory of a machine suffice for.
#pragma once

#include <cstdint>

#include "topoplace/fault.hpp"
#include "topoplace/machine_conditions.hpp"

namespace topoplace {

// What a job needs of its machines. On one machine the job has its own processes, on several each task is
// one.
struct HostDemand {
    std::int64_t num_tasks = 1;
    std::int64_t cpus = 0;                         // of all tasks, in units
    std::int64_t unit = 1;                         // thousandths of a CPU; a process gets whole units
    std::int64_t megabytes = 0;                    // of a task, rounded up
    std::int64_t least_megabytes = 0;              // rounded down
    HostAmounts whole{.cpus = 0, .megabytes = 0};  // of the whole job on one machine
};

// Numbers that are out of range.
[[nodiscard]] Fault check(const HostDemand& job);

// Tasks with more CPUs than others count first, so the number may be too small for others. at_best: they
// count last, and memory is rounded down; the number is then never too small.
std::int64_t tasks_hosted(const HostDemand& job, const HostAmounts& free, bool at_best);

}  // namespace topoplace
