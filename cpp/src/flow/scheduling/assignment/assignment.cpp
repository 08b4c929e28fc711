// Building and changing an assignment, one step at a time, and the check of its invariants.
#include "flow/scheduling/assignment/assignment.hpp"

#include <algorithm>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

constexpr std::int64_t kMostTasks = std::numeric_limits<std::int32_t>::max();

// A target is popular if at least this many tasks name it,
constexpr std::int64_t kManyTasks = 64;
// and at least one in this many of all tasks.
constexpr std::int64_t kPopularShare = 8;

}  // namespace

void Assignment::add_listener(AssignmentListener& listener) {
    auto* const free = std::find(listeners_.begin(), listeners_.end(), nullptr);
    TOPOPLACE_ASSERT(free != listeners_.end());
    *free = &listener;
}

void Assignment::remove_listener(AssignmentListener& listener) {
    std::replace(listeners_.begin(), listeners_.end(), &listener, static_cast<AssignmentListener*>(nullptr));
}

// ---- building ---------------------------------------------------------------------------------------------

void Assignment::reserve_targets(std::size_t count) {
    places_.reserve(count);
    key_.reserve(count);
    hub_of_.reserve(count);
    memberships_.reserve(count);
}

std::int32_t Assignment::add_place(std::int64_t capacity, std::int64_t exit_cost) {
    TOPOPLACE_ASSERT(capacity >= 0);
    TOPOPLACE_ASSERT(-kFar < exit_cost && exit_cost < kFar);
    Place place;
    place.capacity = static_cast<std::int32_t>(std::min(capacity, kMostTasks));
    place.exit_cost = exit_cost;
    const std::int64_t first_key = key(exit_cost, place.full());
    if (free_places_.empty()) {
        places_.push_back(place);
        key_.push_back(first_key);
        hub_of_.push_back(kAbsent);
        notify_all([&](AssignmentListener& listener) { listener.place_added(); });
        return num_targets() - 1;
    }
    const std::int32_t target = free_places_.back();
    free_places_.pop_back();
    TOPOPLACE_ASSERT(!is_hub(target) && places_[index(target)].in_degree == 0);
    places_[index(target)] = place;
    key_[index(target)] = first_key;
    return target;
}

std::int32_t Assignment::add_hub(std::span<const Member> members) {
    TOPOPLACE_ASSERT(!members.empty());
    const auto hub = static_cast<std::int32_t>(hubs_.size());
    notify_all([&](AssignmentListener& listener) { listener.hub_added(); });
    const std::int32_t target = add_place(0, 0);
    for (std::int32_t leaf = 0; index(leaf) < members.size(); ++leaf) {
        const Member& member = members[index(leaf)];
        TOPOPLACE_ASSERT(member.place != target && !is_hub(member.place));
        TOPOPLACE_ASSERT(-kFar < member.distance && member.distance < kFar);
        Place& place = places_[index(member.place)];
        memberships_.push_back({.hub = hub, .leaf = leaf, .next = place.first_membership});
        place.first_membership = static_cast<std::int32_t>(memberships_.size()) - 1;
    }
    hubs_.push_back(
        {.target = target, .members = {members.begin(), members.end()}, .best = best_of(members)});
    hub_of_[index(target)] = hub;
    key_[index(target)] = hubs_.back().best.least();
    return target;
}

void Assignment::add_tasks(std::span<const std::int32_t> ends, std::pmr::vector<Option>&& options) {
    TOPOPLACE_ASSERT(tasks_.empty());
    options_ = std::move(options);
    tasks_.resize(ends.size());
    next_.resize(ends.size(), kAbsent);
    previous_.resize(ends.size(), kAbsent);
    std::int32_t first = 0;
    for (std::size_t task = 0; task < ends.size(); ++task) {
        TOPOPLACE_ASSERT(ends[task] > first);
        tasks_[task].first = first;
        tasks_[task].count = ends[task] - first;
        first = ends[task];
    }
    TOPOPLACE_ASSERT(index(first) == options_.size());
    for (const Option& option : options_) {
        TOPOPLACE_ASSERT(0 <= option.target && option.target < num_targets());
        TOPOPLACE_ASSERT(-kFar < option.cost && option.cost < kFar);
        ++places_[index(option.target)].in_degree;
    }
}

void Assignment::put_option(std::int32_t task, std::int32_t position, const Option& option) {
    TOPOPLACE_ASSERT(0 <= position && position < tasks_[index(task)].count);
    TOPOPLACE_ASSERT(0 <= option.target && option.target < num_targets());
    TOPOPLACE_ASSERT(-kFar < option.cost && option.cost < kFar);
    options_[index(tasks_[index(task)].first + position)] = option;
    ++places_[index(option.target)].in_degree;
}

