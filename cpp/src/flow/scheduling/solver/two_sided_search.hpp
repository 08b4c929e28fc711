// Inserts a task by a search from both ends: forward from the task (insertion_search.hpp) and backward from a
// place that has room and a price (pull_search.hpp).
//
// Where places are nearly all full, the way to one with room leads through a hub whose members mostly cost
// the same, and a search from one end visits thousands of them. From both ends, each search only has to get
// as far as the hub.
//
// The searches end where the radii within which each knows every distance add up to the shortest path on
// which they have met. Prices within the forward radius then rise by what they are nearer, those within the
// backward radius fall; no target is within both. The forward search may also find a place at no price first,
// and the backward search a task that is better moved; both are then done as if there were no other search.
//
// Reference: Ahuja, Magnanti and Orlin, "Network Flows", 1993, section 4.5 (bidirectional Dijkstra).
#pragma once

#include <cstdint>

#include "flow/scheduling/assignment/assignment.hpp"
#include "flow/scheduling/solver/insertion_search.hpp"
#include "flow/scheduling/solver/pull_search.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::flow {

class TwoSidedSearch {
  public:
    TwoSidedSearch(Assignment& assignment, ExitIndex& exits, EntranceIndex& entrances)
        : assignment_(assignment), forward_(assignment, exits), backward_(assignment, entrances) {}

    // Assigns the task to its best place if that has room.
    bool insert_directly(std::int32_t task) { return forward_.insert_directly(task); }
    // Opens the index of exits when a search first gets to a hub.
    void use_exits(bool use) { forward_.use_exits(use); }

    // False, and the task is not assigned, if there is no way for it or `meter` stops.
    bool insert(std::int32_t task, WorkMeter& meter);
    // Pulls one task to a place with room and a price, or lowers its price to zero. Nothing changes if
    // `meter` stops.
    void pull(std::int32_t place, WorkMeter& meter);
    // Takes the last place with room and a price from the list of unsettled ones, without those behind it
    // that have none; kAbsent if there is none.
    std::int32_t last_unsettled();

  private:
    enum class Outcome : std::uint8_t { none, inserted, pulled };

    bool search_forward(std::uint64_t most, WorkMeter& meter);
    Outcome search_both(std::int32_t place, WorkMeter& meter);
    Outcome finish_forward();
    Outcome finish_backward();
    bool have_met();
    Outcome meet(std::int64_t forward_radius);

    Assignment& assignment_;
    InsertionSearch forward_;
    PullSearch backward_;
};

}  // namespace topoplace::flow
