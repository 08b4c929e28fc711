// What only C++ can ask: the definition of ties on all small cases, the halves of larger targets, the limit
// on the work, what is refused.
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "oracles/mapping_oracle.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/random.hpp"

using topoplace::Edge;
using topoplace::Graph;
namespace mapping = topoplace::mapping;

namespace {

Graph ring(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) edges.push_back({u, (u + 1) % size, 1});
    return {size, edges};
}

Graph random_graph(topoplace::Random& random, std::int32_t size, std::int32_t weights) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) {
            if (const std::int32_t weight = random.below(weights); weight > 0)
                edges.push_back({u, v, 0.5 * weight});
        }
    }
    return {size, edges};
}

// Vertices whose numbers agree when divided by sizes[i] are at most distances[i] apart, the rest `far`.
std::vector<double> nested(std::int32_t size, const std::vector<std::pair<std::int32_t, double>>& levels,
                           double far) {
    std::vector<double> distance;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = 0; v < size; ++v) {
            double apart = far;
            for (const auto& [inside, near] : levels) {
                if (u / inside == v / inside) apart = near;
            }
            distance.push_back(u == v ? 0 : apart);
        }
    }
    return distance;
}

std::string refusal(const mapping::Source& source, const mapping::MapParams& params) {
    return mapping::check(source, mapping::Target(2, {0, 1, 1, 0}), params).value_or("");
}

std::string refused_distance(const std::vector<double>& distance) {
    return mapping::Target::check(2, distance).value_or("");
}

}  // namespace

TEST(proofs_equal_brute_force) {
    topoplace::Random random(1);
    for (std::int32_t round = 0; round < 300; ++round) {
        oracle::MapCase c{random_graph(random, 1 + round % 5, 2 + round % 4), 3 + round % 5, {}, {}, {}};
        c.distance.assign(std::size_t(c.size * c.size), 0);
        for (std::int32_t v = 0; v < c.size; ++v) {
            for (std::int32_t u = 0; u < v; ++u)
                c.distance[std::size_t(u * c.size + v)] = c.distance[std::size_t(v * c.size + u)] =
                    1 + random.below(3);
            if (round % 3 == 0) c.price.push_back(random.below(3));
            if (round % 2 == 0 || v != 1) c.free.push_back(v);
        }
        mapping::MapParams params;
        params.method = mapping::Method::exact;
        params.target_cost = c.price;
        params.free = c.free;
        const auto expected = oracle::best_mapping(c);
        const auto found =
            mapping::map_graph(mapping::Source(c.source), mapping::Target(c.size, c.distance), params);
        CHECK(found.found == expected.has_value());
        CHECK(!expected || (found.optimal && found.complete && found.target_of == *expected));
    }
}

TEST(one_descent_keeps_a_ring_together_at_every_level) {
    const mapping::Target target(96, nested(96, {{32, 50}, {8, 10}, {4, 1}}, 300));
    mapping::MapParams params;
    params.kicks = 0;
    params.proof_nodes = 0;
    const auto found = mapping::map_graph(mapping::Source(ring(32)), target, params);
    CHECK_EQ(found.cost, 24 * 1 + 4 * 10 + 4 * 50.0);
    const auto all = mapping::map_graph(mapping::Source(ring(96)), target, params);
    CHECK_EQ(all.cost, 3 * (24 * 1 + 4 * 10 + 3 * 50) + 3 * 300.0);
}

TEST(a_mesh_is_cut_between_the_halves) {
    const mapping::Target target(64, nested(64, {{32, 50}, {8, 10}, {4, 1}}, 300));
    std::vector<Edge> edges;  // 8 x 8
    for (std::int32_t v = 0; v < 64; ++v) {
        if (v % 8 < 7) edges.push_back({v, v + 1, 1});
        if (v < 56) edges.push_back({v, v + 8, 1});
    }
    mapping::MapParams params;
    params.kicks = 0;
    const auto found = mapping::map_graph(mapping::Source(Graph(64, edges)), target, params);
    // Halves of 4 x 8, blocks of 2 x 4, squares of 2 x 2: 8, 24, 16 and 64 edges.
    CHECK(found.cost <= 1.01 * (8 * 300 + 24 * 50 + 16 * 10 + 64 * 1));
}

