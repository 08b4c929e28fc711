// What only C++ can ask: every algorithm against brute force, both widths of numbers, totals beyond 64 bits,
// verifiers against what is not so, and refusals.
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "oracles/flow_oracle.hpp"
#include "topoplace/flow.hpp"
#include "topoplace/random.hpp"

namespace flow = topoplace::flow;
using flow::Algorithm;
using flow::Status;

namespace {

constexpr std::array kAlgorithms{Algorithm::automatic, Algorithm::cost_scaling, Algorithm::network_simplex,
                                 Algorithm::successive_shortest_path, Algorithm::cycle_canceling};

flow::FlowResult solve(const oracle::Network& network, Algorithm algorithm = Algorithm::cost_scaling) {
    flow::FlowParams params;
    params.algorithm = algorithm;
    return flow::min_cost_flow(network.view(), params);
}

bool proven(const oracle::Network& network, const flow::FlowResult& found) {
    switch (found.status) {
        case Status::optimal:
            return !flow::verify_flow(network.view(), found.flow, found.potential, found.cost);
        case Status::infeasible:
            return !flow::verify_infeasible(network.view(), found.cut);
        case Status::unbounded:
            return !flow::verify_unbounded(network.view(), found.cycle);
        case Status::timeout:
            return false;
    }
    return false;
}

// A sparse network through which everything can go: each node passes on to the next at a high cost.
oracle::Network passable(topoplace::Random& random, std::int32_t nodes, std::int32_t arcs,
                         std::int64_t unit) {
    oracle::Network network;
    network.num_nodes = nodes;
    network.supply.assign(static_cast<std::size_t>(nodes), 0);
    for (std::int32_t v = 0; v + 1 < nodes; ++v) network.add(v, v + 1, flow::kInfinite, 1000 * unit);
    for (std::int32_t a = 0; a < arcs; ++a) {
        const std::int32_t cost = random.below(1200) - 200;
        const std::int32_t capacity = 1 + random.below(9);
        const std::int32_t head = random.below(nodes);
        network.add(random.below(nodes), head, capacity, cost * unit);
    }
    for (std::int32_t v = 0; v + 1 < nodes; ++v)
        network.supply[static_cast<std::size_t>(v)] = random.below(4);
    std::int64_t sum = 0;
    for (const std::int64_t supply : network.supply) sum += supply;
    network.supply.back() = -sum - random.below(2);
    return network;
}

std::string refusal(const oracle::Network& network, Algorithm algorithm = Algorithm::cost_scaling) {
    return solve(network, algorithm).fault.value_or("");
}

oracle::Network pair(std::int64_t capacity, std::int64_t cost, std::int64_t supply, std::int64_t demand) {
    oracle::Network network;
    network.num_nodes = 2;
    network.supply = {supply, -demand};
    network.add(0, 1, capacity, cost);
    return network;
}

}  // namespace

TEST(answers_equal_brute_force) {
    topoplace::Random random(1);
    for (std::int32_t round = 0; round < 400; ++round) {
        oracle::Network network;
        network.num_nodes = 1 + random.below(4);
        for (std::int32_t a = random.below(7); a-- > 0;) {
            const std::int64_t lower = random.below(8) == 0 ? 1 : 0;
            const std::int64_t cost = random.below(9) - 3;
            const std::int64_t capacity = lower + random.below(3);
            const std::int32_t head = random.below(network.num_nodes);
            network.add(random.below(network.num_nodes), head, capacity, cost, lower);
        }
        std::int64_t sum = 0;
        for (std::int32_t v = 0; v < network.num_nodes; ++v) {
            network.supply.push_back(random.below(5) - 2);
            sum += network.supply.back();
        }
        network.supply.front() -= sum + random.below(2);
        const auto expected = oracle::least_cost(network);
        for (const Algorithm algorithm : kAlgorithms) {
            const auto found = solve(network, algorithm);
            CHECK(proven(network, found));
            CHECK(found.status == (expected ? Status::optimal : Status::infeasible));
            CHECK(!expected || found.cost == *expected);
        }
    }
}

TEST(larger_networks_are_proven_in_both_widths) {
    topoplace::Random random(2);
    for (std::int32_t round = 0; round < 40; ++round) {
        for (const std::int64_t unit : {std::int64_t{1}, std::int64_t{1} << 32}) {
            const auto network = passable(random, 60 + round, 300, unit);
            const auto found = solve(network);
            CHECK(found.status == Status::optimal && proven(network, found));
            CHECK(found.cost == solve(network, Algorithm::network_simplex).cost);
        }
    }
}

