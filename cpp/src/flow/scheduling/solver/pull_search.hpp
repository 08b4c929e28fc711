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
#include "topoplace/deadline.hpp"

namespace topoplace::flow {

class PullSearch {
  public:
    PullSearch(Assignment& assignment, EntranceIndex& entrances)
        : assignment_(assignment), entrances_(entrances) {}

    // Pulls one task to a place with room and a price, or lowers its price to zero. Nothing changes if
    // `counter` stops.
    void pull(std::int32_t root, NodeCounter& counter);

  private:
    using Label = SearchState::Label;

    bool search(NodeCounter& counter);
    void offer(std::int32_t task, std::int64_t distance, const Label& from);
    void offer_all(std::int32_t target, std::int64_t base, const Label& from);
    void offer_place(std::int32_t place);
    void offer_hub(std::int32_t target);
    std::int32_t cheapest_option(std::int32_t task, std::int32_t target) const;
    void lower_values();
    void move_along(std::int32_t root);

    Assignment& assignment_;
    EntranceIndex& entrances_;
    SearchState state_;
};

}  // namespace topoplace::flow
