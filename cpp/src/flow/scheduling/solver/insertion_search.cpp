// Inserting a task: the search forward from it, then the raise of prices and the moves along the path.
#include "flow/scheduling/solver/insertion_search.hpp"

#include <optional>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

// Tasks at places to scan between two checks of the clock.
constexpr std::uint64_t kMostScanned = 1 << 15;

}  // namespace

bool InsertionSearch::insert_directly(std::int32_t task) {
    const Assignment::Choice choice = assignment_.best_choice(task);
    if (choice.place < 0 || choice.key % 2 != 0) return false;
    assignment_.assign(task, choice.place, choice.route);
    return true;
}

bool InsertionSearch::insert(std::int32_t task, NodeCounter& counter) {
    TOPOPLACE_ASSERT(!assignment_.task(task).assigned());
    if (insert_directly(task)) return true;
    state_.start(assignment_.num_targets());
    scan_options(task, 0);
    if (!search(counter)) return false;
    raise_values();
    augment(task);
    return true;
}

// ---- search -----------------------------------------------------------------------------------------------

bool InsertionSearch::search(NodeCounter& counter) {
    while (const std::optional<SearchState::Event> event = state_.pop()) {
        if (counter.visit()) return false;
        if (event->target < 0) {
            scan_hub(~event->target);
            continue;
        }
        if (!state_.finish(*event)) continue;
        const std::int32_t hub = assignment_.hub_of(event->target);
        if (hub >= 0) {
            if (!exits_.is_open() && use_exits_) exits_.open();
            if (exits_.is_open()) scan_exits(hub);
            assignment_.best_members(hub).rewind();
            scan_hub(hub);
        } else {
            scan_place(event->target);
            if (stops_after(event->target, counter)) return false;
        }
    }
    return state_.goal() >= 0;
}

void InsertionSearch::relax(std::int32_t target, std::int64_t distance, const Label& from) {
    if (distance >= state_.limit() || state_.is_labelled(target, distance)) return;
    state_.set_label(target, distance, from);
    if (!assignment_.is_hub(target) && !assignment_.place(target).full()) {
        state_.set_goal(target, distance);
    } else {
        state_.push(distance, target);
    }
}

void InsertionSearch::scan_options(std::int32_t task, std::int64_t base) {
    const Assignment::Task& from = assignment_.task(task);
    Label label;
    label.task = task;
    for (std::int32_t option = from.first; option < from.end(); ++option) {
        const Option& to = assignment_.option(option);
        label.route.option = option;
        relax(to.target, base + to.cost + assignment_.value(to.target), label);
    }
}

void InsertionSearch::scan_place(std::int32_t place) {
    TOPOPLACE_ASSERT(assignment_.place(place).full());
    const std::int64_t distance = state_.label(place).distance;
    const std::int64_t base = distance - assignment_.value(place);
    std::int32_t task = assignment_.place(place).first_task;
    for (; task >= 0; task = assignment_.task(task).next) {
        scan_options(task, base - assignment_.task(task).cost);
        if (state_.limit() <= distance) return;
    }
}

void InsertionSearch::scan_hub(std::int32_t hub) {
    const Assignment::Hub& through = assignment_.hub(hub);
    Tournament& best = assignment_.best_members(hub);
    const Label& at = state_.label(through.target);
    Label label;
    label.task = at.task;
    label.route = {.option = at.route.option, .hub = hub};
    const std::int64_t offset = at.distance - assignment_.value(through.target);
    while (best.next_key() != Tournament::kNoKey) {
        const std::int64_t distance = offset + (best.next_key() >> 1);
        if (distance >= state_.limit()) return;
        if (distance > state_.reached()) return state_.push(distance, ~hub);
        best.visit([&](std::int32_t leaf) {
            label.route.leaf = leaf;
            relax(through.members[index(leaf)].place, distance, label);
            return state_.limit() > distance;
        });
    }
}

std::int32_t InsertionSearch::leaf_of(std::int32_t place, std::int32_t hub) const {
    std::int32_t i = assignment_.place(place).first_membership;
    while (assignment_.membership(i).hub != hub) i = assignment_.membership(i).next;
    return assignment_.membership(i).leaf;
}

// Relaxes the best path through a hub that displaces one task only, and that to its exit.
void InsertionSearch::scan_exits(std::int32_t hub) {
    const std::optional<ExitIndex::Leaver> leaver = exits_.cheapest_leaver(hub);
    if (!leaver) return;
    const Assignment::Hub& through = assignment_.hub(hub);
    const Label at = state_.label(through.target);
    const std::int64_t base = at.distance - assignment_.value(through.target);
    if (base + leaver->cost >= state_.limit()) return;
    const std::int32_t place = assignment_.task(leaver->task).place;
    Label label;
    label.task = at.task;
    label.route = {.option = at.route.option, .hub = hub, .leaf = leaf_of(place, hub)};
    const std::int64_t distance =
        through.members[index(label.route.leaf)].distance + assignment_.value(place);
    relax(place, base + distance, label);
    Label exit;
    exit.task = leaver->task;
    exit.route.option = exits_.exit_of(leaver->task);
    relax(assignment_.option(exit.route.option).target, base + leaver->cost, exit);
}

// Where places hold many tasks, few visits take long.
bool InsertionSearch::stops_after(std::int32_t place, NodeCounter& counter) {
    scanned_ += index(assignment_.place(place).load);
    if (scanned_ >= kMostScanned) {
        scanned_ = 0;
        counter.look_at_clock();
    }
    return counter.stopped();
}

// ---- augmentation -----------------------------------------------------------------------------------------

void InsertionSearch::raise_values() {
    for (const std::int32_t target : state_.done()) {
        const std::int64_t raise = state_.limit() - state_.label(target).distance;
        if (raise <= 0 || assignment_.is_hub(target)) continue;
        TOPOPLACE_ASSERT(assignment_.place(target).full());  // others keep a price of zero
        assignment_.set_value(target, assignment_.value(target) + raise);
    }
}

// Each task on the path that was found goes one place on; `root` comes in at its beginning.
void InsertionSearch::augment(std::int32_t root) {
    std::int32_t place = state_.goal();
    TOPOPLACE_ASSERT(!assignment_.place(place).full());
    for (;;) {
        const Label label = state_.label(place);
        const std::int32_t left = assignment_.task(label.task).place;
        TOPOPLACE_ASSERT((left < 0) == (label.task == root));
        if (left >= 0) assignment_.unassign(label.task);
        assignment_.assign(label.task, place, label.route);
        if (label.task == root) return;
        place = left;
    }
}

}  // namespace topoplace::flow