TEST(a_proof_beyond_reach_is_not_begun) {
    const mapping::Target target(420, nested(420, {{4, 1}}, 9));
    mapping::MapParams params;
    params.method = mapping::Method::exact;
    const auto found = mapping::map_graph(mapping::Source(ring(420)), target, params);
    CHECK(found.found && !found.complete && found.nodes == 0);
    CHECK_EQ(found.cost, 315 * 1 + 105 * 9.0);
    CHECK(found.bound <= found.cost);
}

TEST(regions_of_the_caller_are_tried) {
    topoplace::Random random(4);
    std::vector<double> distance(100 * 100, 0);  // no structure but a clique of vertices that are close
    for (std::int32_t u = 0; u < 100; ++u) {
        for (std::int32_t v = 0; v < u; ++v) {
            const double apart = u % 9 == 4 && v % 9 == 4 ? 1 : 50 + random.below(50);
            distance[std::size_t(u * 100 + v)] = distance[std::size_t(v * 100 + u)] = apart;
        }
    }
    mapping::MapParams params;
    const std::vector<std::vector<std::int32_t>> regions{{4, 13, 22, 31, 40, 49, 58, 67}};
    params.regions = regions;
    const auto found = mapping::map_graph(mapping::Source(ring(8)), mapping::Target(100, distance), params);
    CHECK_EQ(found.cost, 8.0);
    CHECK(found.optimal);
}

TEST(a_start_is_refined_and_nothing_else_is_tried) {
    const mapping::Target target(64, nested(64, {{16, 50}, {4, 1}}, 100));
    std::vector<std::int32_t> start(64);
    for (std::int32_t a = 0; a < 64; ++a) start[std::size_t(a)] = a ^ 1;
    mapping::MapParams params;
    params.start = start;
    params.kicks = 0;
    const auto found = mapping::map_graph(mapping::Source(ring(64)), target, params);
    CHECK_EQ(found.descents, 0);
    CHECK_EQ(found.cost, 48 + 12 * 50 + 4 * 100.0);
    params.kicks = 5;
    CHECK(mapping::map_graph(mapping::Source(ring(64)), target, params).cost <= found.cost);
}

TEST(equal_vertices_cost_no_search) {
    const mapping::Target target(40, nested(40, {}, 1));
    mapping::MapParams params;
    params.method = mapping::Method::exact;
    const auto found = mapping::map_graph(mapping::Source(ring(12)), target, params);
    CHECK(found.optimal && found.complete);
    CHECK_EQ(found.cost, 12.0);
    CHECK(found.nodes <= 12);
    for (std::int32_t a = 0; a < 12; ++a) CHECK_EQ(found.target_of[std::size_t(a)], a);
}

TEST(a_first_fit_that_reaches_the_bound_is_not_searched) {
    const auto found =
        mapping::map_graph(mapping::Source(ring(12)), mapping::Target(40, nested(40, {}, 1)), {});
    CHECK(found.optimal && found.complete && found.cost == 12.0);
    CHECK(found.descents == 0 && found.exchanges == 0 && found.nodes == 0);
}

TEST(the_bound_for_a_large_target_is_the_least_distance_and_the_lowest_prices) {
    const std::int32_t size = 1200;
    std::vector<double> prices(size, 8);
    prices[3] = prices[700] = 2;
    mapping::MapParams params;
    params.target_cost = prices;
    const mapping::Target target(size, nested(size, {{4, 3}}, 9));
    const auto found = mapping::map_graph(mapping::Source(ring(6)), target, params);
    CHECK_EQ(found.bound, 6 * 3 + 2 * 2 + 4 * 8.0);
    params.target_cost = {};
    CHECK_EQ(mapping::map_graph(mapping::Source(ring(6)), target, params).bound, 6 * 3.0);
}

TEST(work_stops_at_its_limit_with_a_true_bound) {
    topoplace::Random random(5);
    std::vector<double> distance(20 * 20, 0);
    for (std::int32_t u = 0; u < 20; ++u) {
        for (std::int32_t v = 0; v < u; ++v)
            distance[std::size_t(u * 20 + v)] = distance[std::size_t(v * 20 + u)] = 1 + random.below(50);
    }
    const mapping::Source source(random_graph(random, 9, 6));
    const mapping::Target target(20, distance);
    mapping::MapParams params;
    params.method = mapping::Method::exact;
    params.stop.max_nodes = 50;
    const auto early = mapping::map_graph(source, target, params);
    CHECK(!early.complete && !early.optimal && early.nodes <= 50);
    params.stop.max_nodes = 2'000'000;
    const auto late = mapping::map_graph(source, target, params);
    CHECK(late.optimal && early.bound <= late.cost && late.cost <= early.cost);
}

