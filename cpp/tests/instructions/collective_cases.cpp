#include <deque>
#include <vector>

#include "check.hpp"
#include "first_vertices.hpp"
#include "instructions/counted.hpp"
#include "oracles/collective_oracle.hpp"
#include "oracles/fabrics.hpp"
#include "topoplace/tree_packing.hpp"

namespace collective = topoplace::collective;

TEST(throughput_of_a_fabric) {
    const auto graph = oracle::boxes_of_sixteen(2);
    const auto chosen = first_vertices(32);
    counted([&] { CHECK(collective::throughput_bound(graph, {chosen, false, {}}).complete); });
}

TEST(trees_of_a_fabric) {
    const auto graph = oracle::boxes_of_eight(2);
    const auto chosen = first_vertices(16);
    counted([&] { CHECK(collective::pack_trees(graph, {chosen, false, {}}).complete); });
}

TEST(channels_of_rings) {
    topoplace::Random random(2);
    std::deque<collective::RingNetwork> networks;
    for (int round = 0; round < 12; ++round) {
        oracle::RingCase made = oracle::random_rings(random, 5);
        networks.emplace_back(made.terminals, made.capacities, made.routes,
                              std::vector<collective::LinkCut>{});
    }
    const auto chosen = first_vertices(5);
    const std::vector<std::int64_t> rates{2000, 1500, 1000, 700, 400};
    collective::ChannelParams params;
    params.rates = rates;
    params.slowest_thousandths = 0;
    counted([&] {
        for (const auto& network : networks)
            CHECK(collective::best_channels(network, chosen, params).complete);
    });
}
