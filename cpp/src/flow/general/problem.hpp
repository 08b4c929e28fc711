// A network as the general algorithms take it: no lower bounds, no loops, no infinite capacity, supplies and
// demands in balance; and the way back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topoplace/flow.hpp"

namespace topoplace::flow {

// What all capacities of a problem may sum to.
inline constexpr std::int64_t kMaxUnits = std::int64_t{1} << 61;
// The largest potential there may be: the largest cost, once for every node.
inline constexpr std::int64_t kMaxPotential = std::int64_t{1} << 61;

struct Problem {
    std::int32_t num_nodes = 0;
    std::vector<std::int32_t> tail;
    std::vector<std::int32_t> head;
    std::vector<std::int64_t> capacity;  // sum to at most kMaxUnits; 0 for a loop
    std::vector<std::int64_t> cost;
    std::vector<std::int64_t> supply;  // sums to zero
    // Where to start from: a flow within the capacities, whatever it leaves of the supplies. Empty: from
    // nothing.
    std::vector<std::int64_t> start_flow;
    std::vector<std::int64_t> start_potential;
};

struct Solution {
    Status status = Status::timeout;  // optimal, infeasible or timeout
    std::vector<std::int64_t> flow;
    std::vector<std::int64_t> potential;
};

// One file each: cost_scaling.cpp, network_simplex.cpp, successive_shortest_path.cpp, cycle_canceling.cpp.
Solution cost_scaling(const Problem& problem, NodeCounter& counter);
Solution network_simplex(const Problem& problem, NodeCounter& counter);
Solution successive_shortest_path(const Problem& problem, NodeCounter& counter);
Solution cycle_canceling(const Problem& problem, NodeCounter& counter);

// Whether the costs are small enough for cost_scaling, which refuses others: prices fall by four times the
// largest cost, once for every node.
bool scalable(const Problem& problem);
// Whether so many nodes supply one unit that cost scaling is the faster of the general algorithms, as a rule.
bool prefers_scaling(const Problem& problem);

// Throws std::invalid_argument for whatever min_cost_flow refuses.
void check(const Network& network, const FlowParams& params);

// A network that `check` has passed, without lower bounds and all. Arcs and nodes keep their numbers; where
// demands exceed supplies, one more node fills them up, over arcs that follow the network's.
class Normal {
  public:
    Normal(const Network& network, const FlowParams& params);

    const Problem& problem() const { return problem_; }
    // More is supplied than all demands take.
    bool oversupplied() const { return oversupplied_; }
    // The solution of the problem as one of the network.
    FlowResult restore(Solution&& solution) const;

  private:
    void settle_arcs();
    void fill_demands();
    void limit_capacities();
    void start_from(const FlowParams& params);

    const Network& network_;
    Problem problem_;
    std::vector<std::int64_t> settled_;  // by arc: its flow where the problem's is 0; empty: 0
    bool oversupplied_ = false;
};

// Nodes that supply more than their outgoing arcs take; empty where all supplies can be sent, or no time is
// left.
std::vector<std::int32_t> blocking_cut(const Problem& problem, NodeCounter& counter);

// Arcs of infinite capacity that close a cycle of negative cost; empty where there are none, or no time is
// left.
std::vector<std::int32_t> endless_cycle(const Network& network, NodeCounter& counter);

}  // namespace topoplace::flow
