// Values of domains, bottom up.
#include "groups/fewest_domains.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

namespace topoplace::groups {
namespace {

constexpr std::size_t kMostStates = std::size_t{1} << 15;
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kNothing = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kStepsPerPair = 10;    // of `WorkMeter`, each a fifth of a nanosecond
constexpr std::uint64_t kStepsPerNumber = 64;  // of a state
constexpr int kBits = 63;
constexpr int kUnseen = -1;

bool is_inside(const std::vector<std::int32_t>& one, const std::vector<std::int32_t>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), std::less_equal{});
}

}  // namespace

bool FewestDomains::solve(const Counts& groups, std::int64_t free_tasks) {
    return make_boxes(groups, free_tasks) && weigh() && table_of(0) != nullptr;
}

std::optional<Division> FewestDomains::division(std::int32_t domain, const Counts& groups,
                                                std::int64_t free_tasks) const {
    const Box& box = boxes_[index(domains_.depth(domain))];
    State state(groups);
    state.push_back(static_cast<std::int32_t>(free_tasks));
    const Table& table = tables_.at(domains_.kind(domain));
    Division division;
    Place left = place_in(box, state);
    const auto children = domains_.children(domain);
    for (std::size_t i = 0; i < children.size() && left > 0; ++i) {
        const auto found = std::lower_bound(table.below.begin(), table.below.end(), left);
        if (found == table.below.end() || *found != left) return std::nullopt;
        const std::uint32_t number = table.choice[i][static_cast<std::size_t>(found - table.below.begin())];
        if (number == kNothing) return std::nullopt;
        const Place taken = tables_.at(domains_.kind(children[i])).taken[number];
        left -= taken;
        if (taken == 0) continue;
        const State& portion = box.states[taken];
        division.push_back({children[i], Counts(portion.begin(), portion.end() - 1), portion.back()});
    }
    if (left > 0) return std::nullopt;
    return division;
}

// ---- states ------------------------------------------------------------------------------------------

bool FewestDomains::make_boxes(const Counts& groups, std::int64_t free_tasks) {
    State most(groups);
    most.push_back(static_cast<std::int32_t>(free_tasks));
    for (std::int32_t depth = 0; depth < domains_.leaf_depth(); ++depth) {
        if (depth > 0) most = opened(most, depth);
        boxes_.push_back({.most = most});
        if (!fill(boxes_.back())) return false;
    }
    for (std::int32_t depth = 1; depth < domains_.leaf_depth(); ++depth) {
        Box& above = boxes_[index(depth - 1)];
        for (const State& state : above.states) {
            if (meter_.is_late_after(state.size() * kStepsPerNumber)) return false;
            above.opened.push_back(place_in(boxes_[index(depth)], opened(state, depth)));
        }
    }
    return true;
}

// False if there are too many states, or the time is up.
bool FewestDomains::fill(Box& box) {
    std::size_t size = 1;
    for (const std::int32_t number : box.most) {
        box.stride.push_back(static_cast<Place>(size));
        if (index(number) >= kMostStates / size) return false;
        size *= index(number) + 1;
    }
    State state(box.most.size(), 0);
    for (std::size_t i = 0; i < size; ++i) {
        if (meter_.is_late_after(state.size() * kStepsPerNumber)) return false;
        box.states.push_back(state);
        const Counts groups(state.begin(), state.end() - 1);
        box.tasks.push_back(kinds_.tasks(groups) + state.back());
        for (std::size_t j = 0; j < state.size() && ++state[j] > box.most[j]; ++j) state[j] = 0;
    }
    return true;
}

// What is to be placed below a domain of this depth that takes the state.
FewestDomains::State FewestDomains::opened(const State& state, std::int32_t depth) const {
    State found(state);
    for (std::size_t kind = 0; kind + 1 < state.size(); ++kind) {
        const GroupKind& group = kinds_[static_cast<std::int32_t>(kind)];
        if (state[kind] == 0 || group.depth != depth) continue;
        found[kind] -= state[kind];
        std::int64_t own = group.size;
        for (const auto& [inside, number] : group.inside) {
            found[index(inside)] += state[kind] * number;
            own -= kinds_[inside].size * number;
        }
        found.back() += static_cast<std::int32_t>(own * state[kind]);
    }
    return found;
}

FewestDomains::Place FewestDomains::place_in(const Box& box, const State& state) {
    Place place = 0;
    for (std::size_t i = 0; i < state.size(); ++i) place += box.stride[i] * static_cast<Place>(state[i]);
    return place;
}

// ---- values ------------------------------------------------------------------------------------------

