// Rings against all rings, and channels against the rates and levels they are searched at.
#include <string>

#include "check.hpp"
#include "first_vertices.hpp"
#include "oracles/collective_oracle.hpp"

namespace collective = topoplace::collective;
using collective::RingNetwork;

namespace {

// Terminals on a star: link 2 v leads to the hub, 2 v + 1 back.
RingNetwork star(std::int32_t size, std::int64_t capacity) {
    std::vector<collective::Route> routes;
    for (std::int32_t from = 0; from < size; ++from) {
        for (std::int32_t to = 0; to < size; ++to) {
            if (from != to) routes.push_back({from, to, -1, 0, {{2 * from}, {2 * to + 1}}});
        }
    }
    return {size, std::vector<std::int64_t>(std::size_t(2 * size), capacity), std::move(routes), {}};
}

}  // namespace

TEST(all_rings_agree) {
    topoplace::Random random(1);
    int with_rings = 0;
    int with_several = 0;
    for (std::int32_t round = 0; round < 1500; ++round) {
        const std::int32_t terminals = 2 + round % 4;
        const RingNetwork network = oracle::random_rings(random, terminals).network();
        const auto chosen = first_vertices(2 + random.below(terminals - 1));
        collective::PackParams params;
        params.rate = 500 + random.below(700);
        params.level = random.below(4);
        params.max_rings = 1 + random.below(5);
        params.equal = round % 5 == 0;
        const auto found = collective::pack_rings(network, chosen, params);
        CHECK_EQ(found.count, oracle::most_rings(network, chosen, params));
        CHECK(found.optimal && found.complete && found.bound == found.count);
        CHECK(!collective::verify_rings(network, chosen, params, found.rings));
        with_rings += found.count > 0 ? 1 : 0;
        with_several += found.rings.size() > 1 ? 1 : 0;
    }
    CHECK(with_rings > 300);
    CHECK(with_several > 20);
}

TEST(channels_carry_the_most_of_all_rates_and_levels) {
    topoplace::Random random(2);
    const std::vector<std::int64_t> rates{2000, 1500, 1000, 700, 400};
    for (std::int32_t round = 0; round < 300; ++round) {
        const RingNetwork network = oracle::random_rings(random, 2 + round % 4).network();
        const auto chosen = first_vertices(network.num_terminals());
        collective::ChannelParams params;
        params.rates = rates;
        params.slowest_thousandths = 0;
        const auto found = collective::best_channels(network, chosen, params);
        std::int64_t most = 0;
        for (const std::int64_t rate : rates) {
            collective::PackParams pack{rate, found.level, params.max_channels, false, {}};
            const std::int64_t total = rate * oracle::most_rings(network, chosen, pack);
            most = std::max(most, total);
        }
        CHECK_EQ(found.total(), most);
        if (found.count == 0) continue;
        const collective::PackParams pack{found.rate, found.level, params.max_channels, false, {}};
        CHECK(!collective::verify_rings(network, chosen, pack, found.rings));
    }
}

TEST(channels_are_split_and_raised) {
    const RingNetwork network = star(4, 120);
    const auto chosen = first_vertices(4);
    const std::vector<std::int64_t> rates{40, 30, 20, 15, 10};
    collective::ChannelParams params;
    params.rates = rates;
    CHECK_EQ(collective::best_channels(network, chosen, params).count, 3);
    params.split_rate = 25;
    const auto split = collective::best_channels(network, chosen, params);
    CHECK(split.count == 6 && split.rate == 20);
    params.whole_rate = 50;
    params.whole_count = 2;
    CHECK_EQ(collective::best_channels(network, chosen, params).count, 3);
    params.whole_rate = 0;
    params.max_channels = 4;  // four of 20 are split off three of 40, then four of 30 found
    const auto raised = collective::best_channels(network, chosen, params);
    CHECK(raised.count == 4 && raised.rate == 30);
}

TEST(slow_rates_are_left_out) {
    const RingNetwork network = star(3, 15);
    const auto chosen = first_vertices(3);
    const std::vector<std::int64_t> rates{10, 7, 5, 3};
    collective::ChannelParams params;
    params.rates = rates;
    const auto near = collective::best_channels(network, chosen, params);
    CHECK(near.count == 3 && near.rate == 5);
    params.slowest_thousandths = 719;
    const auto one = collective::best_channels(network, chosen, params);
    CHECK(one.count == 1 && one.rate == 10);
}

