// Cuts between terminals, trees and packed rings against all cuts and all rings.
#include <array>
#include <numeric>
#include <vector>

#include "fuzz.hpp"
#include "oracles/collective_oracle.hpp"
#include "topoplace/tree_packing.hpp"

namespace {

namespace collective = topoplace::collective;

std::vector<std::int32_t> chosen_of(fuzz::Bytes& bytes, std::int32_t terminals) {
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(2 + bytes.below(terminals - 1)));
    std::iota(chosen.begin(), chosen.end(), 0);
    return chosen;
}

// Each arc also the other way, so that vertices that only forward are balanced.
void check_trees(std::vector<collective::Arc> arcs, std::int32_t size, std::int32_t terminals,
                 const collective::CutParams& params) {
    for (std::size_t i = 0, count = arcs.size(); i < count; ++i) {
        arcs.push_back({arcs[i].head, arcs[i].tail, arcs[i].capacity});
    }
    const collective::TerminalGraph graph(size, terminals, std::move(arcs));
    const auto expected = oracle::all_cuts(graph, params);
    const auto found = collective::pack_trees(graph, params);
    REQUIRE(found.complete && found.trees.empty() == (expected.capacity == 0));
    if (found.trees.empty()) return;
    REQUIRE(!collective::verify_trees(graph, params, found));
    REQUIRE(found.per_root * found.rate_numerator * expected.terminals ==
            expected.capacity * found.rate_denominator);
}

void check_cuts(fuzz::Bytes& bytes) {
    const std::int32_t terminals = 2 + bytes.below(3);
    const std::int32_t size = terminals + bytes.below(3);
    const auto chosen = chosen_of(bytes, terminals);
    const collective::CutParams params{chosen, bytes.below(2) == 1, {}};
    std::vector<collective::Arc> arcs;
    while (!bytes.empty() && arcs.size() < 40) {
        const std::int32_t tail = bytes.below(size);
        const std::int32_t head = (tail + 1 + bytes.below(size - 1)) % size;
        arcs.push_back({tail, head, bytes.below(9)});
    }
    check_trees(arcs, size, terminals, params);
    const collective::TerminalGraph graph(size, terminals, std::move(arcs));
    const auto expected = oracle::all_cuts(graph, params);
    const auto flow = collective::least_max_flow(graph, params);
    REQUIRE(flow.value == expected.least_flow);
    REQUIRE(!collective::verify_least_flow(graph, params, flow));
    const auto bound = collective::throughput_bound(graph, params);
    REQUIRE(bound.terminals * expected.capacity == expected.terminals * bound.capacity);
    REQUIRE(!collective::verify_throughput(graph, params, bound));
}

oracle::RingCase read_rings(fuzz::Bytes& bytes) {
    oracle::RingCase made{2 + bytes.below(4), {}, {}};
    for (std::int32_t links = 1 + bytes.below(12); links > 0; --links)
        made.capacities.push_back(1000 * bytes.below(6));
    const auto links = static_cast<std::int32_t>(made.capacities.size());
    while (!bytes.empty() && made.routes.size() < 40) {
        collective::Route route{bytes.below(made.terminals), 0, -1, bytes.below(3), {}};
        route.to = (route.from + 1 + bytes.below(made.terminals - 1)) % made.terminals;
        const std::int32_t relay = bytes.below(made.terminals);
        if (relay != route.from && relay != route.to && bytes.below(2) == 1) route.relay = relay;
        for (std::int32_t uses = 1 + bytes.below(3); uses > 0; --uses)
            route.uses.push_back({bytes.below(links), 1000 + 200 * bytes.below(2)});
        made.routes.push_back(std::move(route));
    }
    return made;
}

void check_rings(fuzz::Bytes& bytes) {
    collective::PackParams params;
    params.rate = 300 + 100 * bytes.below(20);
    params.level = bytes.below(4);
    params.max_rings = 1 + bytes.below(4);
    params.equal = bytes.below(2) == 1;
    const oracle::RingCase made = read_rings(bytes);
    const collective::RingNetwork network(made.terminals, made.capacities, made.routes, {});
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(made.terminals));
    std::iota(chosen.begin(), chosen.end(), 0);
    const auto found = collective::pack_rings(network, chosen, params);
    REQUIRE(found.optimal && found.count == oracle::most_rings(network, chosen, params));
    REQUIRE(!collective::verify_rings(network, chosen, params, found.rings));
    const std::array rates{params.rate};
    collective::ChannelParams channels;
    channels.rates = rates;
    channels.max_channels = params.max_rings;
    const auto best = collective::best_channels(network, chosen, channels);
    collective::PackParams at_level{params.rate, best.level, params.max_rings, false, {}};
    REQUIRE(best.count == oracle::most_rings(network, chosen, at_level));
    REQUIRE(!collective::verify_rings(network, chosen, at_level, best.rings));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    if (bytes.below(2) == 0) {
        check_cuts(bytes);
    } else {
        check_rings(bytes);
    }
    return 0;
}