std::int32_t Assignment::room_for_options(std::size_t count) {
    if (free_options_.size() > count && !free_options_[count].empty()) {
        const std::int32_t first = free_options_[count].back();
        free_options_[count].pop_back();
        TOPOPLACE_ASSERT(index(first) + count <= options_.size());
        return first;
    }
    options_.resize(options_.size() + count);
    return static_cast<std::int32_t>(options_.size() - count);
}

std::int32_t Assignment::add_task(std::span<const Option> options) {
    TOPOPLACE_ASSERT(!options.empty());
    std::int32_t task = num_tasks();
    if (free_tasks_.empty()) {
        tasks_.emplace_back();
        next_.push_back(kAbsent);
        previous_.push_back(kAbsent);
    } else {
        task = free_tasks_.back();
        free_tasks_.pop_back();
        TOPOPLACE_ASSERT(tasks_[index(task)].count == 0 && !tasks_[index(task)].assigned());
    }
    Task& added = tasks_[index(task)];
    added = Task{};
    added.first = room_for_options(options.size());
    added.count = static_cast<std::int32_t>(options.size());
    for (std::int32_t position = 0; position < added.count; ++position) {
        const Option& option = options[index(position)];
        const bool exit = !is_hub(option.target) && is_exit(option.target);
        put_option(task, position, option);
        if (!exit || is_exit(option.target)) continue;
        notify_all([&](AssignmentListener& listener) { listener.exits_changed(); });
    }
    worklist_.waiting.push_back(task);
    return task;
}

void Assignment::remove_task(std::int32_t task) {
    Task& removed = tasks_[index(task)];
    TOPOPLACE_ASSERT(!removed.assigned() && removed.count > 0);
    for (std::int32_t option = removed.first; option < removed.end(); ++option) {
        const std::int32_t target = options_[index(option)].target;
        const bool exit = !is_hub(target) && is_exit(target);
        --places_[index(target)].in_degree;
        TOPOPLACE_ASSERT(places_[index(target)].in_degree >= 0);
        if (exit || is_hub(target) || !is_exit(target)) continue;
        notify_all([&](AssignmentListener& listener) { listener.exit_gained(); });
    }
    const std::size_t count = index(removed.count);
    if (free_options_.size() <= count) free_options_.resize(count + 1);
    free_options_[count].push_back(removed.first);
    removed = Task{};
    free_tasks_.push_back(task);
}

bool Assignment::remove_place(std::int32_t place) {
    TOPOPLACE_ASSERT(!is_hub(place));
    const Place& removed = places_[index(place)];
    if (removed.in_degree > 0 || removed.load > 0 || removed.first_membership >= 0) return false;
    free_places_.push_back(place);
    places_[index(place)] = Place{};
    key_[index(place)] = key(0, true);
    return true;
}

// ---- moves ------------------------------------------------------------------------------------------------

void Assignment::assign(std::int32_t task, std::int32_t place, const Route& route) {
    Task& moved = tasks_[index(task)];
    Place& at = places_[index(place)];
    TOPOPLACE_ASSERT(!moved.assigned() && !is_hub(place));
    TOPOPLACE_ASSERT(moved.first <= route.option && route.option < moved.end());
    TOPOPLACE_ASSERT(at.load <= at.capacity);  // full only while tasks move along a path (pull_search.cpp)
    mark_moved(task);
    moved.place = place;
    moved.option = route.option;
    moved.leaf = route.leaf;
    moved.cost = options_[index(route.option)].cost;
    if (route.hub >= 0) {
        const Member& member = hubs_[index(route.hub)].members[index(route.leaf)];
        TOPOPLACE_ASSERT(member.place == place);
        TOPOPLACE_ASSERT(hubs_[index(route.hub)].target == options_[index(route.option)].target);
        moved.cost += member.distance;
    } else {
        TOPOPLACE_ASSERT(options_[index(route.option)].target == place);
    }
    previous_[index(task)] = kAbsent;
    next_[index(task)] = at.first_task;
    if (at.first_task >= 0) previous_[index(at.first_task)] = task;
    at.first_task = task;
    if (++at.load == at.capacity) refresh(place);
    notify_all([&](AssignmentListener& listener) { listener.task_assigned(task); });
}