TEST(bounds_of_costs_that_round_are_true) {
    topoplace::Random random(6);
    const auto fraction = [&] { return double(random.next() >> 11) / double(std::uint64_t{1} << 53); };
    for (std::int32_t round = 0; round < 20; ++round) {
        std::vector<Edge> edges;
        for (std::int32_t u = 0; u < 20; ++u) {
            for (std::int32_t v = 0; v < u; ++v) edges.push_back({u, v, fraction() + 1e-9});
        }
        std::vector<double> distance(40 * 40, 0);
        for (std::int32_t u = 0; u < 40; ++u) {
            for (std::int32_t v = 0; v < u; ++v)
                distance[std::size_t(u * 40 + v)] = distance[std::size_t(v * 40 + u)] = fraction();
        }
        mapping::MapParams params;
        params.method = mapping::Method::exact;
        params.stop.max_nodes = 200;
        const auto found =
            mapping::map_graph(mapping::Source(Graph(20, edges)), mapping::Target(40, distance), params);
        CHECK(found.found && found.bound > 0 && found.bound <= found.cost);
    }
}

TEST(what_is_out_of_range_is_refused_by_name) {
    const mapping::Source source(ring(3));
    mapping::MapParams params;
    CHECK_EQ(refusal(source, params), "");
    const std::array<double, 2> prices{0, -3};
    params.target_cost = prices;
    CHECK_EQ(refusal(source, params), "target_cost[1] = -3 is not in 0..1e100");
    params.target_cost = std::span(prices).first(1);
    CHECK_EQ(refusal(source, params), "target_cost has 1 entries; the target has 2 vertices");
    params = {};
    const std::array<std::int32_t, 2> vertices{0, 2};
    params.free = vertices;
    CHECK_EQ(refusal(source, params), "free[1] = 2: vertices are 0..1");
    params = {};
    const std::vector<std::vector<std::int32_t>> regions{{1, 1}};
    params.regions = regions;
    CHECK_EQ(refusal(source, params), "regions[0][1] = 1 is there twice");
    params = {};
    const std::array<std::int32_t, 3> start{0, 1, 0};
    params.start = start;
    CHECK_EQ(refusal(source, params), "start[2] = 0 is there twice");
    params.start = std::span(start).first(2);
    CHECK(refusal(source, params).starts_with("start has 2 entries; the source has "));
    params = {};
    params.kicks = -1;
    CHECK_EQ(refusal(source, params), "kicks = -1 is not at least 0");
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_EQ(refused_distance({0, nan, 0, 0}), "target_distance[0, 1] = nan is not a finite number");
    CHECK_EQ(refused_distance({0, 1, 2, 0}), "target_distance[0, 1] = 1 but target_distance[1, 0] = 2");
    CHECK_EQ(refused_distance({0, 1, 1}), "target_distance does not have n x n entries");
}

TEST(a_verifier_says_what_is_wrong) {
    const Graph job(2, std::vector<Edge>{{0, 1, 3}});
    const std::vector<double> distance{0, 1, 2, 1, 0, 1, 2, 1, 0};
    const std::vector<std::int32_t> free{0, 1};
    mapping::MapParams params;
    params.free = free;
    const auto fault = [&](const std::vector<std::int32_t>& target_of, double cost) {
        return mapping::verify_mapping(job, 3, distance, params, target_of, cost).value_or("none");
    };
    CHECK_EQ(fault({0, 1}, 3), "none");
    CHECK_EQ(fault({0}, 3), "1 tasks are mapped; the source has 2");
    CHECK_EQ(fault({0, 3}, 3), "task 1 is mapped to 3; the target has 3 vertices");
    CHECK_EQ(fault({2, 0}, 6), "task 0 is mapped to 2, which is not free");
    CHECK_EQ(fault({1, 1}, 0), "task 0 and task 1 are both mapped to 1");
    CHECK_EQ(fault({1, 0}, 4), "the cost is 3.000000, not 4.000000");
}
