// What only C++ can ask: the gain structures, the workspace, the limit on the work, what is refused.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "oracles/partition_oracle.hpp"
#include "topoplace/partition.hpp"
#include "topoplace/random.hpp"

using topoplace::Edge;
using topoplace::Graph;
namespace partition = topoplace::partition;

namespace {

Graph grid(std::int32_t side, double weight = 1) {
    std::vector<Edge> edges;
    for (std::int32_t v = 0; v < side * side; ++v) {
        if (v % side + 1 < side) edges.push_back({v, v + 1, weight});
        if (v + side < side * side) edges.push_back({v, v + side, weight});
    }
    return {side * side, edges};
}

Graph random_graph(topoplace::Random& random, std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) {
            if (const std::int32_t weight = random.below(6); weight > 0)
                edges.push_back({u, v, 0.5 * weight});
        }
    }
    return {size, edges};
}

std::string refusal(const Graph& graph, const partition::BipartitionParams& params) {
    return partition::check(graph, params).value_or("");
}

}  // namespace

TEST(random_numbers_are_the_published_ones) {
    topoplace::Random random(1234567);  // the reference implementation's first numbers for this seed
    CHECK_EQ(random.next(), 6457827717110365317U);
    CHECK_EQ(random.next(), 3203168211198807973U);
    for (int i = 0; i < 1000; ++i) {
        const std::int32_t drawn = random.below(7);
        CHECK(drawn >= 0 && drawn < 7);
    }
}

TEST(proofs_equal_brute_force) {
    topoplace::Random random(1);
    for (std::int32_t round = 0; round < 60; ++round) {
        const Graph graph = random_graph(random, 1 + round % 10);
        partition::BipartitionParams params;
        params.fraction = round % 3 == 0 ? 0.5 : 0.25;
        params.imbalance = round % 2 == 0 ? 0 : 0.5;
        const auto expected =
            oracle::best_halves(graph, params, round % 3 == 0 ? 50 : 25, round % 2 == 0 ? 0 : 50);
        const auto found = partition::bipartition(graph, params);
        CHECK(found.optimal && expected && found.side == expected->side && found.cut == expected->cut);
    }
}

TEST(both_gain_structures_cut_a_grid_straight) {
    const Graph graph = grid(30);
    partition::BipartitionParams params;
    params.imbalance = 0.03;
    params.coarsest = 1000;  // one level
    const auto buckets = partition::bipartition(graph, params);
    params.gains = partition::GainStructure::heap;
    const auto heap = partition::bipartition(graph, params);
    CHECK_EQ(buckets.cut, 30.0);
    CHECK_EQ(heap.cut, 30.0);
    CHECK(buckets.status == partition::BipartitionStatus::feasible && !buckets.optimal);
}

TEST(coarser_levels_keep_fixed_vertices_and_balance) {
    const Graph graph = grid(25);
    std::vector<std::int64_t> weights(625);
    std::vector<std::int8_t> fixed(625, -1);
    topoplace::Random random(3);
    for (std::size_t v = 0; v < 625; ++v) {
        weights[v] = random.below(4);
        if (random.below(10) == 0) fixed[v] = std::int8_t(random.below(2));
    }
    partition::BipartitionParams params;
    params.vertex_weights = weights;
    params.fixed = fixed;
    params.imbalance = 0.03;
    for (const std::int32_t coarsest : {1, 30, 120, 1000}) {
        params.coarsest = coarsest;
        const auto found = partition::bipartition(graph, params);
        CHECK(!partition::verify_bipartition(graph, params, found.side, found.cut));
        CHECK(found.cut <= found.start_cut);
    }
}

TEST(coarser_levels_find_what_one_level_does_not) {
    std::vector<Edge> edges;  // 1,000 cliques of four vertices in a row
    for (std::int32_t v = 0; v < 4000; ++v) {
        for (std::int32_t u = v + 1; u < v / 4 * 4 + 4; ++u) edges.push_back({v, u, 20});
        if (v % 4 == 0 && v >= 4) edges.push_back({v - 4, v, 5});
    }
    const Graph graph(4000, edges);
    CHECK_EQ(partition::bipartition(graph, {}).cut, 5.0);
}

