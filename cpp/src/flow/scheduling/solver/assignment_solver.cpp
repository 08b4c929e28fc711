// Solving, changing and repairing an assignment: in which order the searches run, and when to start again.
#include "flow/scheduling/solver/assignment_solver.hpp"

#include <algorithm>

#include "flow/scheduling/start/displacement.hpp"
#include "flow/scheduling/start/hub_packing.hpp"
#include "flow/scheduling/start/price_estimate.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

// Rounds of estimating values before tasks are assigned.
constexpr std::int32_t kRounds = 4;
// Many places are short if one task in kCrowdedShare finds its best place full, or one in kCrowdedHubShare
// that of its hub.
constexpr std::size_t kCrowdedShare = 3;
constexpr std::size_t kCrowdedHubShare = 16;
// Progress is judged from this part of the nodes allowed on.
constexpr std::uint64_t kEarly = 8;
// Worklists shorter than this are repaired without levelling prices.
constexpr std::size_t kManyChanges = 64;

}  // namespace

bool AssignmentSolver::short_of_room() const {
    return assignment_.limited_room() < assignment_.num_present_tasks();
}

bool AssignmentSolver::solve(WorkMeter& meter, std::uint64_t most) {
    const bool solved = assign_all(meter, most);
    assignment_.assert_invariants();
    entrances_.assert_consistent();
    return solved;
}

// Assigns each task to its best place if that has room; the others wait.
void AssignmentSolver::assign_directly() {
    auto& waiting = assignment_.worklist().waiting;
    waiting.clear();
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        if (!search_.insert_directly(task)) waiting.push_back(task);
    }
    std::reverse(waiting.begin(), waiting.end());  // taken from the end, first come first
}

// True if many places are short, judged by the tasks left over by `assign_directly`.
bool AssignmentSolver::crowded() const {
    const std::vector<std::int32_t>& waiting = assignment_.worklist().waiting;
    const auto wants_hub = [&](std::int32_t task) { return assignment_.best_choice(task).route.hub >= 0; };
    const auto at_hubs = static_cast<std::size_t>(std::count_if(waiting.begin(), waiting.end(), wants_hub));
    const std::size_t tasks = assignment_.tasks().size();
    return kCrowdedShare * waiting.size() > tasks || kCrowdedHubShare * at_hubs > tasks;
}

// Assigns what can be assigned without a search, after estimating prices where many places are short. False
// if all is done: every task has its best place, and none a price.
bool AssignmentSolver::start(bool tight, WorkMeter& meter) {
    if (!tight) {
        assign_directly();
        if (assignment_.worklist().waiting.empty()) return false;
        if (assignment_.hubs().empty()) {
            displace(assignment_, meter);
            return true;
        }
        if (!crowded()) return true;
        restart();
    }
    set_values(assignment_, estimate_values(assignment_, kRounds));
    assign_directly();
    return true;
}

bool AssignmentSolver::assign_all(WorkMeter& meter, std::uint64_t most) {
    const bool tight = short_of_room();
    search_.use_exits(tight);
    assignment_.worklist().unsettled.clear();
    if (!start(tight, meter)) {
        nodes_from_scratch_ = 0;
        return true;
    }
    list_unsettled();
    const std::uint64_t before = meter.nodes();
    if (!work_off(assignment_.worklist().waiting, meter, before, most)) return false;
    pack_hubs(assignment_);
    list_unsettled();
    if (!work_off(assignment_.worklist().unsettled, meter, before, most)) return false;
    nodes_from_scratch_ = meter.nodes() - before;
    return true;
}

// Works off one of the two lists; gives up early if by its progress so far it would take more than `most`
// nodes, counted from `before`.
bool AssignmentSolver::work_off(const std::vector<std::int32_t>& list, WorkMeter& meter, std::uint64_t before,
                                std::uint64_t most) {
    const std::size_t all = list.size();
    while (!list.empty()) {
        if (!repair_one(meter)) return false;
        const std::uint64_t nodes = meter.nodes() - before;
        if (nodes <= most / kEarly || list.empty()) continue;
        if (nodes > most || nodes / (all - list.size() + 1) > most / list.size()) return false;
    }
    return true;
}

// Lists the places with room and a price, the dearest to be taken first.
void AssignmentSolver::list_unsettled() {
    std::vector<std::int32_t>& unsettled = assignment_.worklist().unsettled;
    unsettled.clear();
    for (std::int32_t place = 0; place < assignment_.num_targets(); ++place) {
        if (!assignment_.is_hub(place) && !assignment_.place(place).full() && assignment_.price(place) > 0)
            unsettled.push_back(place);
    }
    std::stable_sort(unsettled.begin(), unsettled.end(), [&](std::int32_t a, std::int32_t b) {
        return assignment_.price(a) < assignment_.price(b);
    });
}

