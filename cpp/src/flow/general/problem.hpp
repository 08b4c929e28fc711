// A minimum-cost flow problem as the general algorithms take it: no lower bounds, no loops, no infinite
// capacity, supplies and demands in balance. NormalForm (normal_form.hpp) makes one of any network.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "topoplace/flow.hpp"

namespace topoplace::flow {

// What all capacities of a problem may sum to.
inline constexpr std::int64_t kMaxUnits = std::int64_t{1} << 61;
// The largest potential there may be: the largest cost, once for every node.
inline constexpr std::int64_t kMaxPotential = std::int64_t{1} << 61;

// Type of flows and costs within an algorithm: 32 bits where all numbers fit, as memory is what limits speed.
template <class T>
concept FlowNumber = std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

struct Problem {
    std::int32_t num_nodes = 0;
    std::vector<std::int32_t> tail;
    std::vector<std::int32_t> head;
    std::vector<std::int64_t> capacity;  // sum to at most kMaxUnits; 0 for a loop
    std::vector<std::int64_t> cost;
    std::vector<std::int64_t> supply;  // sums to zero
    // Where to start from: a flow within the capacities, which need not meet the supplies. Empty: from
    // scratch.
    std::vector<std::int64_t> start_flow;
    std::vector<std::int64_t> start_potential;
};

struct Solution {
    Status status = Status::timeout;  // optimal, infeasible or timeout
    std::vector<std::int64_t> flow;
    std::vector<std::int64_t> potential;
};

// Checks what the comments above say of a problem. Does nothing unless assertions are on.
void assert_normal(const Problem& problem);
// Checks that an optimal solution meets bounds and supplies, and that its potentials prove it. Does nothing
// unless assertions are on.
void assert_optimal(const Problem& problem, const Solution& solution);

}  // namespace topoplace::flow