TEST(totals_may_be_beyond_64_bits) {
    const std::int64_t units = std::int64_t{1} << 50;
    const auto network = pair(units, std::int64_t{1} << 50, units, units);
    for (const Algorithm algorithm : kAlgorithms) {
        const auto found = solve(network, algorithm);
        CHECK(found.status == Status::optimal && found.cost == flow::Total{1} << 100);
        CHECK(proven(network, found));
    }
}

TEST(a_start_saves_work_and_changes_nothing) {
    topoplace::Random random(3);
    auto network = passable(random, 2000, 16000, 1);
    const auto before = solve(network);
    for (std::size_t a = 5000; a < 5020; ++a) network.cost[a] += 7;
    const auto cold = solve(network);
    flow::FlowParams params;
    params.algorithm = Algorithm::cost_scaling;
    params.start_flow = before.flow;
    params.start_potential = before.potential;
    const auto warm = flow::min_cost_flow(network.view(), params);
    CHECK(warm.status == Status::optimal && warm.cost == cold.cost && proven(network, warm));
    CHECK(4 * warm.steps < cold.steps);
    const std::vector<std::int64_t> wild(network.supply.size(), std::numeric_limits<std::int64_t>::min());
    params.start_potential = wild;
    CHECK(flow::min_cost_flow(network.view(), params).cost == cold.cost);
}

TEST(verifiers_refuse_what_is_not_so) {
    const auto network = pair(3, 2, 2, 2);
    const std::vector<std::int64_t> all{2};
    const std::vector<std::int64_t> some{1};
    const std::vector<std::int64_t> right{0, 2};
    const std::vector<std::int64_t> wrong{0, 3};
    CHECK(!flow::verify_flow(network.view(), all, right, 4));
    CHECK(flow::verify_flow(network.view(), all, right, 5));
    CHECK(flow::verify_flow(network.view(), all, wrong, 4));
    CHECK(flow::verify_flow(network.view(), some, right, 2));
    CHECK(flow::verify_infeasible(network.view(), std::vector<std::int32_t>{0}));
    const auto tight = pair(1, 2, 2, 2);
    CHECK(!flow::verify_infeasible(tight.view(), std::vector<std::int32_t>{0}));
    CHECK(flow::verify_infeasible(tight.view(), std::vector<std::int32_t>{0, 0}));
    CHECK(flow::verify_infeasible(tight.view(), std::vector<std::int32_t>{2}));
    CHECK(flow::verify_infeasible(pair(flow::kInfinite, 2, 2, 2).view(), std::vector<std::int32_t>{0}));
    auto endless = pair(flow::kInfinite, -2, 0, 0);
    endless.add(1, 0, flow::kInfinite, 1);
    CHECK(!flow::verify_unbounded(endless.view(), std::vector<std::int32_t>{0, 1}));
    CHECK(flow::verify_unbounded(endless.view(), std::vector<std::int32_t>{0}));
    CHECK(flow::verify_unbounded(endless.view(), std::vector<std::int32_t>{}));
    endless.capacity[1] = 5;
    CHECK(flow::verify_unbounded(endless.view(), std::vector<std::int32_t>{0, 1}));
}

