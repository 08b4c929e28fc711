// Where the values of an assignment's targets will end, roughly: coordinate ascent on its dual.
#include <algorithm>
#include <functional>
#include <numeric>

#include "flow/assignment.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::flow {

class Assignment::Estimate {
  public:
    explicit Estimate(const Assignment& assignment);
    // Rounds as long as they help, each two passes over all options.
    void run(std::int32_t rounds);
    const std::vector<std::int64_t>& values() const { return best_; }

  private:
    static constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::min() / 4;

    // What a task finds at present.
    struct Choices {
        std::int64_t exit = kFar;
        std::int64_t common = kFar;  // the cheapest of the places that rise and fall together
        std::int64_t apart = kFar;   // the cheapest of the others
        std::int32_t where = -1;     // that is
    };

    bool limited(std::size_t target) const { return room_[target] >= 0; }
    std::int64_t level_at(std::size_t place) const { return level_ - distance_[place]; }
    Choices choices(const Task& task) const;
    Total look();
    std::int64_t common_shift();
    void move_together();
    void move_alone();
    void collect_offers();
    void refresh_hubs();

    const Assignment& of_;
    std::vector<std::int64_t> values_;    // by target
    std::vector<std::int64_t> best_;      // the values with the greatest dual so far
    std::vector<std::int64_t> room_;      // by target: the capacity; -1: a hub or an exit
    std::vector<std::int64_t> distance_;  // by place: from the hub that most tasks can choose
    std::vector<std::uint8_t> apart_;     // by place: above the level of that hub
    std::vector<std::int64_t> taken_;     // by place apart: tasks that would rather be there
    std::vector<std::int32_t> starts_;    // by place: of its offers
    std::vector<std::int32_t> ends_;
    std::vector<std::int64_t> offers_;
    std::vector<std::int64_t> thresholds_;  // by task: how much the common level may rise until it leaves
    std::int32_t widest_ = -1;
    std::int64_t level_ = kNobody;
    bool follows_ = true;  // tasks at places apart are thought to stay there as the level falls
};

Assignment::Estimate::Estimate(const Assignment& assignment) : of_(assignment) {
    const std::size_t size = of_.places_.size();
    std::vector<std::int32_t> comers(size, 0);
    for (const Option& option : of_.options_) ++comers[index(option.target)];
    values_.resize(size);
    room_.assign(size, -1);
    distance_.assign(size, kFar);
    apart_.assign(size, 0);
    taken_.assign(size, 0);
    starts_.assign(size + 1, 0);
    for (std::size_t i = 0; i < size; ++i) {
        const auto target = static_cast<std::int32_t>(i);
        values_[i] = of_.value(target);
        if (of_.is_hub(target)) {
            if (widest_ < 0 || comers[i] > comers[index(widest_)]) widest_ = target;
        } else if (!of_.is_exit(target)) {
            room_[i] = of_.places_[i].capacity;
        }
        starts_[i + 1] = starts_[i] + (limited(i) ? comers[i] : 0);
    }
    offers_.resize(index(starts_.back()));
    if (widest_ < 0) return;
    for (const Member& member : of_.hubs_[index(of_.hub_of_[index(widest_)])].members) {
        distance_[index(member.place)] = std::min(distance_[index(member.place)], member.distance);
    }
}

Assignment::Estimate::Choices Assignment::Estimate::choices(const Task& task) const {
    Choices found;
    for (std::int32_t i = task.first; i < task.first + task.count; ++i) {
        const Option& option = of_.options_[index(i)];
        const std::size_t target = index(option.target);
        const std::int64_t through = option.cost + values_[target];
        if (!limited(target) && !of_.is_hub(option.target)) {
            found.exit = std::min(found.exit, through);
        } else if (apart_[target] == 0) {
            found.common = std::min(found.common, through);
        } else if (through < found.apart) {
            found.apart = through;
            found.where = option.target;
        }
    }
    return found;
}

// Sets thresholds and counts of takers; returns the dual of the values.
Total Assignment::Estimate::look() {
    thresholds_.clear();
    std::fill(taken_.begin(), taken_.end(), 0);
    Total dual = 0;
    for (const Task& task : of_.tasks_) {
        if (task.count == 0) continue;
        const Choices found = choices(task);
        const std::int64_t other = std::min(found.exit, found.apart);
        dual += std::min(other, found.common);
        const bool stays = found.apart < found.common && found.apart <= found.exit;
        if (stays) ++taken_[index(found.where)];
        if (found.common < kFar && !(stays && follows_)) {
            thresholds_.push_back((follows_ ? found.exit : other) - found.common);
        }
    }
    for (std::size_t i = 0; i < room_.size(); ++i) {
        if (limited(i)) dual -= Total{room_[i]} * (values_[i] - of_.places_[i].exit_cost);
    }
    return dual;
}

