// Chains of displacements, in passes over the tasks that wait.
#include "flow/scheduling/start/displacement.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

constexpr int kPasses = 4;
constexpr std::uint64_t kTimePerOption = 16;  // in steps of the meter
constexpr std::size_t kMostSteps = 16;        // of all chains of a pass, for each task that waits

// The two best places of a task.
struct Best {
    std::int64_t first = kFar;
    std::int64_t second = kFar;
    std::int32_t option = kAbsent;  // the first
};

Best best_of(const Assignment& assignment, std::int32_t task) {
    Best best;
    const Assignment::Task& from = assignment.task(task);
    for (std::int32_t i = from.first; i < from.end(); ++i) {
        const Option& option = assignment.option(i);
        const std::int64_t through = option.cost + assignment.value(option.target);
        if (through >= best.second) continue;
        if (through < best.first) {
            best.second = std::exchange(best.first, through);
            best.option = i;
        } else {
            best.second = through;
        }
    }
    return best;
}

// Puts a task at its best place; returns the task that has to leave it, the task itself if it has to wait, or
// kAbsent.
std::int32_t take_place(Assignment& assignment, std::int32_t task) {
    const Best best = best_of(assignment, task);
    if (best.option < 0) return task;
    const std::int32_t place = assignment.option(best.option).target;
    if (assignment.is_hub(place) || best.second >= kFar || best.second == best.first) return task;
    const Assignment::Place& at = assignment.place(place);
    if (at.capacity != 1 && at.full()) return task;
    const std::int32_t left = at.full() ? at.first_task : kAbsent;
    if (left >= 0) {
        assignment.unassign(left);
        assignment.set_value(place, assignment.value(place) + best.second - best.first);
    }
    assignment.assign(task, place, {.option = best.option});
    return left;
}

}  // namespace

void displace(Assignment& assignment, WorkMeter& meter) {
    std::vector<std::int32_t>& waiting = assignment.worklist().waiting;
    for (int pass = 0; pass < kPasses; ++pass) {
        const std::vector<std::int32_t> tasks = std::exchange(waiting, {});
        std::size_t steps = kMostSteps * tasks.size();
        for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
            std::int32_t next = *task;
            while (next >= 0) {
                const std::int32_t at = next;
                const bool goes_on =
                    steps > 0 && !meter.pass_time(kTimePerOption * index(assignment.task(at).count));
                next = goes_on ? take_place(assignment, at) : at;
                steps -= goes_on ? 1 : 0;
                if (next != at) continue;
                waiting.push_back(at);
                break;
            }
        }
    }
}

}  // namespace topoplace::flow
