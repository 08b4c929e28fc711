// Batches from the ends of phases, batches and collectives.
#include "decide/batches.hpp"

#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

Batch batch_of(const traffic::JobCollectives& job, std::size_t begin, std::size_t end) {
    const auto first = static_cast<std::size_t>(job.begin_of(begin));
    const auto last = static_cast<std::size_t>(job.ends[end - 1]);
    return {.kind = static_cast<traffic::Kind>(job.kinds[begin]),
            .size = (last - first) / (end - begin),
            .tasks = job.tasks.subspan(first, last - first),
            .gigabytes = job.gigabytes.subspan(begin, end - begin)};
}

}  // namespace

std::vector<Phase> phases_of(const traffic::JobCollectives& job) {
    std::vector<Phase> phases;
    std::size_t begin = 0, next = 0;
    for (const std::int64_t phase_end : job.phase_ends) {
        Phase& phase = phases.emplace_back();
        while (begin < static_cast<std::size_t>(phase_end)) {
            const std::size_t end =
                job.batch_ends.empty() ? begin + 1 : static_cast<std::size_t>(job.batch_ends[next++]);
            phase.push_back(batch_of(job, begin, end));
            begin = end;
        }
    }
    return phases;
}

bool are_apart(const Batch& batch, std::size_t num_tasks) {
    std::vector<bool> seen(num_tasks, false);
    for (const std::int32_t task : batch.tasks) {
        if (seen[index(task)]) return false;
        seen[index(task)] = true;
    }
    return true;
}

}  // namespace topoplace::decide
