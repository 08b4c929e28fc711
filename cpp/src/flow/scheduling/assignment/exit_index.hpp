// An index over an assignment: how each task could leave it altogether.
//
// An exit has room for every task that names it, such as a job's node for tasks that stay unscheduled. Where
// there are more tasks than the limited places can take, the cheapest way to insert one is often to send
// another to its exit. For each popular hub, the index keeps what that costs for every task at one of its
// members, so that a search finds the cheapest in one step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "flow/scheduling/assignment/assignment.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

class ExitIndex final : public AssignmentListener {
  public:
    // The index is closed until `open`, and again after a change that it does not follow.
    explicit ExitIndex(Assignment& assignment) : assignment_(assignment) {}

    bool is_open() const { return open_; }
    // False if some tasks may have an exit that the index does not know.
    bool is_complete() const { return open_ && complete_; }
    void open();
    void close();

    // Cheapest option of a task that is an exit, or kAbsent.
    std::int32_t exit_of(std::int32_t task) const {
        TOPOPLACE_ASSERT(open_);
        return exit_[index(task)];
    }

    // The task at a member of a hub that is cheapest to replace.
    struct Leaver {
        std::int32_t task = kAbsent;
        std::int64_t cost = 0;  // from the hub to the member, then, less the task's own, to its exit
    };
    std::optional<Leaver> cheapest_leaver(std::int32_t hub) const;

    // After a task was added, its costs have changed, or it was removed; nothing while closed.
    void add_task(std::int32_t task);
    void update_task(std::int32_t task);
    void remove_task(std::int32_t task);

    void hub_added() override { close(); }
    void exits_changed() override { close(); }
    void exit_gained() override { complete_ = false; }
    void task_assigned(std::int32_t task) override { update_leaving_cost(task); }
    void task_leaves(std::int32_t task) override;

  private:
    void choose_exit(std::int32_t task);
    void update_leaving_cost(std::int32_t task);

    Assignment& assignment_;
    bool open_ = false;
    bool complete_ = false;
    std::vector<std::int32_t> exit_;   // by task
    std::vector<Tournament> leaving_;  // by hub, by task: cost of Leaver; empty for hubs that are not popular
};

}  // namespace topoplace::flow