// Gives bits to the sums of each depth; false if the numbers of domains need too many.
bool FewestDomains::weigh() {
    const std::size_t depths = index(domains_.leaf_depth()) + 1;
    std::vector<std::uint64_t> numbers(depths, 0), rooms(depths, 0);
    for (std::int32_t i = 0; i < domains_.size(); ++i) {
        ++numbers[index(domains_.depth(i))];
        rooms[index(domains_.depth(i))] += static_cast<std::uint64_t>(domains_.capacity(i));
    }
    used_shift_.assign(depths, kUnseen);
    room_shift_.assign(depths, kUnseen);
    int used = kBits, room = kBits;
    for (std::size_t depth = 1; depth < depths; ++depth) {
        used -= static_cast<int>(std::bit_width(numbers[depth]));
        room -= static_cast<int>(std::bit_width(rooms[depth]));
        if (used < 0) return false;
        used_shift_[depth] = used;
        room_shift_[depth] = std::max(room, kUnseen);
    }
    return true;
}

// Of a domain that is used, without what is below it.
FewestDomains::Value FewestDomains::value_of(std::int32_t domain) const {
    const std::size_t depth = index(domains_.depth(domain));
    const auto room = static_cast<std::uint64_t>(domains_.capacity(domain));
    return {.used = std::uint64_t{1} << used_shift_[depth],
            .room = room_shift_[depth] == kUnseen ? 0 : room << room_shift_[depth]};
}

// None if the work is spent, or the time is up.
const FewestDomains::Table* FewestDomains::table_of(std::int32_t domain) {
    const std::int32_t kind = domains_.kind(domain);
    if (const auto known = tables_.find(kind); known != tables_.end()) return &known->second;
    Table table;
    std::vector<Value> best;
    if (!domains_.is_leaf(domain) && !combine(domain, table, best)) return nullptr;
    if (domain > 0) {
        const Box& above = boxes_[index(domains_.depth(domain) - 1)];
        const Value own = value_of(domain);
        if (meter_.is_late_after(above.states.size() * kStepsPerPair)) return nullptr;
        for (Place place = 0; place < above.states.size(); ++place) {
            if (above.tasks[place] > domains_.capacity(domain)) continue;
            const Value inside = domains_.is_leaf(domain) ? Value{} : best[above.opened[place]];
            if (inside.used == kNone) continue;
            table.taken.push_back(place);
            table.values.push_back(place == 0 ? Value{}
                                              : Value{own.used + inside.used, own.room + inside.room});
        }
    }
    return &tables_.emplace(kind, std::move(table)).first->second;
}

// Finds the least value of all states below a domain, child after child; false if the work is spent,
// or the time is up.
bool FewestDomains::combine(std::int32_t domain, Table& table, std::vector<Value>& best) {
    const Box& box = boxes_[index(domains_.depth(domain))];
    for (Place place = 0; place < box.states.size(); ++place) {
        if (box.tasks[place] <= domains_.capacity(domain)) table.below.push_back(place);
    }
    best.assign(box.states.size(), {kNone, kNone});
    best[0] = {};
    const auto children = domains_.children(domain);
    table.choice.resize(children.size());
    for (std::size_t i = children.size(); i-- > 0;) {
        const Table* child = table_of(children[i]);
        if (child == nullptr) return false;
        const std::uint64_t pairs = std::uint64_t{table.below.size()} * child->taken.size();
        if (pairs > work_ || meter_.spend(pairs * kStepsPerPair)) return false;
        work_ -= pairs;
        if (!add_child(box, *child, table, best, table.choice[i])) return false;
    }
    return true;
}

// From the largest state down, so that those below still lack this child; it takes the most that is as good.
bool FewestDomains::add_child(const Box& box, const Table& child, const Table& table,
                              std::vector<Value>& best, std::vector<std::uint32_t>& choice) {
    const bool is_flat = std::ranges::count_if(box.most, [](std::int32_t number) { return number > 0; }) < 2;
    choice.assign(table.below.size(), kNothing);
    for (std::size_t i = table.below.size(); i-- > 0;) {
        const Place place = table.below[i];
        const State& state = box.states[place];
        Value least{kNone, kNone};
        const auto end = std::upper_bound(child.taken.begin(), child.taken.end(), place);
        auto number = static_cast<std::size_t>(end - child.taken.begin());
        if (meter_.is_late_after(number * kStepsPerPair)) return false;
        while (number-- > 0) {
            const Place taken = child.taken[number];
            const Value& other = best[place - taken];
            if (other.used == kNone || (!is_flat && !is_inside(box.states[taken], state))) continue;
            const Value sum{other.used + child.values[number].used, other.room + child.values[number].room};
            if (sum < least) {
                least = sum;
                choice[i] = static_cast<std::uint32_t>(number);
            }
        }
        best[place] = least;
    }
    return true;
}

}  // namespace topoplace::groups
