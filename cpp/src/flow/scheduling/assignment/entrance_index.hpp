// An index over an assignment: which tasks could come to a target, and how much they would lose by it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flow/scheduling/assignment/assignment.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

class EntranceIndex final : public AssignmentListener {
  public:
    // An option as its target sees it.
    struct Entrance {
        std::int64_t cost = 0;
        std::int32_t task = kAbsent;
        std::int32_t option = kAbsent;
    };

    // The index is closed until `open`, and again after a change that it does not follow.
    explicit EntranceIndex(Assignment& assignment) : assignment_(assignment) {}

    bool is_open() const { return open_; }
    void open();
    void close();
    // After prices have changed unnoticed, as by Assignment::shift_prices; nothing while closed.
    void update_costs();

    // The options that name a target.
    std::span<const Entrance> entrances(std::int32_t target) const {
        TOPOPLACE_ASSERT(open_);
        return entrances_[index(target)];
    }
    // Assignment::current_cost of a task; -kFar if it is not assigned.
    std::int64_t current_cost(std::int32_t task) const { return current_cost_[index(task)]; }
    // By task: twice what it would lose by going through the hub, plus one if its place has a price.
    // Nothing for hubs that are not popular, and for places.
    Tournament* losses(std::int32_t target) {
        TOPOPLACE_ASSERT(open_);
        const std::int32_t hub = popular_of_[index(target)];
        return hub < 0 ? nullptr : &popular_hubs_[index(hub)].loss;
    }

    // After a task was added, the cost of an option has changed, or before a task is removed; nothing while
    // closed.
    void add_task(std::int32_t task);
    void update_option(std::int32_t task, std::int32_t option);
    void remove_task(std::int32_t task);

    // Checks the index against the assignment. Does nothing unless assertions are on; takes one pass over all
    // options.
    void assert_consistent() const;

    void place_added() override;
    void hub_added() override { close(); }
    void price_changed(std::int32_t place) override;
    void task_assigned(std::int32_t task) override { update_loss(task); }
    void task_withdrawn(std::int32_t task) override;

  private:
    struct PopularHub {
        std::int32_t target = 0;
        std::vector<std::int64_t> cost;  // by task: of its cheapest option for the hub, or kNoKey
        Tournament loss;
    };

    void link(std::int32_t task);
    void open_popular_hubs();
    void fill_losses(PopularHub& hub) const;
    void update_loss(std::int32_t task);
    std::int64_t loss_key(std::int32_t task, std::int64_t cost) const {
        const bool priced = assignment_.price(assignment_.task(task).place) > 0;
        return 2 * (cost - assignment_.current_cost(task)) + (priced ? 1 : 0);
    }

    Assignment& assignment_;
    bool open_ = false;
    std::vector<std::vector<Entrance>> entrances_;  // by target
    std::vector<std::int32_t> position_;            // by option: among the entrances of its target
    std::vector<std::int64_t> current_cost_;        // by task
    std::vector<std::int32_t> popular_of_;          // by target: number in popular_hubs_
    std::vector<PopularHub> popular_hubs_;
};

}  // namespace topoplace::flow
