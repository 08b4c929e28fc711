// Two kinds of moves take turns. All places at the level of the widest hub, the one that most tasks name,
// rise or fall together until as many tasks want them as there is room. Then each place alone goes to the
// highest bid that it cannot accept; those above the hub's level stand apart from there on.
#include "flow/scheduling/start/price_estimate.hpp"

#include <algorithm>
#include <functional>

#include "topoplace/assert.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::flow {
namespace {

class PriceEstimate {
  public:
    explicit PriceEstimate(const Assignment& assignment);
    // Returns the values of the greatest dual found.
    std::vector<std::int64_t> run(std::int32_t rounds);

  private:
    // Less than any bid, or shift of prices.
    static constexpr std::int64_t kNoBid = std::numeric_limits<std::int64_t>::min() / 4;

    // Cost of the best way out that a task has, by kind of target.
    struct Choices {
        std::int64_t exit = kFar;
        std::int64_t common = kFar;    // places that rise and fall together
        std::int64_t apart = kFar;     // the others
        std::int32_t where = kAbsent;  // the cheapest of them
    };

    // A shift from which on the level reaches one more place, and the room of all reached by then.
    struct Step {
        std::int64_t least = 0;
        std::int64_t room = 0;
    };

    // Of a target, in the eyes of a task.
    enum class Kind : std::uint8_t {
        common,  // a hub, or a place that rises and falls with the others
        apart,   // a place above the level of the widest hub
        exit,
    };

    bool limited(std::size_t target) const { return room_[target] >= 0; }
    bool is_member(std::size_t place) const { return distance_[place] < kFar; }
    std::int64_t level_at(std::size_t place) const { return level_ - distance_[place]; }
    Choices choices(const Assignment::Task& task) const;
    Total assess();
    void sort_rooms();
    std::int64_t common_shift();
    void move_together();
    void move_alone();
    void collect_bids();
    void refresh_hubs();

