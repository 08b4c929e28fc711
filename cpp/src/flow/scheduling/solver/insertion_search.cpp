// Inserting a task: the search forward from it, then the raise of prices and the moves along the path.
#include "flow/scheduling/solver/insertion_search.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

// Tasks to scan between two checks of the clock.
constexpr std::uint64_t kMostScanned = 1 << 15;
// Up to this many tasks stay in the processor's caches, so that prefetching them does not pay.
constexpr std::int32_t kFewTasks = 1 << 10;
// Members of a hub, or tasks at a place, that are scanned in one batch.
constexpr std::size_t kMostAtOnce = 16;

}  // namespace

bool InsertionSearch::insert_directly(std::int32_t task) {
    const Assignment::Choice choice = assignment_.best_choice(task);
    if (choice.place < 0 || choice.key % 2 != 0) return false;
    assignment_.assign(task, choice.place, choice.route);
    return true;
}

// ---- search -----------------------------------------------------------------------------------------------

void InsertionSearch::start(std::int32_t task) {
    TOPOPLACE_ASSERT(!assignment_.task(task).assigned());
    root_ = task;
    state_.start(assignment_.num_targets());
    best_ = assignment_.best_choice(task).key >> 1;
    scan_root();
}

bool InsertionSearch::step(WorkMeter& meter) {
    std::optional<SearchState::Event> event = state_.pop();
    for (; !event && state_.look_farther(); event = state_.pop()) scan_again();
    if (!event || meter.visit()) return false;
    if (event->target < 0) {
        scan_hub(~event->target);
        return true;
    }
    if (!state_.finish(*event)) return true;
    const std::int32_t hub = assignment_.hub_of(event->target);
    if (hub < 0) {
        scan_place(event->target);
        return !stops_after(event->target, meter);
    }
    if (!exits_.is_open() && use_exits_) exits_.open();
    if (exits_.is_open()) scan_exits(hub);
    assignment_.best_members(hub).rewind();
    scan_hub(hub);
    return true;
}

void InsertionSearch::complete(std::int64_t distance) {
    if (state_.left_out() >= distance) return;
    state_.widen(distance);
    scan_again();
}

void InsertionSearch::label_options() {
    const Assignment::Task& from = assignment_.task(root_);
    Label label;
    label.task = root_;
    for (std::int32_t option = from.first; option < from.end(); ++option) {
        const Option& to = assignment_.option(option);
        const std::int64_t distance = to.cost + assignment_.value(to.target) - best_;
        label.route.option = option;
        if (!state_.is_labelled(to.target, distance)) state_.set_label(to.target, distance, label);
    }
}

// Relaxes what was too far before.
void InsertionSearch::scan_again() {
    scan_root();
    for (const std::int32_t target : state_.done()) {
        const std::int32_t hub = assignment_.hub_of(target);
        if (hub < 0) scan_place(target);
        if (hub >= 0 && exits_.is_open()) scan_exits(hub);
    }
}

void InsertionSearch::relax(std::int32_t target, std::int64_t distance, const Label& from) {
    if (state_.takes(distance) && !state_.is_labelled(target, distance)) reach(target, distance, from);
}

void InsertionSearch::reach(std::int32_t target, std::int64_t distance, const Label& from) {
    state_.set_label(target, distance, from);
    if (!assignment_.is_hub(target) && !assignment_.place(target).full()) {
        state_.set_goal(target, distance);
    } else {
        state_.push(distance, target);
    }
}

// Relaxes the options of tasks that came to where they are at `base` less their cost, until nothing farther
// than `distance` is of interest.
void InsertionSearch::scan_tasks(std::span<const std::int32_t> tasks, std::int64_t base,
                                 std::int64_t distance) {
    const std::int64_t near = state_.near();
    std::int64_t left_out = kFar;
    for (const std::int32_t task : tasks) {
        if (state_.limit() <= distance) break;
        const Assignment::Task& from = assignment_.task(task);
        const std::int64_t start = base - from.cost;
        std::int32_t option = from.first;
        for (const Option& to : assignment_.options_of(from)) {
            const std::int64_t through = start + to.cost + assignment_.value(to.target);
            if (through > near) {
                left_out = std::min(left_out, through);
            } else if (through < state_.limit() && !state_.is_labelled(to.target, through)) {
                Label label;
                label.task = task;
                label.route.option = option;
                reach(to.target, through, label);
            }
            ++option;
        }
    }
    state_.leave_out(left_out);
}

void InsertionSearch::scan_root() { scan_tasks({&root_, 1}, assignment_.task(root_).cost - best_, -kFar); }

void InsertionSearch::scan_place(std::int32_t place) {
    TOPOPLACE_ASSERT(assignment_.place(place).full());
    const std::int64_t distance = state_.label(place).distance;
    const std::int64_t base = distance - assignment_.value(place);
    const bool many = assignment_.num_tasks() > kFewTasks;
    std::array<std::int32_t, kMostAtOnce> tasks;
    std::int32_t next = assignment_.place(place).first_task;
    while (next >= 0 && distance < state_.limit()) {
        std::size_t number = 0;
        for (; next >= 0 && number < tasks.size(); next = assignment_.next_task(next)) {
            tasks[number++] = next;
            if (many) assignment_.prefetch(next);
        }
        for (std::size_t i = 0; many && i < number; ++i) assignment_.prefetch_options(tasks[i]);
        scan_tasks({tasks.data(), number}, base, distance);
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
    std::array<std::int32_t, kMostAtOnce> leaves{};
    std::size_t number = 0;
    const auto next_distance = [&] { return offset + (best.next_key() >> 1); };
    bool room = false;  // a goal: no other member matters
    while (!room && number < leaves.size() && best.next_key() != Tournament::kNoKey &&
           next_distance() <= state_.reached()) {
        room = best.next_key() % 2 == 0;
        leaves[number++] = best.next();
    }
    if (!room && best.next_key() != Tournament::kNoKey && next_distance() < state_.limit())
        state_.push(next_distance(), ~hub);
    for (std::size_t i = 0; i < number; ++i) {
        label.route.leaf = leaves[i];
        relax(through.members[index(leaves[i])].place, state_.reached(), label);
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

// Scanned tasks count, not visited places: a place may hold many tasks.
bool InsertionSearch::stops_after(std::int32_t place, WorkMeter& meter) {
    scanned_ += index(assignment_.place(place).load);
    if (scanned_ >= kMostScanned) {
        scanned_ = 0;
        meter.look_at_clock();
    }
    return meter.stopped();
}

// ---- augmentation -----------------------------------------------------------------------------------------

void InsertionSearch::raise_values(std::int64_t radius) {
    for (const std::int32_t target : state_.done()) {
        const std::int64_t raise = radius - state_.label(target).distance;
        if (raise <= 0 || assignment_.is_hub(target)) continue;
        TOPOPLACE_ASSERT(assignment_.place(target).full());  // others keep a price of zero
        assignment_.set_value(target, assignment_.value(target) + raise);
    }
}

void InsertionSearch::augment_to(std::int32_t place) {
    for (;;) {
        const Label label = state_.label(place);
        const std::int32_t left = assignment_.task(label.task).place;
        TOPOPLACE_ASSERT((left < 0) == (label.task == root_));
        if (left >= 0) assignment_.unassign(label.task);
        assignment_.assign(label.task, place, label.route);
        if (label.task == root_) return;
        place = left;
    }
}

}  // namespace topoplace::flow
