// The definition of a problem and of an optimal solution, as assertions.
#include "flow/general/problem.hpp"

#include <cstdlib>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

void assert_start(const Problem& problem) {
    if (problem.start_flow.empty()) return;
    TOPOPLACE_ASSERT(problem.start_flow.size() == problem.tail.size());
    TOPOPLACE_ASSERT(problem.start_potential.size() == problem.supply.size());
    for (std::size_t arc = 0; arc < problem.start_flow.size(); ++arc)
        TOPOPLACE_ASSERT(0 <= problem.start_flow[arc] && problem.start_flow[arc] <= problem.capacity[arc]);
}

void assert_conserved(const Problem& problem, const Solution& solution) {
    std::vector<Total> excess(problem.supply.begin(), problem.supply.end());
    for (std::size_t arc = 0; arc < problem.tail.size(); ++arc) {
        excess[index(problem.tail[arc])] -= solution.flow[arc];
        excess[index(problem.head[arc])] += solution.flow[arc];
    }
    for (const Total left : excess) TOPOPLACE_ASSERT(left == 0);
}

}  // namespace

void assert_normal(const Problem& problem) {
    if constexpr (!kAssertionsOn) return;
    TOPOPLACE_ASSERT(problem.supply.size() == index(problem.num_nodes));
    TOPOPLACE_ASSERT(problem.head.size() == problem.tail.size());
    TOPOPLACE_ASSERT(problem.capacity.size() == problem.tail.size());
    TOPOPLACE_ASSERT(problem.cost.size() == problem.tail.size());
    Total units = 0;
    for (std::size_t arc = 0; arc < problem.tail.size(); ++arc) {
        TOPOPLACE_ASSERT(0 <= problem.tail[arc] && problem.tail[arc] < problem.num_nodes);
        TOPOPLACE_ASSERT(0 <= problem.head[arc] && problem.head[arc] < problem.num_nodes);
        TOPOPLACE_ASSERT(problem.capacity[arc] >= 0);
        TOPOPLACE_ASSERT(problem.tail[arc] != problem.head[arc] || problem.capacity[arc] == 0);
        TOPOPLACE_ASSERT(Total{std::abs(problem.cost[arc])} * (problem.num_nodes + 1) <= kMaxPotential);
        units += problem.capacity[arc];
    }
    TOPOPLACE_ASSERT(units <= kMaxUnits);
    Total supply = 0;
    for (const std::int64_t units_supplied : problem.supply) supply += units_supplied;
    TOPOPLACE_ASSERT(supply == 0);
    assert_start(problem);
}

void assert_optimal(const Problem& problem, const Solution& solution) {
    if constexpr (!kAssertionsOn) return;
    TOPOPLACE_ASSERT(solution.flow.size() == problem.tail.size());
    TOPOPLACE_ASSERT(solution.potential.size() == problem.supply.size());
    for (std::size_t arc = 0; arc < problem.tail.size(); ++arc) {
        const std::int64_t flow = solution.flow[arc];
        const Total reduced_cost = Total{problem.cost[arc]} + solution.potential[index(problem.tail[arc])] -
                                   solution.potential[index(problem.head[arc])];
        TOPOPLACE_ASSERT(0 <= flow && flow <= problem.capacity[arc]);
        TOPOPLACE_ASSERT(flow == problem.capacity[arc] || reduced_cost >= 0);
        TOPOPLACE_ASSERT(flow == 0 || reduced_cost <= 0);
    }
    assert_conserved(problem, solution);
}

}  // namespace topoplace::flow