void Assignment::unassign(std::int32_t task) {
    Task& leaving = tasks_[index(task)];
    Place& place = places_[index(leaving.place)];
    TOPOPLACE_ASSERT(place.load > 0);
    notify_all([&](AssignmentListener& listener) { listener.task_leaves(task); });
    --place.load;
    const std::int32_t previous = previous_[index(task)];
    const std::int32_t next = next_[index(task)];
    TOPOPLACE_ASSERT(previous >= 0 ? next_[index(previous)] == task : place.first_task == task);
    (previous >= 0 ? next_[index(previous)] : place.first_task) = next;
    if (next >= 0) previous_[index(next)] = previous;
    leaving.place = kAbsent;
}

void Assignment::withdraw(std::int32_t task) {
    const std::int32_t place = tasks_[index(task)].place;
    unassign(task);
    notify_all([&](AssignmentListener& listener) { listener.task_withdrawn(task); });
    refresh(place);
    worklist_.unsettled.push_back(place);
    mark_moved(task);
}

void Assignment::reconsider(std::int32_t task) {
    if (!tasks_[index(task)].assigned()) return;
    if (current_cost(task) <= best_choice(task).key >> 1) return;
    withdraw(task);
    worklist_.waiting.push_back(task);
}

std::vector<std::int32_t> Assignment::take_moved() {
    for (const std::int32_t task : moved_) tasks_[index(task)].moved = false;
    return std::exchange(moved_, {});
}

void Assignment::unassign_all() {
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        Place& at = places_[index(place)];
        at.load = 0;
        at.first_task = kAbsent;
        if (!is_hub(place)) key_[index(place)] = key(at.exit_cost, at.full());
    }
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        if (tasks_[index(task)].assigned()) mark_moved(task);
        tasks_[index(task)].place = kAbsent;
    }
    rebuild_hubs();
}

// ---- prices -----------------------------------------------------------------------------------------------

// Sets the key of a place, and of the hubs it is in.
void Assignment::set_key(std::int32_t place, std::int64_t key) {
    TOPOPLACE_ASSERT(!is_hub(place));
    if (std::exchange(key_[index(place)], key) == key) return;
    std::int32_t i = places_[index(place)].first_membership;
    for (; i >= 0; i = memberships_[index(i)].next) {
        const Membership& membership = memberships_[index(i)];
        Hub& hub = hubs_[index(membership.hub)];
        const Member& member = hub.members[index(membership.leaf)];
        TOPOPLACE_ASSERT(member.place == place);
        hub.best.set(membership.leaf, 2 * member.distance + key_[index(place)]);
        key_[index(hub.target)] = std::min(hub.best.least(), 2 * kFar);
    }
}

void Assignment::set_value(std::int32_t place, std::int64_t value) {
    const Place& changed = places_[index(place)];
    TOPOPLACE_ASSERT(changed.exit_cost <= value && value < kFar);
    set_key(place, key(value, changed.full()));
    notify_all([&](AssignmentListener& listener) { listener.price_changed(place); });
}

void Assignment::refresh(std::int32_t place) {
    set_key(place, key(value(place), places_[index(place)].full()));
}

void Assignment::shift_prices(std::int64_t by) {
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        if (!is_limited(place)) continue;
        key_[index(place)] += 2 * by;
        TOPOPLACE_ASSERT(price(place) >= 0);
    }
    rebuild_hubs();
}

Tournament Assignment::best_of(std::span<const Member> members) const {
    return {members.size(),
            [&](std::size_t leaf) { return 2 * members[leaf].distance + key_[index(members[leaf].place)]; }};
}

void Assignment::rebuild_hubs() {
    for (Hub& hub : hubs_) {
        hub.best = best_of(hub.members);
        key_[index(hub.target)] = hub.best.least();
    }
}

void Assignment::set_option_cost(std::int32_t task, std::int32_t option, std::int64_t cost) {
    Task& of = tasks_[index(task)];
    TOPOPLACE_ASSERT(of.first <= option && option < of.end());
    TOPOPLACE_ASSERT(-kFar < cost && cost < kFar);
    Option& changed = options_[index(option)];
    if (of.assigned() && of.option == option) {
        of.cost += cost - changed.cost;
        mark_moved(task);
    }
    changed.cost = cost;
}

void Assignment::set_capacity(std::int32_t place, std::int64_t capacity) {
    TOPOPLACE_ASSERT(capacity >= 0 && !is_hub(place));
    Place& changed = places_[index(place)];
    const bool exit = is_exit(place);
    changed.capacity = static_cast<std::int32_t>(std::min(capacity, kMostTasks));
    if (exit == is_exit(place)) return;
    notify_all([&](AssignmentListener& listener) { listener.exits_changed(); });
}

// ---- queries ----------------------------------------------------------------------------------------------

