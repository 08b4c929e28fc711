#include "flow/assignment.hpp"

#include <algorithm>
#include <numeric>

namespace topoplace::flow {
namespace {

// Tasks at places to look at before the clock is.
constexpr std::uint64_t kMostLooks = 1 << 15;
constexpr std::int64_t kMostTasks = std::numeric_limits<std::int32_t>::max();
// Rounds of estimating values before tasks are assigned where there are more than places can take.
constexpr std::int32_t kRounds = 4;

}  // namespace

std::int32_t Assignment::add_place(std::int64_t capacity, std::int64_t exit_cost) {
    std::int32_t target = static_cast<std::int32_t>(places_.size());
    if (free_places_.empty()) {
        places_.emplace_back();
        key_.emplace_back();
        hub_of_.push_back(-1);
        labels_.emplace_back();
        if (entrances_open_) {
            comers_.emplace_back();
            entrance_of_.push_back(-1);
        }
    } else {
        target = free_places_.back();
        free_places_.pop_back();
    }
    Place& place = places_[index(target)];
    place = Place{};
    place.capacity = static_cast<std::int32_t>(std::min(capacity, kMostTasks));
    place.exit_cost = exit_cost;
    key_[index(target)] = key(exit_cost, place.full());
    return target;
}

std::int32_t Assignment::add_hub(std::span<const Member> members) {
    const auto hub = static_cast<std::int32_t>(hubs_.size());
    entrances_open_ = exits_open_ = false;
    const std::int32_t target = add_place(0, 0);
    std::vector<std::int64_t> keys;
    for (const Member& member : members) {
        Place& place = places_[index(member.place)];
        keys.push_back(2 * member.distance + key_[index(member.place)]);
        memberships_.push_back({hub, static_cast<std::int32_t>(keys.size()) - 1, place.first_membership});
        place.first_membership = static_cast<std::int32_t>(memberships_.size()) - 1;
    }
    hubs_.push_back({target, {members.begin(), members.end()}, Tournament(keys), {}});
    hub_of_[index(target)] = hub;
    key_[index(target)] = hubs_.back().best.least();
    return target;
}

void Assignment::add_tasks(std::span<const std::int32_t> counts) {
    std::int32_t first = 0;
    for (const std::int32_t count : counts) {
        tasks_.push_back({.first = first, .count = count});
        first += count;
    }
    options_.resize(index(first));
}

void Assignment::start_search() {
    ++searches_;
    heap_.clear();
    level_.clear();
    done_.clear();
    reached_ = -kFar;
    limit_ = kFar;
    goal_ = -1;
}

void Assignment::push(std::int64_t distance, std::int32_t event) {
    if (distance == reached_) {
        level_.push_back({distance, event});
    } else {
        heap_.push_back({distance, event});
        std::push_heap(heap_.begin(), heap_.end());
    }
}

bool Assignment::pop(Event& event) {
    if (!level_.empty()) {
        event = level_.back();
        level_.pop_back();
        return true;
    }
    if (heap_.empty()) return false;
    event = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    reached_ = event.distance;
    return true;
}

void Assignment::relax(std::int32_t target, std::int64_t distance, const Label& from) {
    Label& label = labels_[index(target)];
    if (distance >= limit_ || (label.search == searches_ && label.distance <= distance)) return;
    label = from;
    label.search = searches_;
    label.distance = distance;
    const bool hub = hub_of_[index(target)] >= 0;
    if (!hub && !places_[index(target)].full()) {
        limit_ = distance;
        goal_ = target;
    } else {
        push(distance, target);
    }
}

void Assignment::scan_options(std::int32_t task, std::int64_t base) {
    const Task& from = tasks_[index(task)];
    Label label;
    label.task = task;
    for (std::int32_t option = from.first; option < from.first + from.count; ++option) {
        const Option& to = options_[index(option)];
        label.option = option;
        relax(to.target, base + to.cost + value(to.target), label);
    }
}

void Assignment::scan_place(std::int32_t place) {
    const std::int64_t distance = labels_[index(place)].distance;
    const std::int64_t base = labels_[index(place)].distance - value(place);
    std::int32_t task = places_[index(place)].first_task;
    for (; task >= 0; task = tasks_[index(task)].next) {
        scan_options(task, base - tasks_[index(task)].cost);
        if (limit_ <= distance) return;
    }
}

void Assignment::scan_hub(std::int32_t hub) {
    Hub& through = hubs_[index(hub)];
    const Label& at = labels_[index(through.target)];
    Label label;
    label.task = at.task;
    label.option = at.option;
    label.hub = hub;
    const std::int64_t offset = at.distance - value(through.target);
    while (through.best.next_key() != Tournament::kNone) {
        const std::int64_t distance = offset + (through.best.next_key() >> 1);
        if (distance >= limit_) return;
        if (distance > reached_) return push(distance, ~hub);
        through.best.visit([&](std::int32_t leaf) {
            label.leaf = leaf;
            relax(through.members[index(leaf)].place, distance, label);
            return limit_ > distance;
        });
    }
}

void Assignment::choose_exit(std::int32_t task) {
    const Task& from = tasks_[index(task)];
    std::int64_t least = kFar;
    exit_[index(task)] = -1;
    for (std::int32_t option = from.first; option < from.first + from.count; ++option) {
        const Option& to = options_[index(option)];
        if (is_hub(to.target) || !is_exit(to.target) || to.cost + value(to.target) >= least) continue;
        least = to.cost + value(to.target);
        exit_[index(task)] = option;
    }
}

void Assignment::open_exits() {
    exits_open_ = true;
    exit_.resize(tasks_.size());
    for (std::int32_t task = 0; task < num_tasks(); ++task) choose_exit(task);
    for (Hub& hub : hubs_) {
        hub.leaving = {};
        if (!is_wide(hub.target)) continue;
        hub.leaving = Tournament(std::vector<std::int64_t>(tasks_.size(), Tournament::kNone));
    }
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        if (tasks_[index(task)].place >= 0) refresh_exits(task);
    }
}

