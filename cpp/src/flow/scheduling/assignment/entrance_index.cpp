// The index of entrances: built by one pass over all options, then kept up to date task by task.
#include "flow/scheduling/assignment/entrance_index.hpp"

#include <algorithm>
#include <utility>

#include "topoplace/assert.hpp"

namespace topoplace::flow {

void EntranceIndex::open() {
    if (!std::exchange(open_, true)) assignment_.add_listener(*this);
    const std::size_t num_targets = assignment_.places().size();
    position_.resize(assignment_.options().size());
    entrances_.assign(num_targets, {});
    for (std::size_t target = 0; target < num_targets; ++target)
        entrances_[target].reserve(index(assignment_.places()[target].in_degree));
    current_cost_.assign(assignment_.tasks().size(), -kFar);
    open_popular_hubs();
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) link(task);
    update_costs();
}

void EntranceIndex::close() {
    if (std::exchange(open_, false)) assignment_.remove_listener(*this);
}

void EntranceIndex::update_costs() {
    if (!open_) return;
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        const bool assigned = assignment_.task(task).assigned();
        current_cost_[index(task)] = assigned ? assignment_.current_cost(task) : -kFar;
    }
    for (PopularHub& hub : popular_hubs_) fill_losses(hub);
}

void EntranceIndex::open_popular_hubs() {
    popular_of_.assign(assignment_.places().size(), kAbsent);
    popular_hubs_.clear();
    const std::vector<std::int64_t> none(assignment_.tasks().size(), Tournament::kNoKey);
    for (const Assignment::Hub& hub : assignment_.hubs()) {
        if (!assignment_.is_popular(hub.target)) continue;
        popular_of_[index(hub.target)] = static_cast<std::int32_t>(popular_hubs_.size());
        popular_hubs_.push_back({.target = hub.target, .cost = none, .loss = {}});
    }
}

void EntranceIndex::fill_losses(PopularHub& hub) const {
    std::vector<std::int64_t> loss(hub.cost.size(), Tournament::kNoKey);
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        const std::int64_t cost = hub.cost[index(task)];
        if (cost == Tournament::kNoKey || !assignment_.task(task).assigned()) continue;
        loss[index(task)] = loss_key(task, cost);
    }
    hub.loss = Tournament(loss);
}

// Adds the options of a task to the lists of their targets.
void EntranceIndex::link(std::int32_t task) {
    const Assignment::Task& from = assignment_.task(task);
    for (std::int32_t option = from.first; option < from.end(); ++option) {
        const Option& to = assignment_.option(option);
        std::vector<Entrance>& entrances = entrances_[index(to.target)];
        position_[index(option)] = static_cast<std::int32_t>(entrances.size());
        entrances.push_back({.cost = to.cost, .task = task, .option = option});
        const std::int32_t hub = popular_of_[index(to.target)];
        if (hub < 0) continue;
        std::int64_t& cost = popular_hubs_[index(hub)].cost[index(task)];
        cost = std::min(cost, to.cost);
    }
}

void EntranceIndex::add_task(std::int32_t task) {
    if (!open_) return;
    const std::size_t num_tasks = assignment_.tasks().size();
    if (current_cost_.size() < num_tasks) {
        current_cost_.resize(2 * num_tasks, -kFar);
        for (PopularHub& hub : popular_hubs_) {
            hub.cost.resize(2 * num_tasks, Tournament::kNoKey);
            hub.loss.grow(2 * num_tasks);
        }
    }
    TOPOPLACE_ASSERT(current_cost(task) == -kFar);
    if (position_.size() < assignment_.options().size()) position_.resize(assignment_.options().size());
    link(task);
}

void EntranceIndex::remove_task(std::int32_t task) {
    if (!open_) return;
    const Assignment::Task& from = assignment_.task(task);
    for (std::int32_t option = from.first; option < from.end(); ++option) {
        std::vector<Entrance>& entrances = entrances_[index(assignment_.option(option).target)];
        const std::int32_t position = position_[index(option)];
        TOPOPLACE_ASSERT(entrances[index(position)].option == option);
        position_[index(entrances.back().option)] = position;
        entrances[index(position)] = entrances.back();
        entrances.pop_back();
    }
    for (PopularHub& hub : popular_hubs_) {
        hub.cost[index(task)] = Tournament::kNoKey;
        hub.loss.set(task, Tournament::kNoKey);
    }
}

void EntranceIndex::update_option(std::int32_t task, std::int32_t option) {
    if (!open_) return;
    const Assignment::Task& of = assignment_.task(task);
    const Option& changed = assignment_.option(option);
    Entrance& entrance = entrances_[index(changed.target)][index(position_[index(option)])];
    TOPOPLACE_ASSERT(entrance.option == option && entrance.task == task);
    entrance.cost = changed.cost;
    if (const std::int32_t hub = popular_of_[index(changed.target)]; hub >= 0) {
        std::int64_t& least = popular_hubs_[index(hub)].cost[index(task)];
        least = Tournament::kNoKey;
        for (std::int32_t i = of.first; i < of.end(); ++i) {
            const Option& other = assignment_.option(i);
            if (other.target == changed.target) least = std::min(least, other.cost);
        }
    }
    if (of.assigned()) update_loss(task);
}

void EntranceIndex::update_loss(std::int32_t task) {
    current_cost_[index(task)] = assignment_.current_cost(task);
    for (PopularHub& hub : popular_hubs_) {
        const std::int64_t cost = hub.cost[index(task)];
        if (cost != Tournament::kNoKey) hub.loss.set(task, loss_key(task, cost));
    }
}

void EntranceIndex::assert_consistent() const {
    if constexpr (!kAssertionsOn) return;
    if (!open_) return;
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        const Assignment::Task& of = assignment_.task(task);
        TOPOPLACE_ASSERT(current_cost(task) == (of.assigned() ? assignment_.current_cost(task) : -kFar));
        for (std::int32_t option = of.first; option < of.end(); ++option) {
            const std::vector<Entrance>& entrances = entrances_[index(assignment_.option(option).target)];
            const Entrance& entrance = entrances[index(position_[index(option)])];
            TOPOPLACE_ASSERT(entrance.option == option && entrance.task == task);
            TOPOPLACE_ASSERT(entrance.cost == assignment_.option(option).cost);
        }
        for (const PopularHub& hub : popular_hubs_) {
            const std::int64_t cost = hub.cost[index(task)];
            const bool takes_part = of.assigned() && cost != Tournament::kNoKey;
            TOPOPLACE_ASSERT(hub.loss.key(task) == (takes_part ? loss_key(task, cost) : Tournament::kNoKey));
        }
    }
}

void EntranceIndex::place_added() {
    entrances_.emplace_back();
    popular_of_.push_back(kAbsent);
    TOPOPLACE_ASSERT(entrances_.size() == assignment_.places().size());
}

void EntranceIndex::price_changed(std::int32_t place) {
    std::int32_t task = assignment_.place(place).first_task;
    for (; task >= 0; task = assignment_.next_task(task)) update_loss(task);
}

void EntranceIndex::task_withdrawn(std::int32_t task) {
    current_cost_[index(task)] = -kFar;
    for (PopularHub& hub : popular_hubs_) hub.loss.set(task, Tournament::kNoKey);
}

}  // namespace topoplace::flow