// How far all that is not apart should rise or fall for as many tasks to want it as there is room.
std::int64_t Assignment::Estimate::common_shift() {
    std::int64_t room = 0;
    for (std::size_t i = 0; i < room_.size(); ++i) {
        if (limited(i)) room += std::max<std::int64_t>(0, room_[i] - taken_[i]);
    }
    if (static_cast<std::int64_t>(thresholds_.size()) <= room) return kNobody;
    const auto nth = thresholds_.begin() + static_cast<std::ptrdiff_t>(room);
    std::nth_element(thresholds_.begin(), nth, thresholds_.end(), std::greater<>());
    return *nth < kFar / 2 ? *nth : kNobody;  // too many have nowhere else: no price tells them apart
}

void Assignment::Estimate::refresh_hubs() {
    for (const Hub& hub : of_.hubs_) {
        std::int64_t& least = values_[index(hub.target)];
        least = kFar;
        for (const Member& member : hub.members) {
            least = std::min(least, member.distance + values_[index(member.place)]);
        }
    }
    if (widest_ >= 0) level_ = values_[index(widest_)];
}

void Assignment::Estimate::move_together() {
    const std::int64_t shift = common_shift();
    if (widest_ >= 0) level_ = values_[index(widest_)] + shift;
    for (std::size_t i = 0; i < values_.size(); ++i) {
        if (!limited(i)) continue;
        const std::int64_t moved = apart_[i] != 0 ? values_[i] : values_[i] + shift;
        values_[i] = std::max({of_.places_[i].exit_cost, moved, level_at(i)});
    }
    refresh_hubs();
}

// What each task would give at most for each place it names.
void Assignment::Estimate::collect_offers() {
    ends_.assign(starts_.begin(), starts_.end() - 1);
    for (const Task& task : of_.tasks_) {
        std::int64_t first = kFar;
        std::int64_t second = kFar;
        std::int32_t best = -1;
        for (std::int32_t i = task.first; i < task.first + task.count; ++i) {
            const Option& option = of_.options_[index(i)];
            const std::int64_t through = option.cost + values_[index(option.target)];
            second = std::min(second, std::max(first, through));
            if (through < first) best = option.target;
            first = std::min(first, through);
        }
        for (std::int32_t i = task.first; i < task.first + task.count; ++i) {
            const Option& option = of_.options_[index(i)];
            if (!limited(index(option.target))) continue;
            const std::int64_t other = option.target == best ? second : first;
            offers_[index(ends_[index(option.target)]++)] = other - option.cost;
        }
    }
}

// Each place goes to what the first of the tasks that it cannot take would give.
void Assignment::Estimate::move_alone() {
    collect_offers();
    for (std::size_t i = 0; i < values_.size(); ++i) {
        if (!limited(i)) continue;
        const std::int64_t base = std::max(of_.places_[i].exit_cost, level_at(i));
        std::int64_t offer = kNobody;
        if (ends_[i] - starts_[i] > room_[i]) {
            const auto nth = offers_.begin() + starts_[i] + static_cast<std::ptrdiff_t>(room_[i]);
            std::nth_element(offers_.begin() + starts_[i], nth, offers_.begin() + ends_[i], std::greater<>());
            offer = *nth < kFar / 2 ? *nth : kNobody;
        }
        values_[i] = std::max(base, offer);
        apart_[i] = offer > base ? 1 : 0;
    }
    refresh_hubs();
}

void Assignment::Estimate::run(std::int32_t rounds) {
    Total greatest = look();
    best_ = values_;
    std::vector<std::uint8_t> best_apart = apart_;
    for (std::int32_t round = 0; round < rounds; ++round) {
        move_together();
        move_alone();
        const Total dual = look();
        if (dual > greatest) {
            greatest = dual;
            best_ = values_;
            best_apart = apart_;
        } else if (dual == greatest || !follows_) {
            return;
        } else {
            follows_ = false;
            values_ = best_;
            apart_ = best_apart;
            look();
        }
    }
}

void Assignment::estimate_values(std::int32_t rounds) {
    Estimate estimate(*this);
    estimate.run(rounds);
    for (std::int32_t target = 0; target < num_targets(); ++target) {
        if (estimate.values()[index(target)] != value(target) && !is_hub(target)) {
            set_value(target, estimate.values()[index(target)]);
        }
    }
}

}  // namespace topoplace::flow
