// From a network to its infrastructure, the assignment on it, and back to a flow.
#include "flow/scheduling/solve_structure.hpp"

#include <array>
#include <cstddef>
#include <memory_resource>

#include "flow/scheduling/infrastructure.hpp"
#include "flow/scheduling/solver/assignment_solver.hpp"

namespace topoplace::flow {
namespace {

// After this many searched nodes per arc, the general algorithms are likely to be faster. That happens if
// there are many different costs and most tasks come through one hub: the prices of its places then rise
// one by one.
constexpr std::uint64_t kMostNodesPerArc = 4;
// Networks of up to kFew nodes and arcs together are solved in a buffer of kMemoryOfFew bytes on the stack,
// so that nothing is allocated.
constexpr std::size_t kFew = 512;
constexpr std::size_t kMemoryOfFew = std::size_t{1} << 15;

}  // namespace

std::optional<FlowResult> solve_structure(const Network& network, WorkMeter& meter) {
    std::array<std::byte, kMemoryOfFew> buffer;
    std::pmr::monotonic_buffer_resource at_hand(buffer.data(), buffer.size());
    const bool few = network.tail.size() + network.supply.size() <= kFew;
    std::pmr::memory_resource& memory = few ? at_hand : *std::pmr::get_default_resource();
    Infrastructure infrastructure(memory);
    AssignmentSolver solver(memory);
    if (!infrastructure.recognise(network)) return std::nullopt;
    const auto node_of = infrastructure.add_tasks(network, solver.assignment());
    if (!node_of) return std::nullopt;
    if (!solver.solve(meter, kMostNodesPerArc * network.tail.size())) {
        if (meter.stopped()) return FlowResult{};
        return std::nullopt;
    }
    return infrastructure.expand(network, solver.assignment(), *node_of);
}

}  // namespace topoplace::flow