TEST(two_groups_have_two_channels) {
    // 0, 1 and 2, 3 are near each other, and two links join the groups, one each way.
    const auto route = [](std::int32_t from, std::int32_t to) {
        if (from / 2 == to / 2) return collective::Route{from, to, -1, 0, {{2 + from}}};
        return collective::Route{from, to, -1, 1, {{from / 2}}};
    };
    std::vector<collective::Route> routes;
    for (std::int32_t from = 0; from < 4; ++from) {
        for (std::int32_t to = 0; to < 4; ++to) {
            if (from != to) routes.push_back(route(from, to));
        }
    }
    const RingNetwork network(4, {16, 16, 99, 99, 99, 99}, routes, {});
    const std::vector<std::int64_t> rates{15, 12, 10, 7, 4};
    collective::ChannelParams params;
    params.rates = rates;
    CHECK_EQ(collective::best_channels(network, first_vertices(4), params).rate, 15);
    params.group_level = 0;
    const auto found = collective::best_channels(network, first_vertices(4), params);
    CHECK(found.count == 4 && found.rate == 4);
    CHECK_EQ(collective::best_channels(network, std::vector{0, 1, 2}, params).rate, 15);
    params.group_level = 1;
    CHECK_EQ(collective::best_channels(network, first_vertices(4), params).rate, 15);
}

TEST(a_stopped_search_has_rings_and_a_bound) {
    topoplace::Random random(3);
    const RingNetwork network = oracle::random_rings(random, 9).network();
    const auto chosen = first_vertices(9);
    collective::PackParams params{400, collective::RingNetwork::kMaxLevel, 16, false, {}};
    params.stop.max_nodes = 8;
    const auto found = collective::pack_rings(network, chosen, params);
    CHECK(!collective::verify_rings(network, chosen, params, found.rings));
    CHECK(found.complete || found.bound > found.count);
    params.stop = {};
    params.stop.max_nodes = 1U << 20;
    CHECK(collective::pack_rings(network, chosen, params).count <= found.bound);
}

TEST(faults_are_found) {
    const RingNetwork network = star(3, 10);
    const auto chosen = first_vertices(3);
    const collective::PackParams params{5, 0, 2, false, {}};
    const auto fault = [&](const std::vector<collective::Ring>& rings) {
        return collective::verify_rings(network, chosen, params, rings).has_value();
    };
    CHECK(!fault({{{0, 1, 2}, 1}, {{0, 2, 1}, 1}}));
    CHECK(fault({{{0, 1, 2}, 3}}));
    CHECK(fault({{{0, 1}, 1}}));
    CHECK(fault({{{0, 1, 1}, 1}}));
    CHECK(fault({{{0, 1, 2}, 0}}));
    CHECK(collective::verify_rings(network, chosen, {6, 0, 2, false, {}},
                                   std::vector<collective::Ring>{{{0, 1, 2}, 2}})
              .has_value());
    CHECK(collective::verify_rings(network, chosen, {5, 0, 2, true, {}},
                                   std::vector<collective::Ring>{{{0, 1, 2}, 1}, {{0, 2, 1}, 1}})
              .has_value());
}

TEST(wrong_arguments_are_named) {
    const RingNetwork network = star(3, 10);
    const auto refusal = [&](const std::vector<std::int32_t>& chosen) {
        return collective::check(network, chosen).value_or("");
    };
    CHECK_EQ(refusal({0, 3}), "chosen[1] = 3 is not a terminal");
    CHECK_EQ(refusal({0, 0}), "chosen[1] = 0 appears twice");
    CHECK_EQ(refusal({0}), "chosen has fewer than two terminals");
    CHECK_EQ(collective::check(collective::PackParams{.rate = 0}).value_or(""), "rate = 0 is not positive");
    const std::vector<std::int64_t> rates{5, 6};
    collective::ChannelParams params;
    params.rates = rates;
    CHECK_EQ(collective::check(params).value_or(""), "rates[1] = 6 is above the one before or 2^40");
}

TEST(wrong_networks_are_named) {
    const auto refusal = [](const std::vector<std::int64_t>& capacities,
                            const std::vector<collective::Route>& routes,
                            const std::vector<collective::LinkCut>& cuts = {}) {
        return RingNetwork::check(2, capacities, routes, cuts).value_or("");
    };
    CHECK_EQ(refusal({1}, {{0, 0, -1, 0, {{0}}}}), "routes[0] does not join two of 2 terminals");
    CHECK_EQ(refusal({1}, {{0, 1, 1, 0, {{0}}}}), "routes[0] has the relay 1, not a third terminal");
    CHECK_EQ(refusal({1}, {{0, 1, -1, 16, {{0}}}}), "routes[0] has the level 16, not one of 0..15");
    CHECK_EQ(refusal({1}, {{0, 1, -1, 0, {}}}), "routes[0] uses no link");
    CHECK_EQ(refusal({-1}, {}), "capacities[0] = -1 is not in 0..2^40");
    CHECK_EQ(refusal({1, 1}, {{0, 1, -1, 0, {{0}}}}, {{1, {1}}}),
             "cuts[0] is avoided by a route from 0 to 1");
}
