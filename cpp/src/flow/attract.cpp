#include <algorithm>

#include "flow/assignment.hpp"

namespace topoplace::flow {
namespace {

// Below this many tasks a hub's are looked through one by one.
constexpr std::int64_t kManyTasks = 64;
// And at most so many hubs are chosen by all tasks.
constexpr std::int64_t kFewHubs = 8;

}  // namespace

bool Assignment::is_wide(std::int32_t target) const {
    const std::int64_t comers = places_[index(target)].comers;
    return comers >= kManyTasks && kFewHubs * comers >= num_tasks();
}

// Adds the options of a task to the lists of their targets.
void Assignment::link(std::int32_t task) {
    const Task& from = tasks_[index(task)];
    for (std::int32_t option = from.first; option < from.first + from.count; ++option) {
        const Option& to = options_[index(option)];
        auto& comers = comers_[index(to.target)];
        position_[index(option)] = static_cast<std::int32_t>(comers.size());
        comers.push_back({to.cost, task, option});
        const std::int32_t entrance = entrance_of_[index(to.target)];
        if (entrance < 0) continue;
        std::int64_t& cost = entrances_[index(entrance)].cost[index(task)];
        cost = std::min(cost, to.cost);
    }
}

void Assignment::unlink(std::int32_t task) {
    const Task& from = tasks_[index(task)];
    for (std::int32_t option = from.first; option < from.first + from.count; ++option) {
        auto& comers = comers_[index(options_[index(option)].target)];
        position_[index(comers.back().option)] = position_[index(option)];
        comers[index(position_[index(option)])] = comers.back();
        comers.pop_back();
    }
    for (Entrance& entrance : entrances_) {
        entrance.cost[index(task)] = Tournament::kNone;
        entrance.loss.set(task, Tournament::kNone);
    }
}

void Assignment::open_entrances() {
    entrances_open_ = true;
    position_.resize(options_.size());
    comers_.assign(places_.size(), {});
    for (std::size_t i = 0; i < places_.size(); ++i) comers_[i].reserve(index(places_[i].comers));
    task_value_.assign(tasks_.size(), -kFar);
    entrance_of_.assign(places_.size(), -1);
    entrances_.clear();
    const std::vector<std::int64_t> none(tasks_.size(), Tournament::kNone);
    for (const Hub& hub : hubs_) {
        if (!is_wide(hub.target)) continue;
        entrance_of_[index(hub.target)] = static_cast<std::int32_t>(entrances_.size());
        entrances_.push_back({hub.target, none, {}});
    }
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        link(task);
        if (tasks_[index(task)].place >= 0) task_value_[index(task)] = value_of_task(task);
    }
    for (Entrance& entrance : entrances_) {
        std::vector<std::int64_t> loss = none;
        for (std::int32_t task = 0; task < num_tasks(); ++task) {
            const std::int64_t cost = entrance.cost[index(task)];
            if (cost != Tournament::kNone && tasks_[index(task)].place >= 0) {
                loss[index(task)] = loss_key(task, cost);
            }
        }
        entrance.loss = Tournament(loss);
    }
}

void Assignment::refresh_entrances(std::int32_t task) {
    task_value_[index(task)] = value_of_task(task);
    for (Entrance& entrance : entrances_) {
        const std::int64_t cost = entrance.cost[index(task)];
        if (cost != Tournament::kNone) entrance.loss.set(task, loss_key(task, cost));
    }
}

// What `task` would lose by leaving for where the label says.
void Assignment::offer(std::int32_t task, std::int64_t distance, const Label& from) {
    const std::int32_t place = tasks_[index(task)].place;
    if (place < 0) return;
    Label& label = labels_[index(place)];
    if (label.search == searches_ && label.distance <= distance) return;
    label = from;
    label.task = task;
    label.search = searches_;
    label.distance = distance;
    if (distance + price(place) < limit_) {
        limit_ = distance + price(place);
        goal_ = place;
    }
    if (distance < limit_) push(distance, place);
}

