// Lowers the price of a place that has room until a task comes to it, or until the price is zero.
//
// Dijkstra's algorithm on reduced costs, against the direction of insertion: from the place to the tasks
// that would lose least by coming, and on from the places that these would leave. A path ends where the loss
// and the price of the place left behind are least together; the tasks on it each go one place on, and prices
// of the places that were nearer fall by what they were nearer.
//
// References: as for insertion_search.hpp; Bertsekas and Castanon, "A forward/reverse auction algorithm for
// asymmetric assignment problems", Computational Optimization and Applications 1 (1992), lower prices from
// the side of the places by bids instead.
#pragma once

#include <cstdint>

#include "flow/scheduling/assignment/assignment.hpp"
#include "flow/scheduling/assignment/entrance_index.hpp"
#include "flow/scheduling/solver/search_state.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::flow {

class PullSearch {
  public:
    PullSearch(Assignment& assignment, EntranceIndex& entrances)
        : assignment_(assignment), entrances_(entrances) {}

    // A search in steps, and what becomes of it; nothing changes before `lower_values`. May be linked with a
    // search that comes towards it.
    void start(std::int32_t root, SearchState* opposite = nullptr);
    // False once the search is over, or `meter` stops.
    bool step(WorkMeter& meter);
    // Labels everything that is nearer than this to what is done.
    void complete(std::int64_t distance);
    const SearchState& state() const { return state_; }
    std::int32_t root() const { return root_; }
    // Lowers the values of the targets nearer than this by what they are nearer.
    void lower_values(std::int64_t radius);
    // The tasks on the path from a place each go one place on; the last to the root.
    void move_along(std::int32_t place);
    // Pulls one task to the root, or lowers its price to zero, after a search that is over.
    void pull();

  private:
    using Label = SearchState::Label;

    void offer_again();
    void offer(std::int32_t task, std::int64_t distance, const Label& from);
    void offer_all(std::int32_t target, std::int64_t base, const Label& from);
    void offer_place(std::int32_t place);
    void offer_hub(std::int32_t target);
    std::int32_t cheapest_option(std::int32_t task, std::int32_t target) const;

    Assignment& assignment_;
    EntranceIndex& entrances_;
    SearchState state_;
    std::int32_t root_ = kAbsent;
};

}  // namespace topoplace::flow
