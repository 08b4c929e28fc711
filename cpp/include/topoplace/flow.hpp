// Minimum-cost flow: send every supply to the demands over arcs of limited capacity at the least total cost.
//
// An arc a leads from tail[a] to head[a] and carries lower[a] <= flow[a] <= capacity[a] units at cost[a]
// each. A node v sends supply[v] units more than it receives; a negative supply is a demand. Supplies and
// demands may balance; if demands exceed supplies, each demand is the most its node may take, and all
// supplies still have to be sent (Amaral's thesis, eq. 9). Parallel arcs, loops, capacities of zero, negative
// costs and negative cycles are allowed.
//
// Potentials prove the optimum: with the reduced cost cost[a] + potential[tail[a]] - potential[head[a]], an
// arc below its capacity has none below zero, an arc above its lower bound none above zero. Where demands
// exceed supplies, potentials are such that a node that takes less than its demand has 0, and a node with a
// demand has at most 0: it is as if one more node, of potential 0, filled up the demands at no cost.
//
// References: Goldberg, "An efficient implementation of a scaling minimum-cost flow algorithm", Journal of
// Algorithms 22 (1997); Ahuja, Magnanti and Orlin, "Network Flows", 1993.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::flow {

// The capacity of an arc without limit.
inline constexpr std::int64_t kInfinite = std::numeric_limits<std::int64_t>::max();

using Total = __int128;  // a sum of cost times flow

struct Network {
    std::int32_t num_nodes = 0;
    std::span<const std::int32_t> tail{};
    std::span<const std::int32_t> head{};
    std::span<const std::int64_t> lower{};  // empty: zero for every arc
    std::span<const std::int64_t> capacity{};
    std::span<const std::int64_t> cost{};
    std::span<const std::int64_t> supply{};
};

enum class Algorithm {
    automatic,  // the fastest for networks like this one
    cost_scaling,
    network_simplex,
    successive_shortest_path,
    cycle_canceling,
};

struct FlowParams {
    Algorithm algorithm = Algorithm::automatic;
    // automatic: solve scheduling graphs as the assignments they are (cpp/src/flow/scheduling).
    bool structure = true;
    // Where to start from: flow and potentials of a similar network. Empty: from scratch.
    std::span<const std::int64_t> start_flow{};
    std::span<const std::int64_t> start_potential{};
    StopCondition stop{};
};

enum class Status {
    optimal,     // flow and potential prove each other
    infeasible,  // proven by `cut`; send less, or allow more
    unbounded,   // proven by `cycle`; limit the capacity of one of its arcs
    timeout,     // time or work ran out first; flow and potential are empty
};

struct FlowResult {
    Status status = Status::timeout;
    std::vector<std::int64_t> flow;
    std::vector<std::int64_t> potential;
    Total cost = 0;
    // infeasible: nodes which together supply more than their outgoing arcs, less what must come in, can
    // take.
    std::vector<std::int32_t> cut;
    // unbounded: arcs of infinite capacity that close a cycle of negative cost.
    std::vector<std::int32_t> cycle;
    Algorithm algorithm = Algorithm::automatic;  // what ran; `automatic` for a recognised structure
    std::uint64_t steps = 0;                     // pushes and relabels, pivots, or nodes searched
    // The parameter, the index and the value that is out of range, also where costs are so large that cost *
    // (num_nodes + 1) does not fit the algorithm's 64 bits: nothing is then solved.
    Fault fault;
};

// Checks its arguments on the way: some limits are known only where the network is prepared.
FlowResult min_cost_flow(const Network& network, const FlowParams& params);

// Finds the first fault of an optimum, such as "arc 3 carries 7, its capacity is 5", by the definition alone,
// in one pass over nodes and arcs: bounds, conservation, reduced costs, total.
Fault verify_flow(const Network& network, std::span<const std::int64_t> flow,
                  std::span<const std::int64_t> potential, Total cost);
// The proofs of the other answers.
Fault verify_infeasible(const Network& network, std::span<const std::int32_t> cut);
Fault verify_unbounded(const Network& network, std::span<const std::int32_t> cycle);
// Columns that are none of a network: verifiers take them for right.
[[nodiscard]] Fault check_columns(const Network& network);

}  // namespace topoplace::flow
