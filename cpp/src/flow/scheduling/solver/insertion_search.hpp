// Inserts one more task into an optimal assignment, along the shortest path that displaces others.
//
// Dijkstra's algorithm on reduced costs, from the task over its options to the nearest place with room. A
// full place leads on to the options of the tasks that it holds. Prices of the places that were nearer then
// rise by what they were nearer, which keeps both invariants.
//
// Reference: Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse linear
// assignment problems", Computing 38 (1987).
#pragma once

#include <cstdint>
#include <span>

#include "flow/scheduling/assignment/assignment.hpp"
#include "flow/scheduling/assignment/exit_index.hpp"
#include "flow/scheduling/solver/search_state.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::flow {

class InsertionSearch {
  public:
    InsertionSearch(Assignment& assignment, ExitIndex& exits) : assignment_(assignment), exits_(exits) {}

    // Assigns the task to its best place if that has room.
    bool insert_directly(std::int32_t task);
    // Opens the index of exits when a search first gets to a hub.
    void use_exits(bool use) { use_exits_ = use; }

    // A search in steps, and what becomes of it; nothing changes before `raise_values`.
    void start(std::int32_t task);
    // False once the search is over, or `meter` stops. It has found a way if its state has a goal.
    bool step(WorkMeter& meter);
    // Labels the targets of the task's own options, however far.
    void label_options();
    // Labels everything that is nearer than this to what is done.
    void complete(std::int64_t distance);
    SearchState& state() { return state_; }
    const SearchState& state() const { return state_; }
    // Raises the values of the targets nearer than this by what they are nearer.
    void raise_values(std::int64_t radius);
    // Each task on the path to a place goes one place on.
    void augment_to(std::int32_t place);

  private:
    using Label = SearchState::Label;

    void scan_again();
    void relax(std::int32_t target, std::int64_t distance, const Label& from);
    void reach(std::int32_t target, std::int64_t distance, const Label& from);
    void scan_tasks(std::span<const std::int32_t> tasks, std::int64_t base, std::int64_t distance);
    void scan_root();
    void scan_place(std::int32_t place);
    void scan_hub(std::int32_t hub);
    void scan_exits(std::int32_t hub);
    std::int32_t leaf_of(std::int32_t place, std::int32_t hub) const;
    bool stops_after(std::int32_t place, WorkMeter& meter);

    Assignment& assignment_;
    ExitIndex& exits_;
    SearchState state_;
    std::int32_t root_ = kAbsent;  // the task that is inserted
    std::int64_t best_ = 0;        // what its best option costs: distances are from there
    bool use_exits_ = false;
    std::uint64_t scanned_ = 0;  // tasks since the last check of the clock
};

}  // namespace topoplace::flow
