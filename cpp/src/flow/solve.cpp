// The front door of minimum-cost flow: chooses an algorithm, runs it, and proves the answers that are no
// optimum.
//
// A scheduling graph is solved as the assignment it is (scheduling/). Any other network is brought into a
// normal form for the general algorithms (general/).
#include <algorithm>
#include <numeric>
#include <utility>

#include "flow/general/algorithms.hpp"
#include "flow/general/certificates.hpp"
#include "flow/general/normal_form.hpp"
#include "flow/proof.hpp"
#include "flow/scheduling/solve_structure.hpp"
#include "graph/index.hpp"

namespace topoplace::flow {
namespace {

struct Solved {
    Algorithm algorithm = Algorithm::automatic;
    Solution solution;
};

Solution run(Algorithm algorithm, const Problem& problem, WorkMeter& meter) {
    switch (algorithm) {
        case Algorithm::automatic:
        case Algorithm::network_simplex:
            break;
        case Algorithm::cost_scaling:
            return cost_scaling(problem, meter);
        case Algorithm::successive_shortest_path:
            return successive_shortest_path(problem, meter);
        case Algorithm::cycle_canceling:
            return cycle_canceling(problem, meter);
    }
    return network_simplex(problem, meter);
}

// Runs the fastest of the general algorithms on the families of networks measured (benchmarks/bench_flow.py),
// and with a start the one that makes use of it. Cost scaling took at most 13 steps for a node or an arc
// there: where it takes many more, as on long paths, the network simplex gets the rest of the time.
Solved run_fastest(const Problem& problem, const StopCondition& stop, WorkMeter& meter) {
    constexpr std::uint64_t kStepsForEach = 50;
    const bool scaling = problem.start_flow.empty() ? prefers_scaling(problem) : scalable(problem);
    if (scaling) {
        StopCondition limited = stop;
        const std::uint64_t left = stop.max_nodes - std::min(stop.max_nodes, meter.nodes());
        limited.max_nodes = std::min(left, kStepsForEach * (1 + problem.supply.size() + problem.tail.size()));
        WorkMeter trial(limited);
        Solution solution = cost_scaling(problem, trial);
        const bool over = meter.visit(trial.nodes());
        if (solution.status != Status::timeout || over)
            return {.algorithm = Algorithm::cost_scaling, .solution = std::move(solution)};
    }
    return {.algorithm = Algorithm::network_simplex, .solution = network_simplex(problem, meter)};
}

FlowResult infeasible(std::vector<std::int32_t>&& cut) {
    FlowResult result;
    result.status = Status::infeasible;
    result.cut = std::move(cut);
    return result;
}

FlowResult refused(const Fault& fault) {
    FlowResult result;
    result.fault = fault;
    return result;
}

// Proves that not all can be sent, if that is so; `timeout` if `meter` stops first.
FlowResult prove_infeasible(const Network& network, const Problem& problem, WorkMeter& meter) {
    auto cut = blocking_cut(problem, meter);
    if (cut.empty()) return {};
    std::erase_if(cut, [&](std::int32_t v) { return v >= network.num_nodes; });
    return infeasible(std::move(cut));
}

FlowResult solve(const Network& network, const FlowParams& params, WorkMeter& meter) {
    const NormalForm normal(network, params);
    if (normal.oversupplied()) {
        std::vector<std::int32_t> all(index(network.num_nodes));
        std::iota(all.begin(), all.end(), 0);
        return infeasible(std::move(all));
    }
    if (normal.fault()) return refused(normal.fault());
    auto cycle = endless_cycle(network, meter);
    if (meter.stopped()) return {};
    if (!cycle.empty()) {
        FlowResult result = prove_infeasible(network, normal.problem(), meter);
        if (meter.stopped() || result.status == Status::infeasible) return result;
        result.status = Status::unbounded;
        result.cycle = std::move(cycle);
        return result;
    }
    const Problem& problem = normal.problem();
    if (params.algorithm == Algorithm::cost_scaling) {
        if (const Fault fault = check_scaling(problem)) return refused(fault);
    }
    Solved solved =
        params.algorithm == Algorithm::automatic
            ? run_fastest(problem, params.stop, meter)
            : Solved{.algorithm = params.algorithm, .solution = run(params.algorithm, problem, meter)};
    FlowResult result = solved.solution.status == Status::infeasible
                            ? prove_infeasible(network, problem, meter)
                            : normal.restore(std::move(solved.solution));
    result.algorithm = solved.algorithm;
    return result;
}

}  // namespace

FlowResult min_cost_flow(const Network& network, const FlowParams& params) {
    if (const Fault fault = check(network, params)) return refused(fault);
    WorkMeter meter(params.stop);
    const bool warm = !params.start_flow.empty() || !params.start_potential.empty();
    if (params.algorithm == Algorithm::automatic && params.structure && !warm) {
        if (auto result = solve_structure(network, meter)) {
            result->steps = meter.nodes();
            assert_proven(network, *result);
            return std::move(*result);
        }
    }
    FlowResult result = solve(network, params, meter);
    if (result.algorithm == Algorithm::automatic) result.algorithm = params.algorithm;  // settled without one
    result.steps = meter.nodes();
    if (!result.fault) assert_proven(network, result);
    return result;
}

}  // namespace topoplace::flow