TEST(verifiers_say_what_is_wrong) {
    const auto reason = [](const oracle::Network& network, std::vector<std::int64_t> units,
                           std::vector<std::int64_t> potential, flow::Total cost) {
        return flow::verify_flow(network.view(), units, potential, cost).value_or("");
    };
    const auto network = pair(3, 2, 2, 2);
    CHECK_EQ(reason(network, {2}, {0, 2}, 4), "");
    CHECK_EQ(reason(network, {2}, {0, 2}, 5), "the flow costs 4, not 5");
    CHECK_EQ(reason(network, {2}, {0, 2}, -(flow::Total{1} << 70)),
             "the flow costs 4, not -1180591620717411303424");
    CHECK_EQ(reason(network, {2, 0}, {0, 2}, 4), "flow has 2 entries; the network has 1 arcs");
    CHECK_EQ(reason(network, {2}, {0}, 4), "potential has 1 entries; the network has 2 nodes");
    CHECK_EQ(reason(network, {5}, {0, 2}, 10), "arc 0 carries 5, its capacity is 3");
    CHECK_EQ(reason(network, {-1}, {0, 2}, -2), "arc 0 carries -1, its lower bound is 0");
    CHECK_EQ(reason(network, {2}, {0, 3}, 4), "arc 0 carries 2 of 3, its reduced cost is -1");
    CHECK_EQ(reason(network, {2}, {0, 1}, 4), "arc 0 carries 2, more than it has to, its reduced cost is 1");
    CHECK_EQ(reason(network, {1}, {0, 2}, 2), "node 0 keeps 1 units");
    CHECK_EQ(reason(network, {3}, {0, 2}, 6), "node 0 lacks 1 units");
    CHECK_EQ(reason(pair(3, 2, 2, 4), {2}, {-1, 1}, 4), "node 1 has an unmet demand and potential 1");
    CHECK_EQ(reason(pair(3, 2, 3, 2), {2}, {0, 2}, 4), "supplies exceed demands by 1");
    const auto cut = [](const oracle::Network& of, std::vector<std::int32_t> nodes) {
        return flow::verify_infeasible(of.view(), nodes).value_or("");
    };
    CHECK_EQ(cut(network, {0}), "the cut supplies 2, and 3 can leave it");
    CHECK_EQ(cut(network, {0, 0}), "the cut names node 0 twice");
    CHECK_EQ(cut(network, {2}), "the cut names 2, which is not a node");
    CHECK_EQ(cut(pair(flow::kInfinite, 2, 2, 2), {0}), "arc 0 leaves the cut and has infinite capacity");
    const auto cycle = [](const oracle::Network& of, std::vector<std::int32_t> arcs) {
        return flow::verify_unbounded(of.view(), arcs).value_or("");
    };
    auto endless = pair(flow::kInfinite, -2, 0, 0);
    endless.add(1, 0, flow::kInfinite, 2);
    endless.add(1, 0, 5, 1);
    CHECK_EQ(cycle(endless, {}), "the cycle has no arc");
    CHECK_EQ(cycle(endless, {3}), "the cycle names 3, which is not an arc");
    CHECK_EQ(cycle(endless, {0}), "arc 0 does not begin where arc 0 ends");
    CHECK_EQ(cycle(endless, {0, 1}), "the cycle costs 0");
    CHECK_EQ(cycle(endless, {0, 2}), "arc 2 has a finite capacity");
}

// Distances on the way to a cycle that pays without end may fall once for every arc, far below 64 bits.
TEST(many_parallel_arcs_of_extreme_costs_are_unbounded) {
    oracle::Network network;
    network.num_nodes = 2;
    network.supply = {0, 0};
    for (int i = 0; i < 64; ++i) network.add(i % 2, 1 - i % 2, flow::kInfinite, -(std::int64_t{1} << 58));
    const auto found = solve(network, Algorithm::network_simplex);
    CHECK(found.status == Status::unbounded && proven(network, found));
}

TEST(a_limit_on_the_work_stops_at_the_same_place) {
    topoplace::Random random(4);
    const auto network = passable(random, 2000, 12000, 1);
    for (const Algorithm algorithm : kAlgorithms) {
        flow::FlowParams params;
        params.algorithm = algorithm;
        params.stop.max_nodes = 500;
        const auto found = flow::min_cost_flow(network.view(), params);
        CHECK(found.status == Status::timeout && found.flow.empty() && found.potential.empty());
        CHECK_EQ(found.steps, flow::min_cost_flow(network.view(), params).steps);
    }
}

TEST(what_is_out_of_range_is_named) {
    auto network = pair(1, 1, 1, 1);
    network.tail[0] = 2;
    CHECK_EQ(refusal(network), "tail[0] = 2 is not a node; nodes are 0..1");
    CHECK_EQ(refusal(pair(-1, 1, 1, 1)), "capacity[0] = -1 is negative");
    network = pair(1, 1, 1, 1);
    network.lower[0] = 2;
    CHECK_EQ(refusal(network), "lower[0] = 2 is above the capacity 1");
    network.lower[0] = -2;
    CHECK_EQ(refusal(network), "lower[0] = -2 is negative");
    network = pair(1, 1, 1, 1);
    network.cost.push_back(1);
    CHECK_EQ(refusal(network), "cost has 2 entries; the network has 1 arcs");
    CHECK(
        refusal(pair(1, std::int64_t{1} << 60, 1, 1)).starts_with("cost[0] = 1152921504606846976 is beyond"));
    CHECK(refusal(pair(1, std::int64_t{1} << 58, 1, 1)).find("too large for cost_scaling") !=
          std::string::npos);
    CHECK_EQ(refusal(pair(1, std::int64_t{1} << 58, 1, 1), Algorithm::network_simplex), "");
    CHECK(refusal(pair(1, 1, std::int64_t{1} << 60, 1)).starts_with("supply"));
}