    const Assignment& of_;
    std::vector<std::int64_t> values_;    // by target
    std::vector<std::int64_t> room_;      // by target: the capacity; -1: a hub or an exit
    std::vector<std::int64_t> distance_;  // by place: from the widest hub
    std::vector<Kind> kind_;              // by target
    std::vector<std::int64_t> taken_;     // by place apart: tasks that prefer it
    std::vector<std::int32_t> starts_;    // by place: its first bid
    std::vector<std::int32_t> ends_;      // by place: past its last bid
    std::vector<std::int64_t> bids_;
    std::vector<std::int64_t> thresholds_;  // by task: how much the level may rise until it leaves
    std::vector<Step> steps_;
    std::int32_t widest_ = kAbsent;  // the hub that most tasks name
    std::int64_t level_ = kNoBid;
    bool follows_ = true;  // assume that tasks at places apart stay there as the level falls
};

PriceEstimate::PriceEstimate(const Assignment& assignment) : of_(assignment) {
    const std::size_t size = of_.places().size();
    std::vector<std::int32_t> in_degree(size, 0);
    for (const Option& option : of_.options()) ++in_degree[index(option.target)];
    values_.resize(size);
    room_.assign(size, -1);
    distance_.assign(size, kFar);
    kind_.assign(size, Kind::common);
    taken_.assign(size, 0);
    starts_.assign(size + 1, 0);
    for (std::size_t i = 0; i < size; ++i) {
        const auto target = static_cast<std::int32_t>(i);
        values_[i] = of_.value(target);
        if (of_.is_hub(target)) {
            if (widest_ < 0 || in_degree[i] > in_degree[index(widest_)]) widest_ = target;
        } else if (!of_.is_exit(target)) {
            room_[i] = of_.places()[i].capacity;
        } else {
            kind_[i] = Kind::exit;
        }
        starts_[i + 1] = starts_[i] + (limited(i) ? in_degree[i] : 0);
    }
    bids_.resize(index(starts_.back()));
    if (widest_ < 0) return;
    for (const Member& member : of_.hub(of_.hub_of(widest_)).members) {
        distance_[index(member.place)] = std::min(distance_[index(member.place)], member.distance);
    }
}

PriceEstimate::Choices PriceEstimate::choices(const Assignment::Task& task) const {
    Choices found;
    for (const Option& option : of_.options_of(task)) {
        const std::size_t target = index(option.target);
        const std::int64_t through = option.cost + values_[target];
        if (kind_[target] == Kind::exit) {
            found.exit = std::min(found.exit, through);
        } else if (kind_[target] == Kind::common) {
            found.common = std::min(found.common, through);
        } else if (through < found.apart) {
            found.apart = through;
            found.where = option.target;
        }
    }
    return found;
}

// Counts which tasks want which places at the current values; returns the dual of these.
Total PriceEstimate::assess() {
    thresholds_.clear();
    std::fill(taken_.begin(), taken_.end(), 0);
    Total dual = 0;
    for (const Assignment::Task& task : of_.tasks()) {
        if (task.count == 0) continue;
        const Choices found = choices(task);
        const std::int64_t other = std::min(found.exit, found.apart);
        dual += std::min(other, found.common);
        const bool stays = found.apart < found.common && found.apart <= found.exit;
        TOPOPLACE_ASSERT(!stays || limited(index(found.where)));
        if (stays) ++taken_[index(found.where)];
        if (found.common < kFar && !(stays && follows_)) {
            thresholds_.push_back((follows_ ? found.exit : other) - found.common);
        }
    }
    for (std::size_t i = 0; i < room_.size(); ++i) {
        if (limited(i)) dual -= Total{room_[i]} * (values_[i] - of_.places()[i].exit_cost);
    }
    return dual;
}

// The rooms in the order in which the level reaches the places as it rises.
void PriceEstimate::sort_rooms() {
    steps_.clear();
    for (std::size_t i = 0; i < room_.size(); ++i) {
        if (!limited(i) || room_[i] <= taken_[i]) continue;
        const std::int64_t value = of_.places()[i].exit_cost;
        const std::int64_t least =
            is_member(i) ? value + distance_[i] - values_[index(widest_)] : value - values_[i];
        steps_.push_back({.least = least, .room = room_[i] - taken_[i]});
    }
    std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.least < b.least; });
    std::int64_t sum = 0;
    for (Step& step : steps_) step.room = sum += step.room;
}

// By how much all places that are not apart should rise or fall, so that as many tasks want them as there is
// room at the places that the level reaches.
std::int64_t PriceEstimate::common_shift() {
    sort_rooms();
    // The first step whose room suffices before the level reaches the next one.
    const auto suffices = [&](const Step& step) {
        const Step* const next = &step + 1;
        if (next == steps_.data() + steps_.size()) return true;
        return step.room >= std::count_if(thresholds_.begin(), thresholds_.end(),
                                          [&](std::int64_t threshold) { return threshold >= next->least; });
    };
    const auto at =
        std::partition_point(steps_.begin(), steps_.end(), [&](const Step& step) { return !suffices(step); });
    const Step reached = at == steps_.end() ? Step{.least = kNoBid, .room = 0} : *at;
    if (static_cast<std::int64_t>(thresholds_.size()) <= reached.room) return reached.least;
    const auto nth = thresholds_.begin() + static_cast<std::ptrdiff_t>(reached.room);
    std::nth_element(thresholds_.begin(), nth, thresholds_.end(), std::greater<>());
    if (*nth >= kFar / 2) return kNoBid;  // too many tasks have no exit: no price decides between them
    return std::max(*nth, reached.least);
}

void PriceEstimate::refresh_hubs() {
    for (const Assignment::Hub& hub : of_.hubs()) {
        std::int64_t& least = values_[index(hub.target)];
        least = kFar;
        for (const Member& member : hub.members) {
            least = std::min(least, member.distance + values_[index(member.place)]);
        }
    }
    if (widest_ >= 0) level_ = values_[index(widest_)];
}