TEST(coarse_levels_may_lean_where_only_the_finest_can_be_balanced) {
    const Graph graph = grid(60);
    partition::BipartitionParams params;
    for (const std::int32_t cycles : {0, 1, 4}) {
        params.cycles = cycles;
        const auto found = partition::bipartition(graph, params);
        CHECK(!partition::verify_bipartition(graph, params, found.side, found.cut));
        CHECK(found.cut >= 60 && found.cut <= 75);
    }
}

TEST(isolated_vertices_fill_the_sides) {
    Graph graph = grid(10);
    std::vector<Edge> edges;
    for (std::int32_t v = 0; v < 100; ++v) {
        for (const std::int32_t u : graph.neighbors(v)) {
            if (u > v) edges.push_back({3 * v, 3 * u});
        }
    }
    graph = Graph(300, edges);
    std::vector<std::int64_t> weights(300, 1);
    std::vector<std::int8_t> fixed(300, -1);
    partition::BipartitionParams params;
    params.vertex_weights = weights;
    params.fixed = fixed;
    CHECK_EQ(partition::bipartition(graph, params).cut, 0.0);
    for (std::size_t v = 0; v < 300; ++v) weights[v] = std::int64_t(v % 7);
    fixed[1] = 0;
    fixed[2] = fixed[4] = 1;
    for (const double imbalance : {0.0, 0.01, 0.3}) {
        params.imbalance = imbalance;
        const auto found = partition::bipartition(graph, params);
        CHECK(!partition::verify_bipartition(graph, params, found.side, found.cut));
        CHECK_EQ(found.cut, 0.0);
    }
    const Graph none(90, std::vector<Edge>{});
    CHECK_EQ(partition::bipartition(none, {}).cut, 0.0);
}

TEST(loose_ends_of_a_dense_core_are_cut_off) {
    std::vector<Edge> edges;  // 500 vertices of some 40 neighbors; on them, 200 leaves and 200 chains of two
    topoplace::Random random(6);
    for (std::int32_t v = 0; v < 500; ++v) {
        for (std::int32_t u = 0; u < v; ++u) {
            if (random.below(25) < 2) edges.push_back({u, v});
        }
    }
    for (std::int32_t v = 0; v < 200; ++v) {
        edges.push_back({v, 500 + v});
        edges.push_back({499 - v, 700 + 2 * v});
        edges.push_back({700 + 2 * v, 701 + 2 * v});
    }
    // of 1,100 vertices, all chains and 150 leaves; then 100 isolated vertices spare all leaves but 100
    CHECK_EQ(partition::bipartition(Graph(1100, edges), {}).cut, 350.0);
    CHECK_EQ(partition::bipartition(Graph(1200, edges), {}).cut, 300.0);
    CHECK_EQ(partition::bipartition(Graph(1700, edges), {}).cut, 125.0);
}

TEST(large_weights_are_kept_in_a_heap_and_in_order) {
    const auto small = partition::bipartition(grid(12), {});
    const auto large = partition::bipartition(grid(12, 1e15 + 1), {});
    CHECK_EQ(large.cut, small.cut * (1e15 + 1));
}

TEST(a_workspace_changes_nothing_but_the_memory) {
    partition::BipartitionWorkspace workspace;
    for (const std::int32_t side : {20, 6, 13}) {
        const Graph graph = grid(side);
        CHECK(partition::bipartition(graph, {}, &workspace).side == partition::bipartition(graph, {}).side);
    }
    partition::BipartitionWorkspace moved(std::move(workspace));
    CHECK_EQ(partition::bipartition(grid(6), {}, &moved).cut, 6.0);
}

