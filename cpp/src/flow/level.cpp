// Prices that move together.
#include <algorithm>
#include <functional>

#include "flow/assignment.hpp"

namespace topoplace::flow {

// By how much the price of every limited place would have to rise until a task leaves for its exit; below
// zero, fall until it comes.
std::int64_t Assignment::patience(std::int32_t task) const {
    const std::int32_t exit = exit_[index(task)];
    if (exit < 0) return kFar;
    const Option& out = options_[index(exit)];
    const std::int64_t leaving = out.cost + value(out.target);
    const Task& at = tasks_[index(task)];
    if (at.place >= 0 && !is_exit(at.place)) return leaving - value_of_task(task);
    std::int64_t inside = kFar;
    for (std::int32_t option = at.first; option < at.first + at.count; ++option) {
        const Option& to = options_[index(option)];
        if (!is_hub(to.target) && is_exit(to.target)) continue;
        inside = std::min(inside, to.cost + value(to.target));
    }
    return leaving - inside;
}

// By how much prices have to rise until there is room for all that want a place; zero if they need not, or
// cannot.
std::int64_t Assignment::common_shift() {
    std::int64_t least = kFar;
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        if (!is_hub(place) && !is_exit(place)) least = std::min(least, price(place));
    }
    std::vector<std::int64_t> patiences;
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        if (tasks_[index(task)].count > 0) patiences.push_back(patience(task));
    }
    const std::int64_t taken = room();
    if (least == 0 || static_cast<std::int64_t>(patiences.size()) <= taken) return 0;
    const auto nth = patiences.begin() + taken;
    std::nth_element(patiences.begin(), nth, patiences.end(), std::greater<>());
    return *nth > kFar / 2 ? 0 : std::max(*nth, -least);
}

// All prices rise or fall together until as many tasks want a place as there is room for. What each prefers
// among the places stays as it is, so that only those move who compare them with their exit. Worth a look at
// all tasks where many come and go: else each of them would look at most places to find how far prices have
// to move.
void Assignment::level() {
    if (!exits_open_) open_exits();
    const std::int64_t by = common_shift();
    if (by == 0) return;
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        const std::int32_t place = tasks_[index(task)].place;
        if (place < 0) continue;
        const std::int64_t borne = patience(task);
        if (is_exit(place) ? borne <= by : borne >= by) continue;
        unseat_fully(task);
        unseated_.push_back(task);
    }
    shift(by);
}

void Assignment::shift(std::int64_t by) {
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        if (!is_hub(place) && !is_exit(place)) key_[index(place)] += 2 * by;
    }
    for (Hub& hub : hubs_) {
        std::vector<std::int64_t> keys;
        for (const Member& member : hub.members)
            keys.push_back(2 * member.distance + key_[index(member.place)]);
        hub.best = Tournament(keys);
        key_[index(hub.target)] = hub.best.least();
    }
    if (entrances_open_) open_entrances();
}

}  // namespace topoplace::flow