void PriceEstimate::move_together() {
    const std::int64_t shift = common_shift();
    if (widest_ >= 0) level_ = values_[index(widest_)] + shift;
    for (std::size_t i = 0; i < values_.size(); ++i) {
        if (!limited(i)) continue;
        const std::int64_t moved = kind_[i] == Kind::apart ? values_[i] : values_[i] + shift;
        values_[i] = std::max({of_.places()[i].exit_cost, moved, level_at(i)});
        if (values_[i] == level_at(i)) kind_[i] = Kind::common;
        TOPOPLACE_ASSERT(values_[i] < kFar);
    }
    refresh_hubs();
}

// The most that each task would pay for each place it names.
void PriceEstimate::collect_bids() {
    ends_.assign(starts_.begin(), starts_.end() - 1);
    for (const Assignment::Task& task : of_.tasks()) {
        std::int64_t first = kFar;
        std::int64_t second = kFar;
        std::int32_t best = kAbsent;
        const std::span<const Option> options = of_.options_of(task);
        for (const Option& option : options) {
            const std::int64_t through = option.cost + values_[index(option.target)];
            second = std::min(second, std::max(first, through));
            if (through < first) best = option.target;
            first = std::min(first, through);
        }
        for (const Option& option : options) {
            const std::size_t target = index(option.target);
            if (!limited(target)) continue;
            const std::int64_t other = option.target == best ? second : first;
            TOPOPLACE_ASSERT(ends_[target] < starts_[target + 1]);
            bids_[index(ends_[target]++)] = other - option.cost;
        }
    }
}

// Sets each place to the highest bid that it cannot accept.
void PriceEstimate::move_alone() {
    collect_bids();
    for (std::size_t i = 0; i < values_.size(); ++i) {
        if (!limited(i)) continue;
        const std::int64_t base = std::max(of_.places()[i].exit_cost, level_at(i));
        std::int64_t bid = kNoBid;
        if (ends_[i] - starts_[i] > room_[i]) {
            const auto nth = bids_.begin() + starts_[i] + static_cast<std::ptrdiff_t>(room_[i]);
            std::nth_element(bids_.begin() + starts_[i], nth, bids_.begin() + ends_[i], std::greater<>());
            bid = *nth < kFar / 2 ? *nth : kNoBid;
        }
        values_[i] = std::max(base, bid);
        TOPOPLACE_ASSERT(values_[i] >= of_.places()[i].exit_cost && values_[i] < kFar);
        const bool apart = bid > base || (is_member(i) && base > level_at(i));
        kind_[i] = apart ? Kind::apart : Kind::common;
    }
    refresh_hubs();
}

std::vector<std::int64_t> PriceEstimate::run(std::int32_t rounds) {
    Total greatest = assess();
    std::vector<std::int64_t> best = values_;
    std::vector<Kind> best_kind = kind_;
    for (std::int32_t round = 0; round < rounds; ++round) {
        move_together();
        move_alone();
        const Total dual = assess();
        if (dual > greatest || round == 0) {
            greatest = dual;
            best = values_;
            best_kind = kind_;
        } else if (dual == greatest || !follows_) {
            break;
        } else {
            follows_ = false;
            values_ = best;
            kind_ = best_kind;
            assess();
        }
    }
    return best;
}

}  // namespace

std::vector<std::int64_t> estimate_values(const Assignment& assignment, std::int32_t rounds) {
    return PriceEstimate(assignment).run(rounds);
}

void set_values(Assignment& assignment, const std::vector<std::int64_t>& values) {
    TOPOPLACE_ASSERT(values.size() == assignment.places().size());
    for (std::int32_t target = 0; target < assignment.num_targets(); ++target) {
        const std::int64_t value = values[index(target)];
        if (value != assignment.value(target) && !assignment.is_hub(target))
            assignment.set_value(target, value);
    }
}

}  // namespace topoplace::flow
