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
};

// The network without its tasks, as places and hubs.
class Infrastructure {
  public:
    static constexpr std::int32_t kTooMany = -2;

    // False if the network is no scheduling graph.
    bool recognise(const Network& network);

    Role role(std::int32_t node) const { return roles_[static_cast<std::size_t>(node)]; }
    std::int32_t num_tasks() const { return static_cast<std::int32_t>(num_tasks_); }
    // The target that stands for a node, made if it is not there yet; -1 if nothing can leave by it, kTooMany
    // if it reaches places in too many ways.
    std::int32_t target(std::int32_t node, const Network& network, Assignment& assignment);
    // Flow, potentials and cost of the network from those of the assignment; `node_of` its tasks.
    void expand(const Network& network, const Assignment& assignment, std::span<const std::int32_t> node_of,
                FlowResult& result) const;
    // Minus what one more unit at each node would cost, for all but tasks.
    void set_potentials(const Network& network, const Assignment& assignment,
                        std::span<std::int64_t> potential) const;
    // Adds `units` to the flow of every arc that a task takes behind its own.
    void add_flow(const Assignment::Task& task, const Option& option, std::int64_t units,
                  std::span<std::int64_t> flow) const;

  private:
    struct Step {
        std::int32_t arc = -1;
        std::int32_t previous = -1;
    };
    struct Reached {
        std::int64_t distance = 0;
        std::int32_t node = 0;
        std::int32_t step = -1;
    };

    void set_dead_potentials(const Network& network, std::span<std::int64_t> potential) const;
    bool roles(const Network& network);
    bool arcs(const Network& network);
    bool order(const Network& network);
    bool capacities(const Network& network);
    std::span<const std::int32_t> arcs_from(std::int32_t node) const;
    std::int32_t make_place(std::int32_t node, std::int32_t arc, const Network& network,
                            Assignment& assignment);
    std::int32_t make_hub(std::int32_t node, const Network& network, Assignment& assignment);

    std::vector<Role> roles_;
    std::vector<std::int32_t> nodes_;       // all but tasks, each before those its arcs lead to
    std::vector<std::int32_t> arc_starts_;  // by node
    std::vector<std::int32_t> arcs_;        // of nodes that are no tasks, with a capacity, by tail
    std::vector<std::int32_t> target_;      // by node; -1: none yet
    std::vector<std::int32_t> place_of_;  // by position in arcs_: of an arc to the sink that shares its tail
    std::vector<std::int32_t> exit_arc_;  // by target; -1: none
    std::vector<std::vector<std::int32_t>> last_step_;  // by target, by leaf
    std::vector<Step> steps_;
    std::int64_t num_tasks_ = 0;
    std::int32_t sink_ = -1;
};

// Solves a scheduling graph; nothing if the network is none, or is infeasible. Timeout when `counter` stops.
std::optional<FlowResult> solve_structure(const Network& network, NodeCounter& counter);

}  // namespace topoplace::flow
