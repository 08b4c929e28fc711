#include <numeric>
#include <utility>

#include "flow/problem.hpp"
#include "flow/structure.hpp"

namespace topoplace::flow {
namespace {

// What runs: for `automatic` the fastest of the general algorithms on the families of networks measured
// (benchmarks/bench_flow.py), and with a start the one that makes use of it.
Algorithm chosen(Algorithm asked, const Problem& problem) {
    if (asked != Algorithm::automatic) return asked;
    const bool scaling = problem.start_flow.empty() ? prefers_scaling(problem) : scalable(problem);
    return scaling ? Algorithm::cost_scaling : Algorithm::network_simplex;
}

Solution run(Algorithm algorithm, const Problem& problem, NodeCounter& counter) {
    switch (algorithm) {
        case Algorithm::automatic:
        case Algorithm::cost_scaling:
            break;
        case Algorithm::network_simplex:
            return network_simplex(problem, counter);
        case Algorithm::successive_shortest_path:
            return successive_shortest_path(problem, counter);
        case Algorithm::cycle_canceling:
            return cycle_canceling(problem, counter);
    }
    return cost_scaling(problem, counter);
}

FlowResult infeasible(std::vector<std::int32_t>&& cut) {
    FlowResult result;
    result.status = Status::infeasible;
    result.cut = std::move(cut);
    return result;
}

// The proof that not all can be sent, if that is so; `timeout` where it cannot be told in time.
FlowResult prove_infeasible(const Network& network, const Problem& problem, NodeCounter& counter) {
    auto cut = blocking_cut(problem, counter);
    if (cut.empty()) return {};
    std::erase_if(cut, [&](std::int32_t v) { return v >= network.num_nodes; });
    return infeasible(std::move(cut));
}

FlowResult solve(const Network& network, const FlowParams& params, NodeCounter& counter) {
    const Normal normal(network, params);
    if (normal.oversupplied()) {
        std::vector<std::int32_t> all(static_cast<std::size_t>(network.num_nodes));
        std::iota(all.begin(), all.end(), 0);
        return infeasible(std::move(all));
    }
    auto cycle = endless_cycle(network, counter);
    if (counter.stopped()) return {};
    if (!cycle.empty()) {
        FlowResult result = prove_infeasible(network, normal.problem(), counter);
        if (counter.stopped() || result.status == Status::infeasible) return result;
        result.status = Status::unbounded;
        result.cycle = std::move(cycle);
        return result;
    }
    const Algorithm algorithm = chosen(params.algorithm, normal.problem());
    Solution solution = run(algorithm, normal.problem(), counter);
    FlowResult result = solution.status == Status::infeasible
                            ? prove_infeasible(network, normal.problem(), counter)
                            : normal.restore(std::move(solution));
    result.algorithm = algorithm;
    return result;
}

}  // namespace

FlowResult min_cost_flow(const Network& network, const FlowParams& params) {
    check(network, params);
    NodeCounter counter(params.deadline);
    const bool warm = !params.start_flow.empty() || !params.start_potential.empty();
    if (params.algorithm == Algorithm::automatic && params.structure && !warm) {
        if (auto result = solve_structure(network, counter)) {
            result->steps = counter.nodes();
            return std::move(*result);
        }
    }
    FlowResult result = solve(network, params, counter);
    if (result.algorithm == Algorithm::automatic) result.algorithm = params.algorithm;  // settled without one
    result.steps = counter.nodes();
    return result;
}

}  // namespace topoplace::flow
