// The index of exits: built by one pass over all options, then kept up to date task by task.
#include "flow/scheduling/assignment/exit_index.hpp"

#include <utility>

#include "topoplace/assert.hpp"

namespace topoplace::flow {

void ExitIndex::open() {
    if (!std::exchange(open_, true)) assignment_.add_listener(*this);
    complete_ = true;
    const std::size_t num_tasks = assignment_.tasks().size();
    exit_.resize(num_tasks);
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) choose_exit(task);
    leaving_.assign(assignment_.hubs().size(), {});
    for (std::size_t hub = 0; hub < leaving_.size(); ++hub) {
        if (!assignment_.is_popular(assignment_.hubs()[hub].target)) continue;
        leaving_[hub] = Tournament(std::vector<std::int64_t>(num_tasks, Tournament::kNoKey));
    }
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        if (assignment_.task(task).assigned()) update_leaving_cost(task);
    }
}

void ExitIndex::choose_exit(std::int32_t task) {
    const Assignment::Task& from = assignment_.task(task);
    std::int64_t least = kFar;
    exit_[index(task)] = kAbsent;
    for (std::int32_t option = from.first; option < from.end(); ++option) {
        const Option& to = assignment_.option(option);
        if (assignment_.is_hub(to.target) || !assignment_.is_exit(to.target)) continue;
        const std::int64_t cost = to.cost + assignment_.value(to.target);
        if (cost >= least) continue;
        least = cost;
        exit_[index(task)] = option;
    }
}

void ExitIndex::update_leaving_cost(std::int32_t task) {
    TOPOPLACE_ASSERT(assignment_.task(task).assigned());
    const std::int32_t exit = exit_[index(task)];
    if (exit < 0) return;
    const Assignment::Task& at = assignment_.task(task);
    const Option& out = assignment_.option(exit);
    TOPOPLACE_ASSERT(at.first <= exit && exit < at.end());
    std::int32_t i = assignment_.place(at.place).first_membership;
    for (; i >= 0; i = assignment_.membership(i).next) {
        const Assignment::Membership& membership = assignment_.membership(i);
        Tournament& leaving = leaving_[index(membership.hub)];
        if (leaving.empty()) continue;
        const Member& member = assignment_.hub(membership.hub).members[index(membership.leaf)];
        leaving.set(task, member.distance + out.cost + assignment_.value(out.target) - at.cost);
    }
}

void ExitIndex::close() {
    if (std::exchange(open_, false)) assignment_.remove_listener(*this);
}

void ExitIndex::task_leaves(std::int32_t task) {
    std::int32_t i = assignment_.place(assignment_.task(task).place).first_membership;
    for (; i >= 0; i = assignment_.membership(i).next) {
        Tournament& leaving = leaving_[index(assignment_.membership(i).hub)];
        if (!leaving.empty()) leaving.set(task, Tournament::kNoKey);
    }
}

std::optional<ExitIndex::Leaver> ExitIndex::cheapest_leaver(std::int32_t hub) const {
    TOPOPLACE_ASSERT(open_);
    const Tournament& leaving = leaving_[index(hub)];
    if (leaving.empty() || leaving.least() == Tournament::kNoKey) return std::nullopt;
    const Leaver leaver{.task = leaving.first(), .cost = leaving.least()};
    TOPOPLACE_ASSERT(assignment_.task(leaver.task).assigned() && exit_of(leaver.task) >= 0);
    return leaver;
}

void ExitIndex::add_task(std::int32_t task) {
    if (!open_) return;
    const std::size_t num_tasks = assignment_.tasks().size();
    if (exit_.size() < num_tasks) {
        exit_.resize(2 * num_tasks, kAbsent);
        for (Tournament& leaving : leaving_) {
            if (!leaving.empty()) leaving.grow(2 * num_tasks);
        }
    }
    choose_exit(task);
}

void ExitIndex::update_task(std::int32_t task) {
    if (!open_) return;
    choose_exit(task);
    if (assignment_.task(task).assigned()) update_leaving_cost(task);
}

void ExitIndex::remove_task(std::int32_t task) {
    if (open_) exit_[index(task)] = kAbsent;
}

}  // namespace topoplace::flow
