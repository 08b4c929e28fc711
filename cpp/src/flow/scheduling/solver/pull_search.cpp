// Pulling a task: the search backward from the place, then the fall of prices and the moves along the path.
#include "flow/scheduling/solver/pull_search.hpp"

#include <array>
#include <optional>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

// Tasks of a hub to go on to in one step.
constexpr std::size_t kMostAtOnce = 16;

}  // namespace

// ---- search -----------------------------------------------------------------------------------------------

void PullSearch::start(std::int32_t root, SearchState* opposite) {
    TOPOPLACE_ASSERT(!assignment_.is_hub(root) && !assignment_.place(root).full());
    TOPOPLACE_ASSERT(assignment_.price(root) > 0);
    if (!entrances_.is_open()) entrances_.open();
    root_ = root;
    state_.start(assignment_.num_targets());
    if (opposite != nullptr) state_.link(*opposite);
    state_.set_goal(root, assignment_.price(root));
    state_.set_label(root, 0, {});
    state_.push(0, root);
}

bool PullSearch::step(WorkMeter& meter) {
    std::optional<SearchState::Event> event = state_.pop();
    for (; !event && state_.look_farther(); event = state_.pop()) offer_again();
    if (!event || meter.visit()) return false;
    if (event->target < 0) {
        offer_hub(~event->target);
    } else if (state_.finish(*event)) {
        if (!assignment_.is_hub(event->target)) {
            offer_place(event->target);
        } else {
            if (Tournament* losses = entrances_.losses(event->target)) losses->rewind();
            offer_hub(event->target);
        }
    }
    return true;
}

void PullSearch::complete(std::int64_t distance) {
    if (state_.left_out() >= distance) return;
    state_.widen(distance);
    offer_again();
}

// Offers what was too far before.
void PullSearch::offer_again() {
    for (const std::int32_t target : state_.done()) {
        if (!assignment_.is_hub(target)) {
            offer_place(target);
        } else if (entrances_.losses(target) == nullptr) {
            offer_hub(target);
        }
    }
}

// Labels the place of a task that would lose `distance` in all by leaving for where `from` says.
void PullSearch::offer(std::int32_t task, std::int64_t distance, const Label& from) {
    const std::int32_t place = assignment_.task(task).place;
    if (place < 0 || state_.is_labelled(place, distance)) return;
    state_.set_label(place, distance, from).task = task;
    const std::int64_t through = distance + assignment_.price(place);
    if (through < state_.limit()) state_.set_goal(place, through);
    if (distance < state_.limit()) state_.push(distance, place);
}

void PullSearch::offer_all(std::int32_t target, std::int64_t base, const Label& from) {
    Label label = from;
    for (const EntranceIndex::Entrance& entrance : entrances_.entrances(target)) {
        const std::int64_t distance = base + entrance.cost - entrances_.current_cost(entrance.task);
        if (!state_.takes(distance)) continue;
        label.route.option = entrance.option;
        offer(entrance.task, distance, label);
    }
}

void PullSearch::offer_place(std::int32_t place) {
    Label label;
    label.next_place = place;
    const std::int64_t base = state_.label(place).distance + assignment_.value(place);
    offer_all(place, base, label);
    std::int32_t i = assignment_.place(place).first_membership;
    for (; i >= 0; i = assignment_.membership(i).next) {
        const Assignment::Membership& membership = assignment_.membership(i);
        const Assignment::Hub& hub = assignment_.hub(membership.hub);
        const Member& member = hub.members[index(membership.leaf)];
        const std::int64_t distance = base + member.distance - assignment_.value(hub.target);
        if (!state_.takes(distance) || state_.is_labelled(hub.target, distance)) continue;
        Label& at = state_.set_label(hub.target, distance, label);
        at.route = {.hub = membership.hub, .leaf = membership.leaf};
        state_.push(distance, hub.target);
    }
}

void PullSearch::offer_hub(std::int32_t target) {
    Label label = state_.label(target);
    label.done = false;
    const std::int64_t base = label.distance + assignment_.value(target);
    Tournament* const losses = entrances_.losses(target);
    if (losses == nullptr) return offer_all(target, base, label);
    std::array<std::int32_t, kMostAtOnce> tasks{};
    std::size_t number = 0;
    const auto next_distance = [&] { return base + (losses->next_key() >> 1); };
    bool free = false;  // a place without a price ends the search
    while (!free && number < tasks.size() && losses->next_key() != Tournament::kNoKey &&
           next_distance() <= state_.reached()) {
        free = losses->next_key() % 2 == 0;
        tasks[number++] = losses->next();
    }
    if (!free && losses->next_key() != Tournament::kNoKey && next_distance() < state_.limit())
        state_.push(next_distance(), ~target);
    for (std::size_t i = 0; i < number && state_.reached() < state_.limit(); ++i) {
        label.route.option = cheapest_option(tasks[i], target);
        offer(tasks[i], state_.reached(), label);
    }
}

std::int32_t PullSearch::cheapest_option(std::int32_t task, std::int32_t target) const {
    const Assignment::Task& of = assignment_.task(task);
    std::int32_t best = kAbsent;
    for (std::int32_t option = of.first; option < of.end(); ++option) {
        if (assignment_.option(option).target != target) continue;
        if (best < 0 || assignment_.option(option).cost < assignment_.option(best).cost) best = option;
    }
    TOPOPLACE_ASSERT(best >= 0);
    return best;
}

// ---- augmentation -----------------------------------------------------------------------------------------

void PullSearch::lower_values(std::int64_t radius) {
    for (const std::int32_t target : state_.done()) {
        const std::int64_t lower = radius - state_.label(target).distance;
        if (lower <= 0 || assignment_.is_hub(target)) continue;
        TOPOPLACE_ASSERT(assignment_.price(target) >= lower);
        assignment_.set_value(target, assignment_.value(target) - lower);
    }
}

void PullSearch::move_along(std::int32_t place) {
    while (place != root_) {
        const Label label = state_.label(place);
        TOPOPLACE_ASSERT(assignment_.task(label.task).place == place);
        assignment_.unassign(label.task);
        assignment_.assign(label.task, label.next_place, label.route);
        place = label.next_place;
    }
}

void PullSearch::pull() {
    const std::int32_t goal = state_.goal();
    lower_values(state_.limit());
    move_along(goal);
    TOPOPLACE_ASSERT(assignment_.price(goal) == 0);
    if (goal != root_) assignment_.refresh(goal);  // it may have room now
}

}  // namespace topoplace::flow