TEST(work_stops_at_its_limit) {
    partition::BipartitionParams params;
    params.stop.max_nodes = 500;
    const Graph graph = grid(40);
    const auto found = partition::bipartition(graph, params);
    CHECK(!found.complete && found.moves <= 500);
    CHECK(!partition::verify_bipartition(graph, params, found.side, found.cut));
    topoplace::Random random(2);
    const auto proof = partition::bipartition(random_graph(random, 24), params);
    CHECK(!proof.complete && !proof.optimal && proof.nodes == 500);
    CHECK(proof.status == partition::BipartitionStatus::feasible);
}

TEST(what_is_out_of_range_is_refused_by_name) {
    const Graph graph = grid(2);
    partition::BipartitionParams params;
    params.fraction = 1.5;
    CHECK(refusal(graph, params).starts_with("fraction = 1.5"));
    params = {};
    params.imbalance = -1;
    CHECK(refusal(graph, params).starts_with("imbalance = -1"));
    params = {};
    params.starts = 0;
    CHECK_EQ(refusal(graph, params), "starts = 0 is not at least 1");
    params = {};
    params.cycles = -1;
    CHECK_EQ(refusal(graph, params), "cycles = -1 is not at least 0");
    params = {};
    params.coarsest = 0;
    CHECK_EQ(refusal(graph, params), "coarsest = 0 is not at least 1");
    params = {};
    params.exact_up_to = 25;
    CHECK_EQ(refusal(graph, params), "exact_up_to = 25 is not in 0..24");
    params = {};
    const std::array<std::int64_t, 4> weights{1, 1, -1, 1};
    params.vertex_weights = weights;
    CHECK_EQ(refusal(graph, params), "vertex_weights[2] = -1 is not in 0..2^53");
    params.vertex_weights = std::span(weights).first(2);
    CHECK_EQ(refusal(graph, params), "vertex_weights has 2 entries; the graph has 4 vertices");
    params = {};
    const std::array<std::int8_t, 4> fixed{0, 1, 2, 0};
    params.fixed = fixed;
    CHECK_EQ(refusal(graph, params), "fixed[2] = 2 is not -1, 0 or 1");
}

TEST(the_largest_vertex_weights_can_be_split) {
    const Graph pair(2, std::vector<Edge>{{0, 1}});
    partition::BipartitionParams params;
    std::array<std::int64_t, 2> weights{std::int64_t{1} << 52, std::int64_t{1} << 52};
    params.vertex_weights = weights;
    CHECK_EQ(refusal(pair, params), "");
    CHECK_EQ(partition::bipartition(pair, params).cut, 1.0);
    ++weights[0];
    CHECK(refusal(pair, params).starts_with("the sum of vertex_weights = 9007199254740993"));
    weights = {-1, 1};
    CHECK_EQ(refusal(pair, params), "vertex_weights[0] = -1 is not in 0..2^53");
}

TEST(a_verifier_says_what_is_wrong) {
    const Graph path(4, std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}});
    partition::BipartitionParams params;
    const std::vector<std::int8_t> fixed{-1, -1, -1, 1};
    params.fixed = fixed;
    const auto fault = [&](const std::vector<std::int8_t>& side, double cut) {
        return partition::verify_bipartition(path, params, side, cut).value_or("none");
    };
    CHECK_EQ(fault({0, 0, 1, 1}, 1), "none");
    CHECK_EQ(fault({0, 0, 1}, 1), "side has 3 entries; the graph has 4 vertices");
    CHECK_EQ(fault({0, 2, 1, 1}, 1), "side[1] = 2 is neither 0 nor 1");
    CHECK_EQ(fault({0, 1, 1, 0}, 2), "side[3] = 0, but the vertex is fixed to side 1");
    CHECK_EQ(fault({0, 1, 1, 1}, 1), "side 1 holds 3; at most 2.000000 are allowed");
    CHECK_EQ(fault({0, 0, 1, 1}, 2), "the cut is 1.000000, not 2.000000");
}
