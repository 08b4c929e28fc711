// From a network to its infrastructure, the assignment on it, and back to a flow.
#include "flow/scheduling/solve_structure.hpp"

#include "flow/scheduling/infrastructure.hpp"
#include "flow/scheduling/solver/assignment_solver.hpp"

namespace topoplace::flow {
namespace {

// Nodes searched for each arc until the general algorithms are likely to be faster: where costs are many and
// most tasks come through one hub, its places rise one after the other.
constexpr std::uint64_t kMostNodesPerArc = 4;

}  // namespace

std::optional<FlowResult> solve_structure(const Network& network, NodeCounter& counter) {
    Infrastructure infrastructure;
    AssignmentSolver solver;
    if (!infrastructure.recognise(network)) return std::nullopt;
    const auto node_of = infrastructure.add_tasks(network, solver.assignment());
    if (!node_of) return std::nullopt;
    if (!solver.solve(counter, kMostNodesPerArc * network.tail.size())) {
        if (counter.stopped()) return FlowResult{};
        return std::nullopt;
    }
    return infrastructure.expand(network, solver.assignment(), *node_of);
}

}  // namespace topoplace::flow
