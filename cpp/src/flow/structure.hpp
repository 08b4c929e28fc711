// Scheduling graphs are recognised, not declared.
//
// What is looked for: tasks, nodes that supply one unit and that no arc enters; behind them nodes without
// supply which no cycle joins; and sinks. A node whose one arc leads to the only sink is a place, as is a
// sink where there are several: machines, and each job's node for what stays unscheduled. Any other node only
// passes on (racks, aggregators), and it is a hub over the places behind it if no capacity in between can
// bind: each arc has room for all that the node behind it can pass on. Then only the places limit the flow,
// and tasks, places and hubs are an Assignment whose optimum is the network's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flow/assignment.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::flow {

enum class Role : std::uint8_t {
    task,
    place,
    hub,
    sink,  // the only one; where there are several, they are places
    dead,  // nothing can leave by it
    gone,  // not known, or no longer
};

// How one unit leaves a task.
struct Way {
    std::int32_t arc = -1;  // the task's own
    std::int32_t target = -1;
    std::int32_t leaf = -1;   // if the target is a hub: by which member
    std::int32_t place = -1;  // -1: it has not left
    std::int64_t cost = 0;    // in all
};

Way way_of(const Assignment& assignment, std::int32_t task);

// The network without its tasks, as places and hubs.
class Infrastructure {
  public:
    static constexpr std::int32_t kTooMany = -2;

    // False if the network is no scheduling graph, or would not be with `more` tasks and other nodes.
    bool recognise(const Network& network, std::int64_t more = 0);

    Role role(std::int32_t node) const {
        return static_cast<std::size_t>(node) < roles_.size() ? roles_[static_cast<std::size_t>(node)]
                                                              : Role::gone;
    }
    std::int64_t most_tasks() const { return most_tasks_; }  // up to which it remains what it is
    // Whether all but places can pass on whatever comes, which may change with the capacities of places.
    bool capacities(const Network& network);
    // The target that stands for a node, made if it is not there yet; -1 if nothing can leave by it, kTooMany
    // if it reaches places in too many ways.
    std::int32_t target(std::int32_t node, const Network& network, Assignment& assignment);
    // The target of a node that has one, or -1.
    std::int32_t target(std::int32_t node) const { return target_[static_cast<std::size_t>(node)]; }
    // Adds the tasks with their options; false if these reach too many places through too many nodes. Sets
    // the node of each.
    bool add_tasks(const Network& network, Assignment& assignment, std::vector<std::int32_t>& node_of);
    // Flow, potentials and cost of the network from those of the assignment; `node_of` its tasks.
    void expand(const Network& network, const Assignment& assignment, std::span<const std::int32_t> node_of,
                FlowResult& result) const;
    // Minus what one more unit at each node would cost.
    void set_potentials(const Network& network, const Assignment& assignment,
                        std::span<const std::int32_t> node_of, std::span<std::int64_t> potential) const;
    // The same for one task: `units` more on every arc of its way.
    void add_flow(const Way& way, std::int64_t units, std::span<std::int64_t> flow) const;

    // One-arc places that come and go, as jobs' unscheduled nodes do.
    std::int32_t add_place(std::int32_t node, std::int32_t arc, const Network& network,
                           Assignment& assignment);
    void forget(std::int32_t node);
    std::int32_t exit_arc(std::int32_t node) const;  // of a place; -1: none
    std::int32_t sink() const { return sink_; }
    bool fits(std::int64_t cost) const { return -most_cost_ <= cost && cost <= most_cost_; }
    bool fits_nodes(std::int64_t nodes) const { return nodes <= most_nodes_; }

  private:
    struct Step {
        std::int32_t arc = -1;
        std::int32_t previous = -1;
    };
    struct Reached {
        std::int64_t distance = 0;
        std::int32_t arc = -1;  // the last; -1: not reached
        std::int32_t step = -1;
    };

    void set_infrastructure_potentials(const Network& network, const Assignment& assignment,
                                       std::span<std::int64_t> potential) const;
    void set_dead_potentials(const Network& network, std::span<std::int64_t> potential) const;
    bool bounds(const Network& network, std::int64_t more);
    bool roles(const Network& network);
    bool arcs(const Network& network);
    bool order(const Network& network);
    std::span<const std::int32_t> arcs_from(std::int32_t node) const;
    std::int32_t make_place(std::int32_t node, std::int32_t arc, const Network& network,
                            Assignment& assignment);
    void reach(std::int32_t node, const Reached& way);
    std::int32_t make_hub(std::int32_t node, const Network& network, Assignment& assignment);

    std::vector<Role> roles_;
    std::vector<std::int32_t> nodes_;       // all but tasks, each before those its arcs lead to
    std::vector<std::int32_t> arc_starts_;  // by node
    std::vector<std::int32_t> arcs_;        // of nodes that are no tasks, with a capacity, by tail
    std::vector<std::int32_t> target_;      // by node; -1: none yet
    std::vector<std::int32_t> rank_;        // by node: where it is in nodes_; -1: not there
    std::vector<std::int32_t> place_of_;  // by position in arcs_: of an arc to the sink that shares its tail
    std::vector<std::int32_t> exit_arc_;  // by target; -1: none
    std::vector<std::vector<std::int32_t>> last_step_;  // by target, by leaf
    std::vector<Step> steps_;
    // Of the hub being made: what is reached, by place in nodes_, and the places in nodes_ to go on from.
    std::vector<Reached> reached_;
    std::vector<std::int32_t> open_;
    std::size_t looks_ = 0;  // at arcs, for all hubs
    std::int64_t num_tasks_ = 0;
    std::int64_t most_tasks_ = 0;
    std::int64_t most_nodes_ = 0;
    std::int64_t most_cost_ = 0;
    std::int32_t sink_ = -1;
};

// Solves a scheduling graph; nothing if the network is none, is infeasible, or searches take too long.
// Timeout when `counter` stops.
std::optional<FlowResult> solve_structure(const Network& network, NodeCounter& counter);

}  // namespace topoplace::flow
