// Keeps the assignment of a scheduling graph while the network changes, and solves only what the changes
// touch.
//
// Every change of the network is reported here. Tasks whose arcs change are removed and added again with the
// next solution, as are places that come and go; a change of anything else discards the assignment, and the
// next solution starts from scratch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "flow/general/arc_lists.hpp"
#include "flow/scheduling/infrastructure.hpp"
#include "flow/scheduling/solver/assignment_solver.hpp"

namespace topoplace::flow {

class KeptAssignment {
  public:
    // Reports of changes to the network: after an addition or a change, and before a removal.
    void node_added(std::int32_t node) {
        if (started_) fresh_.push_back(node);
    }
    void node_leaves(const ArcLists& network, std::int32_t node);
    void arc_added(const ArcLists& network, std::int32_t arc);
    void arc_leaves(const ArcLists& network, std::int32_t arc);
    void supply_changed(ArcLists& network, std::int32_t node);
    void capacity_changed(ArcLists& network, std::int32_t arc, std::int64_t before);
    void cost_changed(ArcLists& network, std::int32_t arc);

    // The optimum; nothing if the network is no scheduling graph, or is infeasible.
    std::optional<FlowResult> solve(const ArcLists& network, WorkMeter& meter);

  private:
    bool start(const ArcLists& lists);
    void forget() { *this = KeptAssignment{}; }
    bool is_task(std::int32_t node) const {
        return index(node) < task_of_.size() && task_of_[index(node)] >= 0;
    }
    bool is_spare(std::int32_t node) const { return index(node) < spare_.size() && spare_[index(node)] != 0; }
    void release(std::int32_t node);    // a task, until the next solution
    void use_spare(std::int32_t node);  // which may become a task
    void set_aside(std::int32_t node);
    bool may_be_spare(const ArcLists& network, std::int32_t node) const;
    void set_spare_potentials(const ArcLists& network);
    void subtract_path(std::int32_t task);
    bool adopt(const ArcLists& network);
    bool adopt_places(const ArcLists& network, std::span<const std::int32_t> fresh);
    bool adopt_place(const ArcLists& network, std::int32_t node);
    bool adopt_task(const ArcLists& network, std::int32_t node);
    void update(const ArcLists& lists);

    bool started_ = false;
    bool wider_ = false;  // a place takes more than when hubs were last checked for room
    Infrastructure infrastructure_;
    std::unique_ptr<AssignmentSolver> solver_ = std::make_unique<AssignmentSolver>();
    std::vector<std::int32_t> task_of_;    // by node; absent: no task
    std::vector<std::int32_t> option_of_;  // by arc of a task
    std::vector<std::int32_t> node_of_;    // by task; absent: none
    std::vector<std::int32_t> fresh_;      // nodes to adopt
    // Nodes without supply that no task reaches, such as tasks between two runs. The list has each node
    // behind those to which its arcs lead; until the next solution, it may hold nodes that are none any more.
    std::vector<std::uint8_t> spare_;  // by node
    std::vector<std::int32_t> spares_;
    // The solution last returned, and the path of each task in it.
    FlowResult result_;
    std::vector<UnitPath> path_of_;  // by task
    std::int64_t num_tasks_ = 0;
};

}  // namespace topoplace::flow