// Call it whenever a task has come to a place or left it.
void Assignment::refresh_exits(std::int32_t task) {
    const std::int32_t exit = exit_[index(task)];
    if (exit < 0) return;
    const Task& at = tasks_[index(task)];
    const Option& out = options_[index(exit)];
    std::int32_t i = places_[index(at.place)].first_membership;
    for (; i >= 0; i = memberships_[index(i)].next) {
        Hub& hub = hubs_[index(memberships_[index(i)].hub)];
        if (hub.leaving.empty()) continue;
        const std::int64_t distance = hub.members[index(memberships_[index(i)].leaf)].distance;
        hub.leaving.set(task, distance + out.cost + value(out.target) - at.cost);
    }
}

void Assignment::forget_exits(std::int32_t task) {
    std::int32_t i = places_[index(tasks_[index(task)].place)].first_membership;
    for (; i >= 0; i = memberships_[index(i)].next) {
        Tournament& leaving = hubs_[index(memberships_[index(i)].hub)].leaving;
        if (!leaving.empty()) leaving.set(task, Tournament::kNone);
    }
}

// The best way through a hub that displaces only one task, and that to its exit.
void Assignment::scan_exits(std::int32_t hub) {
    const Hub& through = hubs_[index(hub)];
    const Label at = labels_[index(through.target)];
    if (through.leaving.empty() || through.leaving.least() == Tournament::kNone) return;
    const std::int64_t base = at.distance - value(through.target);
    if (base + through.leaving.least() >= limit_) return;
    const std::int32_t task = through.leaving.first();
    const Task& leaving = tasks_[index(task)];
    std::int32_t i = places_[index(leaving.place)].first_membership;
    while (memberships_[index(i)].hub != hub) i = memberships_[index(i)].next;
    Label label;
    label.task = at.task;
    label.option = at.option;
    label.hub = hub;
    label.leaf = memberships_[index(i)].leaf;
    const std::int64_t distance = through.members[index(label.leaf)].distance + value(leaving.place);
    relax(leaving.place, base + distance, label);
    Label exit;
    exit.task = task;
    exit.option = exit_[index(task)];
    relax(options_[index(exit.option)].target, base + through.leaving.least(), exit);
}

// Few nodes take long where places hold many tasks.
bool Assignment::looked_at_tasks(std::int32_t place, NodeCounter& counter) {
    looks_ += static_cast<std::uint64_t>(places_[index(place)].load);
    if (looks_ >= kMostLooks) {
        looks_ = 0;
        counter.look_at_clock();
    }
    return counter.stopped();
}

bool Assignment::search(NodeCounter& counter) {
    Event event;
    while (limit_ > reached_ && pop(event) && event.distance < limit_) {
        if (counter.visit()) return false;
        if (event.target < 0) {
            scan_hub(~event.target);
            continue;
        }
        Label& label = labels_[index(event.target)];
        if (label.done || label.distance != event.distance) continue;
        label.done = true;
        done_.push_back(event.target);
        const std::int32_t hub = hub_of_[index(event.target)];
        if (hub >= 0) {
            if (!exits_open_ && short_of_room_) open_exits();
            if (exits_open_) scan_exits(hub);
            hubs_[index(hub)].best.rewind();
            scan_hub(hub);
        } else {
            scan_place(event.target);
            if (looked_at_tasks(event.target, counter)) return false;
        }
    }
    return goal_ >= 0;
}