Assignment::Choice Assignment::best_choice(std::int32_t task) const {
    const Task& from = tasks_[index(task)];
    Choice choice;
    for (std::int32_t option = from.first; option < from.end(); ++option) {
        const Option& to = options_[index(option)];
        const std::int64_t key = 2 * to.cost + key_[index(to.target)];
        if (key >= choice.key) continue;
        choice.key = key;
        choice.route.option = option;
    }
    if (choice.route.option < 0) return choice;
    choice.place = options_[index(choice.route.option)].target;
    choice.route.hub = hub_of_[index(choice.place)];
    if (choice.route.hub >= 0) {
        const Hub& hub = hubs_[index(choice.route.hub)];
        choice.route.leaf = hub.best.first();
        choice.place = hub.members[index(choice.route.leaf)].place;
    }
    TOPOPLACE_ASSERT(choice.key % 2 != 0 || !places_[index(choice.place)].full());
    return choice;
}

bool Assignment::is_popular(std::int32_t target) const {
    const std::int64_t in_degree = places_[index(target)].in_degree;
    return in_degree >= kManyTasks && kPopularShare * in_degree >= num_tasks();
}

std::int64_t Assignment::limited_room() const {
    std::int64_t room = 0;
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        if (is_limited(place)) room += places_[index(place)].capacity;
    }
    return room;
}

// ---- invariants -------------------------------------------------------------------------------------------

void Assignment::assert_place(std::int32_t place, bool settled) const {
    const Place& at = places_[index(place)];
    std::int32_t tasks = 0;
    std::int32_t previous = kAbsent;
    for (std::int32_t task = at.first_task; task >= 0; task = next_[index(task)]) {
        TOPOPLACE_ASSERT(tasks_[index(task)].place == place);
        TOPOPLACE_ASSERT(previous_[index(task)] == previous);
        previous = task;
        ++tasks;
    }
    TOPOPLACE_ASSERT(at.load == tasks && at.load <= at.capacity);
    TOPOPLACE_ASSERT(price(place) >= 0);
    TOPOPLACE_ASSERT(at.full() || !settled || price(place) == 0);
    TOPOPLACE_ASSERT(!at.full() || key_[index(place)] % 2 != 0);
}

void Assignment::assert_hub(const Hub& hub) const {
    std::int64_t least = Tournament::kNoKey;
    for (std::size_t leaf = 0; leaf < hub.members.size(); ++leaf) {
        const std::int64_t key = 2 * hub.members[leaf].distance + key_[index(hub.members[leaf].place)];
        TOPOPLACE_ASSERT(hub.best.key(static_cast<std::int32_t>(leaf)) == key);
        least = std::min(least, key);
    }
    TOPOPLACE_ASSERT(key_[index(hub.target)] == least);
}

void Assignment::assert_task(std::int32_t task, bool waits) const {
    const Task& of = tasks_[index(task)];
    if (of.count == 0) return TOPOPLACE_ASSERT(!of.assigned());
    TOPOPLACE_ASSERT(of.assigned() || waits);
    if (!of.assigned()) return;
    TOPOPLACE_ASSERT(of.first <= of.option && of.option < of.end());
    std::int64_t least = kFar;
    for (std::int32_t option = of.first; option < of.end(); ++option) {
        const Option& to = options_[index(option)];
        least = std::min(least, to.cost + value(to.target));
    }
    TOPOPLACE_ASSERT(current_cost(task) == least);
}

void Assignment::assert_invariants() const {
    if constexpr (!kAssertionsOn) return;
    std::vector<bool> waits(tasks_.size());
    std::vector<bool> settled(places_.size(), true);
    for (const std::int32_t task : worklist_.waiting) waits[index(task)] = true;
    for (const std::int32_t place : worklist_.unsettled) settled[index(place)] = false;
    for (const Hub& hub : hubs_) assert_hub(hub);
    std::vector<std::int32_t> in_degree(places_.size());
    std::int64_t load = 0;
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        const Task& of = tasks_[index(task)];
        assert_task(task, waits[index(task)]);
        load += of.assigned() ? 1 : 0;
        for (std::int32_t option = of.first; option < of.end(); ++option)
            ++in_degree[index(options_[index(option)].target)];
    }
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        TOPOPLACE_ASSERT(places_[index(place)].in_degree == in_degree[index(place)]);
        if (is_hub(place)) continue;
        assert_place(place, settled[index(place)]);
        load -= places_[index(place)].load;
    }
    TOPOPLACE_ASSERT(load == 0);
}

}  // namespace topoplace::flow