void Assignment::offer_all(std::int32_t target, std::int64_t base, Label& label) {
    for (const Comer& comer : comers_[index(target)]) {
        const std::int64_t distance = base + comer.cost - task_value_[index(comer.task)];
        if (distance >= limit_) continue;
        label.option = comer.option;
        offer(comer.task, distance, label);
    }
}

void Assignment::offer_place(std::int32_t place) {
    Label label;
    label.place = place;
    const std::int64_t distance = labels_[index(place)].distance;
    const std::int64_t base = distance + value(place);
    offer_all(place, base, label);
    std::int32_t i = places_[index(place)].first_membership;
    for (; i >= 0; i = memberships_[index(i)].next) {
        const Membership& membership = memberships_[index(i)];
        const Hub& hub = hubs_[index(membership.hub)];
        const std::int64_t reached = base + hub.members[index(membership.leaf)].distance - value(hub.target);
        Label& at = labels_[index(hub.target)];
        if (reached >= limit_ || (at.search == searches_ && at.distance <= reached)) continue;
        at = label;
        at.search = searches_;
        at.distance = reached;
        at.hub = membership.hub;
        at.leaf = membership.leaf;
        push(reached, hub.target);
    }
}

void Assignment::offer_hub(std::int32_t target) {
    const Label& at = labels_[index(target)];
    const std::int64_t base = at.distance + value(target);
    Label label = at;
    label.done = false;
    const std::int32_t entrance = entrance_of_[index(target)];
    if (entrance < 0) {
        offer_all(target, base, label);
        return;
    }
    Tournament& loss = entrances_[index(entrance)].loss;
    while (loss.next_key() != Tournament::kNone) {
        const std::int64_t distance = base + (loss.next_key() >> 1);
        if (distance >= limit_) return;
        if (distance > reached_) return push(distance, ~target);
        loss.visit([&](std::int32_t task) {
            label.option = option_for(task, target);
            offer(task, distance, label);
            return limit_ > distance;
        });
    }
}

// The option of a task for a target that costs least.
std::int32_t Assignment::option_for(std::int32_t task, std::int32_t target) const {
    const Task& of = tasks_[index(task)];
    std::int32_t best = -1;
    for (std::int32_t option = of.first; option < of.first + of.count; ++option) {
        if (options_[index(option)].target != target) continue;
        if (best < 0 || options_[index(option)].cost < options_[index(best)].cost) best = option;
    }
    return best;
}

bool Assignment::attract_search(NodeCounter& counter) {
    Event event;
    while (limit_ > reached_ && pop(event) && event.distance < limit_) {
        if (counter.visit()) return false;
        if (event.target < 0) {
            offer_hub(~event.target);
            continue;
        }
        Label& label = labels_[index(event.target)];
        if (label.done || label.distance != event.distance) continue;
        label.done = true;
        done_.push_back(event.target);
        if (!is_hub(event.target)) {
            offer_place(event.target);
        } else {
            const std::int32_t entrance = entrance_of_[index(event.target)];
            if (entrance >= 0) entrances_[index(entrance)].loss.rewind();
            offer_hub(event.target);
        }
    }
    return true;
}

void Assignment::lower_values() {
    for (const std::int32_t target : done_) {
        const std::int64_t lower = limit_ - labels_[index(target)].distance;
        if (lower > 0 && !is_hub(target)) set_value(target, value(target) - lower);
    }
}

// The tasks on the path that was found each go one place on; the last to `root`.
void Assignment::move_along(std::int32_t root) {
    for (std::int32_t place = goal_; place != root;) {
        const Label label = labels_[index(place)];
        unseat(label.task);
        seat(label.task, label.place, label);
        place = label.place;
    }
    if (goal_ != root) set_value(goal_, value(goal_));  // it may have room now
}

void Assignment::attract(std::int32_t root, NodeCounter& counter) {
    if (!entrances_open_) open_entrances();
    start_search();
    Label& from = labels_[index(root)];
    from = Label{};
    from.search = searches_;
    limit_ = price(root);
    goal_ = root;
    push(0, root);
    if (!attract_search(counter)) return;
    lower_values();
    move_along(root);
}

}  // namespace topoplace::flow