void Assignment::set_value(std::int32_t place, std::int64_t value) {
    const Place& changed = places_[index(place)];
    key_[index(place)] = key(value, changed.full());
    for (std::int32_t i = changed.first_membership; i >= 0; i = memberships_[index(i)].next) {
        const Membership& membership = memberships_[index(i)];
        Hub& hub = hubs_[index(membership.hub)];
        const std::int64_t distance = hub.members[index(membership.leaf)].distance;
        hub.best.set(membership.leaf, 2 * distance + key_[index(place)]);
        key_[index(hub.target)] = std::min(hub.best.least(), 2 * kFar);
    }
    if (!entrances_open_) return;
    std::int32_t task = changed.first_task;
    for (; task >= 0; task = tasks_[index(task)].next) refresh_entrances(task);
}

void Assignment::raise_values() {
    for (const std::int32_t target : done_) {
        const std::int64_t raise = limit_ - labels_[index(target)].distance;
        if (raise <= 0 || hub_of_[index(target)] >= 0) continue;
        set_value(target, value(target) + raise);
    }
}

void Assignment::unseat(std::int32_t task) {
    Task& leaving = tasks_[index(task)];
    Place& place = places_[index(leaving.place)];
    if (exits_open_) forget_exits(task);
    --place.load;
    (leaving.previous >= 0 ? tasks_[index(leaving.previous)].next : place.first_task) = leaving.next;
    if (leaving.next >= 0) tasks_[index(leaving.next)].previous = leaving.previous;
    leaving.place = -1;
}

void Assignment::seat(std::int32_t task, std::int32_t place, const Label& label) {
    Task& coming = tasks_[index(task)];
    Place& at = places_[index(place)];
    moved_.push_back(task);
    coming.place = place;
    coming.option = label.option;
    coming.leaf = label.leaf;
    coming.cost = options_[index(label.option)].cost;
    if (label.hub >= 0) coming.cost += hubs_[index(label.hub)].members[index(label.leaf)].distance;
    coming.previous = -1;
    coming.next = at.first_task;
    if (at.first_task >= 0) tasks_[index(at.first_task)].previous = task;
    at.first_task = task;
    if (++at.load == at.capacity) set_value(place, value(place));
    if (entrances_open_) refresh_entrances(task);
    if (exits_open_) refresh_exits(task);
}

void Assignment::augment(std::int32_t root) {
    std::int32_t place = goal_;
    for (;;) {
        const Label label = labels_[index(place)];
        const std::int32_t left = tasks_[index(label.task)].place;
        if (left >= 0) unseat(label.task);
        seat(label.task, place, label);
        if (label.task == root) return;
        place = left;
    }
}

Assignment::Choice Assignment::best_choice(std::int32_t task) const {
    const Task& from = tasks_[index(task)];
    Choice choice;
    for (std::int32_t option = from.first; option < from.first + from.count; ++option) {
        const Option& to = options_[index(option)];
        const std::int64_t key = 2 * to.cost + key_[index(to.target)];
        if (key >= choice.key) continue;
        choice.key = key;
        choice.label.option = option;
    }
    if (choice.label.option < 0) return choice;
    choice.place = options_[index(choice.label.option)].target;
    choice.label.hub = hub_of_[index(choice.place)];
    if (choice.label.hub >= 0) {
        const Hub& hub = hubs_[index(choice.label.hub)];
        choice.label.leaf = hub.best.first();
        choice.place = hub.members[index(choice.label.leaf)].place;
    }
    return choice;
}

bool Assignment::insert_directly(std::int32_t task) {
    const Choice choice = best_choice(task);
    if (choice.place < 0 || choice.key % 2 != 0) return false;
    seat(task, choice.place, choice.label);
    return true;
}

bool Assignment::insert(std::int32_t task, NodeCounter& counter) {
    if (insert_directly(task)) return true;
    start_search();
    scan_options(task, 0);
    if (!search(counter)) {
        unseated_.push_back(task);
        return false;
    }
    raise_values();
    augment(task);
    return true;
}

std::int64_t Assignment::room() const {
    std::int64_t room = 0;
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        if (!is_hub(place) && !is_exit(place)) room += places_[index(place)].capacity;
    }
    return room;
}

bool Assignment::solve(NodeCounter& counter, std::uint64_t most) {
    short_of_room_ = room() < num_tasks() - static_cast<std::int64_t>(free_tasks_.size());
    if (short_of_room_) estimate_values(kRounds);
    unseated_.clear();
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        if (!insert_directly(task)) unseated_.push_back(task);
    }
    std::reverse(unseated_.begin(), unseated_.end());  // taken from the end, and who comes first goes first
    loose_.resize(places_.size());
    std::iota(loose_.begin(), loose_.end(), 0);
    const std::uint64_t before = counter.nodes();
    while (!unseated_.empty() || !loose_.empty()) {
        if (!mend_one(counter) || counter.nodes() - before > most) return false;
    }
    nodes_from_nothing_ = counter.nodes() - before;
    return true;
}

}  // namespace topoplace::flow
