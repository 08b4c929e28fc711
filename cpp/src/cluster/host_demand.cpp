// The first tasks of a job have one unit of CPUs more than the others if it can't be divided evenly.
#include "topoplace/host_demand.hpp"

#include <algorithm>
#include <string>

namespace topoplace {
namespace {

std::int64_t tasks_with(std::int64_t cpus, const HostDemand& job, bool at_best) {
    const std::int64_t each = job.cpus / job.num_tasks, with_more = job.cpus % job.num_tasks;
    const std::int64_t of_more = cpus / (each + 1);
    if (!at_best && of_more < with_more) return of_more;
    if (each == 0) return job.num_tasks;
    return (at_best ? cpus : cpus - with_more) / each;
}

}  // namespace

Fault check(const HostDemand& job) {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    if (job.num_tasks < 1 || job.num_tasks > INT32_MAX)
        return "num_tasks = " + std::to_string(job.num_tasks) + ": not in 1..2^31 - 1";
    if (job.unit < 1 || job.unit > kMost) return "unit = " + std::to_string(job.unit) + ": not in 1..2^53";
    for (const std::int64_t amount :
         {job.cpus, job.megabytes, job.least_megabytes, job.whole.cpus, job.whole.megabytes}) {
        if (amount < 0 || amount > kMost)
            return "an amount of a job is " + std::to_string(amount) + ": not in 0..2^53";
    }
    return std::nullopt;
}

std::int64_t tasks_hosted(const HostDemand& job, const HostAmounts& free, bool at_best) {
    if (free.cpus < 0 || free.megabytes < 0) return 0;
    if (free.cpus >= job.whole.cpus && free.megabytes >= job.whole.megabytes) return job.num_tasks;
    const std::int64_t tasks = std::min(job.num_tasks - 1, tasks_with(free.cpus / job.unit, job, at_best));
    const std::int64_t megabytes = at_best ? job.least_megabytes : job.megabytes;
    return megabytes > 0 ? std::min(tasks, free.megabytes / megabytes) : tasks;
}

}  // namespace topoplace
