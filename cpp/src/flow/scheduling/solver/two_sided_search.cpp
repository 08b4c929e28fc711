// Searching from both ends in turn, and putting the two halves of the path together.
#include "flow/scheduling/solver/two_sided_search.hpp"

#include <algorithm>
#include <limits>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

// Steps of the forward search before the backward search starts: most ways are short. Where there are many
// places, one that is longer than a few steps may visit thousands.
constexpr std::uint64_t kStepsAlone = 16;
constexpr std::uint64_t kStepsAloneOfMany = 4;
constexpr std::int32_t kManyTargets = 1 << 10;

}  // namespace

bool TwoSidedSearch::insert(std::int32_t task, WorkMeter& meter) {
    const std::uint64_t alone = assignment_.num_targets() < kManyTargets ? kStepsAlone : kStepsAloneOfMany;
    for (;;) {
        if (forward_.insert_directly(task)) return true;
        forward_.start(task);
        const bool goes_on = search_forward(alone, meter);
        const std::int32_t place = goes_on ? last_unsettled() : kAbsent;
        if (goes_on && place < 0) search_forward(std::numeric_limits<std::uint64_t>::max(), meter);
        if (meter.stopped()) return false;
        const Outcome outcome = place >= 0 ? search_both(place, meter) : finish_forward();
        if (outcome != Outcome::pulled) return outcome == Outcome::inserted;
    }
}

void TwoSidedSearch::pull(std::int32_t place, WorkMeter& meter) {
    backward_.start(place);
    while (backward_.step(meter)) {
    }
    if (!meter.stopped()) backward_.pull();
}

std::int32_t TwoSidedSearch::last_unsettled() {
    std::vector<std::int32_t>& unsettled = assignment_.worklist().unsettled;
    while (!unsettled.empty()) {
        const std::int32_t place = unsettled.back();
        if (!assignment_.is_hub(place) && !assignment_.place(place).full() && assignment_.price(place) > 0)
            return place;
        unsettled.pop_back();
    }
    return kAbsent;
}

// False if the search is over, or `meter` stops.
bool TwoSidedSearch::search_forward(std::uint64_t most, WorkMeter& meter) {
    for (std::uint64_t step = 0; step < most; ++step) {
        if (!forward_.step(meter)) return false;
    }
    return true;
}

TwoSidedSearch::Outcome TwoSidedSearch::search_both(std::int32_t place, WorkMeter& meter) {
    backward_.start(place, &forward_.state());
    while (!have_met()) {
        if (!backward_.step(meter)) return meter.stopped() ? Outcome::none : finish_backward();
        if (have_met()) break;
        if (!forward_.step(meter)) return meter.stopped() ? Outcome::none : finish_forward();
    }
    return meet(std::min(forward_.state().radius(), forward_.state().meeting().distance));
}

// After a backward search that is over: what it does not know of is the task's own first step.
TwoSidedSearch::Outcome TwoSidedSearch::finish_backward() {
    if (backward_.state().is_meeting()) {
        forward_.label_options();
        return meet(0);
    }
    backward_.pull();
    return Outcome::pulled;
}

// After a forward search that is over.
TwoSidedSearch::Outcome TwoSidedSearch::finish_forward() {
    const SearchState& state = forward_.state();
    if (state.is_meeting()) return meet(state.meeting().distance);
    if (state.goal() < 0) return Outcome::none;
    forward_.raise_values(state.limit());
    forward_.augment_to(state.goal());
    return Outcome::inserted;
}

// True if no path from the task to the place, nor from either to anywhere else, is shorter than the meeting.
bool TwoSidedSearch::have_met() {
    const SearchState& there = forward_.state();
    const SearchState& back = backward_.state();
    const auto touching = [&] {
        return there.is_meeting() && back.is_meeting() &&
               there.radius() + back.radius() >= there.meeting().distance;
    };
    if (!touching()) return false;
    forward_.complete(there.meeting().distance);
    backward_.complete(there.meeting().distance);
    return touching();
}

// No place is on both halves of the path beyond the meeting. It would have had both labels before, and would
// be where the searches have met, as the path over it is no longer.
TwoSidedSearch::Outcome TwoSidedSearch::meet(std::int64_t forward_radius) {
    const std::int64_t distance = forward_.state().meeting().distance;
    TOPOPLACE_ASSERT(distance == backward_.state().meeting().distance);
    forward_.raise_values(forward_radius);
    backward_.lower_values(distance - forward_radius);
    std::int32_t place = forward_.state().meeting().target;
    if (assignment_.is_hub(place)) {
        const SearchState::Label from = forward_.state().label(place);
        const SearchState::Label to = backward_.state().label(place);
        const Route route{.option = from.route.option, .hub = to.route.hub, .leaf = to.route.leaf};
        backward_.move_along(to.next_place);
        place = assignment_.task(from.task).place;
        if (place >= 0) assignment_.unassign(from.task);
        assignment_.assign(from.task, to.next_place, route);
    } else {
        backward_.move_along(place);
    }
    if (place >= 0) forward_.augment_to(place);
    return Outcome::inserted;
}

}  // namespace topoplace::flow
