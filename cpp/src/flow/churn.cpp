// An assignment that is kept while tasks come and go.
#include <algorithm>

#include "flow/assignment.hpp"

namespace topoplace::flow {

void Assignment::unseat_fully(std::int32_t task) {
    const std::int32_t place = tasks_[index(task)].place;
    unseat(task);
    if (entrances_open_) {
        task_value_[index(task)] = -kFar;
        for (Entrance& entrance : entrances_) entrance.loss.set(task, Tournament::kNone);
    }
    set_value(place, value(place));
    loose_.push_back(place);
    moved_.push_back(task);
}

// A task stays only where it could not be better off.
void Assignment::reconsider(std::int32_t task) {
    if (tasks_[index(task)].place < 0) return;
    if (value_of_task(task) <= best_choice(task).key >> 1) return;
    unseat_fully(task);
    unseated_.push_back(task);
}

std::int32_t Assignment::room_for_options(std::size_t count) {
    if (free_options_.size() > count && !free_options_[count].empty()) {
        const std::int32_t first = free_options_[count].back();
        free_options_[count].pop_back();
        return first;
    }
    options_.resize(options_.size() + count);
    if (entrances_open_) position_.resize(options_.size());
    return static_cast<std::int32_t>(options_.size() - count);
}

// Makes room by task where hubs keep account of tasks.
void Assignment::grow() {
    const std::size_t size = 2 * tasks_.size();
    if (exits_open_ && exit_.size() < tasks_.size()) {
        exit_.resize(size, -1);
        for (Hub& hub : hubs_) {
            if (!hub.leaving.empty()) hub.leaving.grow(size);
        }
    }
    if (entrances_open_ && task_value_.size() < tasks_.size()) task_value_.resize(size, -kFar);
    for (Entrance& entrance : entrances_) {
        if (!entrances_open_ || entrance.cost.size() >= tasks_.size()) continue;
        entrance.cost.resize(size, Tournament::kNone);
        entrance.loss.grow(size);
    }
}

std::int32_t Assignment::take_task(std::span<const Option> options) {
    std::int32_t task = num_tasks();
    if (free_tasks_.empty()) {
        tasks_.emplace_back();
        grow();
    } else {
        task = free_tasks_.back();
        free_tasks_.pop_back();
    }
    Task& coming = tasks_[index(task)];
    coming = Task{};
    coming.first = room_for_options(options.size());
    coming.count = static_cast<std::int32_t>(options.size());
    std::copy(options.begin(), options.end(), options_.begin() + coming.first);
    for (const Option& option : options) {
        const bool exit = !is_hub(option.target) && is_exit(option.target);
        ++places_[index(option.target)].comers;
        if (exit && !is_exit(option.target)) exits_open_ = false;
    }
    if (entrances_open_) link(task);
    if (exits_open_) choose_exit(task);
    unseated_.push_back(task);
    return task;
}

void Assignment::drop_task(std::int32_t task) {
    Task& leaving = tasks_[index(task)];
    if (leaving.place >= 0) unseat_fully(task);
    if (entrances_open_) unlink(task);
    for (std::int32_t option = leaving.first; option < leaving.first + leaving.count; ++option) {
        --places_[index(options_[index(option)].target)].comers;
    }
    const auto count = static_cast<std::size_t>(leaving.count);
    if (free_options_.size() <= count) free_options_.resize(count + 1);
    free_options_[count].push_back(leaving.first);
    leaving = Task{};
    if (exits_open_) exit_[index(task)] = -1;
    free_tasks_.push_back(task);
}

void Assignment::set_option_cost(std::int32_t task, std::int32_t option, std::int64_t cost) {
    Task& of = tasks_[index(task)];
    Option& changed = options_[index(option)];
    if (of.place >= 0 && of.option == option) {
        of.cost += cost - changed.cost;
        moved_.push_back(task);
    }
    changed.cost = cost;
    if (entrances_open_) comers_[index(changed.target)][index(position_[index(option)])].cost = cost;
    const std::int32_t entrance = entrances_open_ ? entrance_of_[index(changed.target)] : -1;
    if (entrance >= 0) {
        std::int64_t& least = entrances_[index(entrance)].cost[index(task)];
        least = Tournament::kNone;
        for (std::int32_t i = of.first; i < of.first + of.count; ++i) {
            if (options_[index(i)].target == changed.target) least = std::min(least, options_[index(i)].cost);
        }
    }
    if (exits_open_) choose_exit(task);
    if (of.place < 0) return;
    if (entrances_open_) refresh_entrances(task);
    if (exits_open_) refresh_exits(task);
    reconsider(task);
}

// After an exit has become cheaper or dearer.
void Assignment::reconsider_comers(std::int32_t place) {
    if (!entrances_open_) open_entrances();
    const std::vector<Comer> comers = comers_[index(place)];
    for (const auto& [cost, task, option] : comers) {
        if (exits_open_) choose_exit(task);
        if (exits_open_ && tasks_[index(task)].place >= 0) refresh_exits(task);
        reconsider(task);
    }
}

void Assignment::set_exit_cost(std::int32_t place, std::int64_t cost) {
    Place& changed = places_[index(place)];
    const bool exit = is_exit(place);
    changed.exit_cost = cost;
    std::int32_t here = changed.first_task;
    for (; here >= 0; here = tasks_[index(here)].next) moved_.push_back(here);
    if (exit) {
        set_value(place, cost);
        reconsider_comers(place);
    } else if (value(place) < cost) {
        set_value(place, cost);
        std::vector<std::int32_t> seated;
        std::int32_t task = changed.first_task;
        for (; task >= 0; task = tasks_[index(task)].next) seated.push_back(task);
        for (const std::int32_t each : seated) reconsider(each);
    } else {
        set_value(place, value(place));  // for those who compare it with the price
        loose_.push_back(place);
    }
}

void Assignment::set_capacity(std::int32_t place, std::int64_t capacity) {
    Place& changed = places_[index(place)];
    const bool exit = is_exit(place);
    changed.capacity =
        static_cast<std::int32_t>(std::min<std::int64_t>(capacity, std::numeric_limits<std::int32_t>::max()));
    if (exit != is_exit(place)) exits_open_ = false;
    while (changed.load > changed.capacity) {
        const std::int32_t task = changed.first_task;
        unseat_fully(task);
        unseated_.push_back(task);
    }
    set_value(place, value(place));
    loose_.push_back(place);
}

bool Assignment::drop_place(std::int32_t place) {
    const Place& leaving = places_[index(place)];
    if (leaving.comers > 0 || leaving.load > 0 || leaving.first_membership >= 0) return false;
    free_places_.push_back(place);
    places_[index(place)] = Place{};
    key_[index(place)] = key(0, true);
    return true;
}

// Nobody is anywhere, and no place has a price.
void Assignment::empty() {
    entrances_open_ = exits_open_ = false;
    for (std::int32_t place = 0; place < num_targets(); ++place) {
        Place& at = places_[index(place)];
        at.load = 0;
        at.first_task = -1;
        if (!is_hub(place)) key_[index(place)] = key(at.exit_cost, at.full());
    }
    for (std::int32_t task = 0; task < num_tasks(); ++task) {
        if (tasks_[index(task)].place >= 0) moved_.push_back(task);
        tasks_[index(task)].place = -1;
    }
    shift(0);
}

bool Assignment::mend(NodeCounter& counter) {
    constexpr std::size_t kMany = 64;
    short_of_room_ = room() < num_tasks() - static_cast<std::int64_t>(free_tasks_.size());
    if (short_of_room_ && unseated_.size() + loose_.size() >= kMany) level();
    const std::uint64_t enough =
        counter.nodes() + std::max<std::uint64_t>(options_.size() * 3 / 4, 2 * nodes_from_nothing_);
    while (!unseated_.empty() || !loose_.empty()) {
        if (counter.nodes() > enough && short_of_room_) {
            empty();  // to estimate prices and assign all anew takes about as long as this did
            return solve(counter);
        }
        if (!mend_one(counter)) return false;
    }
    return true;
}

// Inserts a task, or else attracts one.
bool Assignment::mend_one(NodeCounter& counter) {
    if (!unseated_.empty()) {
        const std::int32_t task = unseated_.back();
        unseated_.pop_back();
        const bool waits = tasks_[index(task)].count > 0 && tasks_[index(task)].place < 0;
        return !waits || insert(task, counter);
    }
    const std::int32_t place = loose_.back();
    if (is_hub(place) || places_[index(place)].full() || price(place) == 0) {
        loose_.pop_back();
    } else {
        attract(place, counter);
    }
    return !counter.stopped();
}

}  // namespace topoplace::flow
