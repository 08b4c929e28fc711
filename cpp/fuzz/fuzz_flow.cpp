// Minimum-cost flow against the definition: every algorithm against all flows of one small network, the proof
// of each answer, starts from an answer to other costs, and a limit on the work.
#include <array>
#include <vector>

#include "fuzz.hpp"
#include "oracles/flow_oracle.hpp"
#include "topoplace/flow.hpp"

namespace {

namespace flow = topoplace::flow;
using flow::Algorithm;
using flow::Status;

constexpr std::array kAlgorithms{Algorithm::automatic, Algorithm::cost_scaling, Algorithm::network_simplex,
                                 Algorithm::successive_shortest_path, Algorithm::cycle_canceling};

struct Case {
    oracle::Network network;
    bool finite = true;
};

Case read_case(fuzz::Bytes& bytes) {
    Case c;
    const std::int32_t form = bytes.below(8);
    c.network.num_nodes = 1 + bytes.below(6);
    const std::int32_t arcs = bytes.below(8);
    const std::int32_t unit = form & 4 ? 1 << 28 : 1;  // numbers beyond 32 bits, too
    for (std::int32_t a = 0; a < arcs; ++a) {
        const std::int32_t tail = bytes.below(c.network.num_nodes);
        const std::int32_t head = bytes.below(c.network.num_nodes);
        const std::int64_t lower = form & 1 ? bytes.below(2) : 0;
        const std::int64_t room = bytes.below(form & 2 ? 5 : 4);
        const std::int64_t cost = std::int64_t{unit} * (bytes.below(16) - 5);
        c.network.add(tail, head, room == 4 ? flow::kInfinite : lower + room, cost, lower);
        c.finite = c.finite && room < 4;
    }
    std::int64_t sum = 0;
    for (std::int32_t v = 0; v < c.network.num_nodes; ++v) {
        c.network.supply.push_back(bytes.below(7) - 3);
        sum += c.network.supply.back();
    }
    c.network.supply.front() -= sum + std::int64_t{bytes.below(4)} / 2;
    return c;
}

void check_proof(const flow::Network& network, const flow::FlowResult& found) {
    if (found.status == Status::optimal) {
        REQUIRE(!flow::verify_flow(network, found.flow, found.potential, found.cost));
        REQUIRE(flow::verify_flow(network, found.flow, found.potential, found.cost + 1));
    }
    if (found.status == Status::infeasible) REQUIRE(!flow::verify_infeasible(network, found.cut));
    if (found.status == Status::unbounded) REQUIRE(!flow::verify_unbounded(network, found.cycle));
}

// Costs of one arc more, capacities of another less, and the flow as a start.
void check_warm(oracle::Network network, const flow::FlowResult& found, fuzz::Bytes& bytes) {
    if (found.status != Status::optimal || network.tail.empty()) return;
    const auto arcs = static_cast<std::int32_t>(network.tail.size());
    network.cost[std::size_t(bytes.below(arcs))] += bytes.below(9) - 4;
    auto& capacity = network.capacity[std::size_t(bytes.below(arcs))];
    if (capacity > 2 && capacity != flow::kInfinite) --capacity;
    flow::FlowParams params;
    params.algorithm = Algorithm::cost_scaling;
    const auto cold = flow::min_cost_flow(network.view(), params);
    params.start_flow = found.flow;
    params.start_potential = found.potential;
    const auto warm = flow::min_cost_flow(network.view(), params);
    REQUIRE(warm.status == cold.status && warm.cost == cold.cost);
    check_proof(network.view(), warm);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const Case c = read_case(bytes);
    const auto expected = c.finite ? oracle::least_cost(c.network) : std::nullopt;
    flow::FlowParams params;
    const auto first = flow::min_cost_flow(c.network.view(), params);
    for (const Algorithm algorithm : kAlgorithms) {
        params.algorithm = algorithm;
        const auto found = flow::min_cost_flow(c.network.view(), params);
        REQUIRE(found.status == first.status && found.cost == first.cost);
        if (c.finite) REQUIRE(found.status == (expected ? Status::optimal : Status::infeasible));
        if (expected) REQUIRE(found.cost == *expected);
        check_proof(c.network.view(), found);
        flow::FlowParams limited = params;
        limited.stop.max_nodes = std::uint64_t(1 + bytes.below(20));
        const auto soon = flow::min_cost_flow(c.network.view(), limited);
        REQUIRE(soon.status == Status::timeout || (soon.status == first.status && soon.cost == first.cost));
        check_proof(c.network.view(), soon);
    }
    check_warm(c.network, first, bytes);
    return 0;
}