bool AssignmentSolver::repair(WorkMeter& meter) {
    const bool repaired = repair_all(meter);
    TOPOPLACE_ASSERT(!repaired || assignment_.worklist().empty());
    assignment_.assert_invariants();
    entrances_.assert_consistent();
    return repaired;
}

bool AssignmentSolver::repair_all(WorkMeter& meter) {
    const Assignment::Worklist& worklist = assignment_.worklist();
    const bool tight = short_of_room();
    search_.use_exits(tight);
    if (tight && worklist.waiting.size() + worklist.unsettled.size() >= kManyChanges) leveller_.level();
    const std::uint64_t enough = meter.nodes() + std::max<std::uint64_t>(assignment_.options().size() * 3 / 4,
                                                                         2 * nodes_from_scratch_);
    while (!worklist.empty()) {
        if (meter.nodes() > enough && tight) {
            restart();  // estimating prices and assigning all again takes about as long as this did
            return assign_all(meter, std::numeric_limits<std::uint64_t>::max());
        }
        if (!repair_one(meter)) return false;
    }
    return true;
}

// Inserts a task or, if none waits, pulls one.
bool AssignmentSolver::repair_one(WorkMeter& meter) {
    std::vector<std::int32_t>& waiting = assignment_.worklist().waiting;
    TOPOPLACE_ASSERT(!assignment_.worklist().empty());
    if (!waiting.empty()) {
        const std::int32_t task = waiting.back();
        waiting.pop_back();
        const Assignment::Task& of = assignment_.task(task);
        if (of.count == 0 || of.assigned() || search_.insert(task, meter)) return true;
        waiting.push_back(task);
        return false;
    }
    const std::int32_t place = search_.last_unsettled();
    if (place >= 0) search_.pull(place, meter);
    return !meter.stopped();
}

void AssignmentSolver::restart() {
    entrances_.close();
    exits_.close();
    assignment_.unassign_all();
}

// ---- changes ----------------------------------------------------------------------------------------------

std::int32_t AssignmentSolver::add_task(std::span<const Option> options) {
    const std::int32_t task = assignment_.add_task(options);
    entrances_.add_task(task);
    exits_.add_task(task);
    return task;
}

void AssignmentSolver::remove_task(std::int32_t task) {
    if (assignment_.task(task).assigned()) assignment_.withdraw(task);
    entrances_.remove_task(task);
    assignment_.remove_task(task);
    exits_.remove_task(task);
}

void AssignmentSolver::set_option_cost(std::int32_t task, std::int32_t option, std::int64_t cost) {
    assignment_.set_option_cost(task, option, cost);
    entrances_.update_option(task, option);
    exits_.update_task(task);
    assignment_.reconsider(task);
}

void AssignmentSolver::set_exit_cost(std::int32_t place, std::int64_t cost) {
    const bool exit = assignment_.is_exit(place);
    assignment_.set_exit_cost(place, cost);
    std::int32_t task = assignment_.place(place).first_task;
    for (; task >= 0; task = assignment_.next_task(task)) assignment_.mark_moved(task);
    if (exit) {
        assignment_.set_value(place, cost);
        reconsider_entrances(place);
    } else if (assignment_.value(place) < cost) {
        assignment_.set_value(place, cost);
        reconsider_all_at(place);
    } else {
        assignment_.set_value(place, assignment_.value(place));  // its price has changed
        assignment_.worklist().unsettled.push_back(place);
    }
}

// After an exit has become cheaper or dearer.
void AssignmentSolver::reconsider_entrances(std::int32_t place) {
    if (!entrances_.is_open()) entrances_.open();
    const auto entrances = entrances_.entrances(place);
    for (const EntranceIndex::Entrance& entrance : entrances) {
        exits_.update_task(entrance.task);
        assignment_.reconsider(entrance.task);
    }
}

void AssignmentSolver::reconsider_all_at(std::int32_t place) {
    std::vector<std::int32_t> tasks;
    std::int32_t task = assignment_.place(place).first_task;
    for (; task >= 0; task = assignment_.next_task(task)) tasks.push_back(task);
    for (const std::int32_t each : tasks) assignment_.reconsider(each);
}

void AssignmentSolver::set_capacity(std::int32_t place, std::int64_t capacity) {
    assignment_.set_capacity(place, capacity);
    const Assignment::Place& changed = assignment_.place(place);
    while (changed.load > changed.capacity) {
        const std::int32_t task = changed.first_task;
        assignment_.withdraw(task);
        assignment_.worklist().waiting.push_back(task);
    }
    assignment_.refresh(place);
    assignment_.worklist().unsettled.push_back(place);
}

}  // namespace topoplace::flow
