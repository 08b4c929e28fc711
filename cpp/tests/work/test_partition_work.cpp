// Nodes, moves and passes of bipartitioning on fixed graphs, and how good the cuts are.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "topoplace/partition.hpp"
#include "work/work.hpp"

namespace partition = topoplace::partition;
using namespace work;

namespace {

// Points drawn in a square, joined where they are near: what meshes and machines look like.
Graph near_points(std::int32_t size, double radius, std::uint64_t seed) {
    Random random(seed);
    std::vector<double> x, y;
    for (std::int32_t v = 0; v < size; ++v) {
        x.push_back(random.below(1 << 20) / double(1 << 20));
        y.push_back(random.below(1 << 20) / double(1 << 20));
    }
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) {
            const double dx = x[std::size_t(u)] - x[std::size_t(v)],
                         dy = y[std::size_t(u)] - y[std::size_t(v)];
            if (dx * dx + dy * dy < radius * radius) edges.push_back({u, v, double(1 + random.below(5))});
        }
    }
    return {size, edges};
}

// The recursive matrix of Graph500: few hubs, many leaves, and many vertices without an edge.
Graph recursive_matrix(std::int32_t scale, std::uint64_t seed) {
    Random random(seed);
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::int32_t drawn = 0; drawn < 8 << scale; ++drawn) {
        std::int32_t u = 0, v = 0;
        for (std::int32_t bit = 0; bit < scale; ++bit) {
            const std::int32_t percent = random.below(100);
            u = 2 * u + (percent >= 76);
            v = 2 * v + ((percent >= 57 && percent < 76) || percent >= 95);
        }
        if (u != v) pairs.insert({std::min(u, v), std::max(u, v)});
    }
    std::vector<Edge> edges;
    for (const auto& [u, v] : pairs) edges.push_back({u, v});
    return {1 << scale, edges};
}

struct Sum {
    std::uint64_t nodes = 0, passes = 0, moves = 0, rollbacks = 0;
    double cut = 0, start_cut = 0;

    void add(const Graph& graph, const partition::BipartitionParams& params) {
        const auto found = partition::bipartition(graph, params);
        CHECK(!partition::verify_bipartition(graph, params, found.side, found.cut));
        nodes += found.nodes;
        passes += found.passes;
        moves += found.moves;
        rollbacks += found.rollbacks;
        cut += found.cut;
        start_cut += found.start_cut;
    }
};

Sum of_points(const partition::BipartitionParams& params) {
    Sum sum;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) sum.add(near_points(500, 0.09, seed), params);
    return sum;
}

Sum proofs(std::int32_t percent, const partition::BipartitionParams& params) {
    Random random(3);
    Sum sum;
    for (std::int32_t round = 0; round < 8; ++round)
        sum.add(random_graph(random, 16 + round % 5, percent, 6), params);
    return sum;
}

}  // namespace

TEST(bounds_prune_proofs) {
    partition::BipartitionParams params;
    CHECK_WORK(proofs(30, params).nodes, 11587);
    CHECK_WORK(proofs(90, params).nodes, 129143);
    params.fraction = 0.25;
    params.imbalance = 0.3;
    CHECK_WORK(proofs(50, params).nodes, 54309);
    params = {};
    std::vector<std::int8_t> fixed(20, partition::kFreeVertex);
    fixed[2] = 0;
    fixed[5] = fixed[11] = 1;
    std::vector<std::int64_t> weights;
    Random random(4);
    for (std::int32_t v = 0; v < 20; ++v) weights.push_back(1 + random.below(4));
    params.fixed = fixed;
    params.vertex_weights = weights;
    params.imbalance = 0.1;
    Sum sum;
    for (int round = 0; round < 6; ++round) sum.add(random_graph(random, 20, 50, 6), params);
    CHECK_WORK(sum.nodes, 20934);
}

TEST(cuts_of_points_are_good_for_few_moves) {
    partition::BipartitionParams params;
    params.imbalance = 0.03;
    const Sum levels = of_points(params);
    CHECK_COST(levels.cut, 852);
    CHECK_WORK(levels.start_cut, 4721);
    CHECK_WORK(levels.passes, 331);
    CHECK_WORK(levels.moves, 9472);
    CHECK_WORK(levels.rollbacks, 7949);
    params.gains = partition::GainStructure::heap;
    CHECK_COST(of_points(params).cut, 852);
    CHECK_WORK(of_points(params).moves, 9340);
}

TEST(hubs_and_leaves_are_cut_where_edges_are_few) {
    partition::BipartitionParams params;
    params.imbalance = 0.03;
    Sum sum;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) sum.add(recursive_matrix(11, seed), params);
    CHECK_COST(sum.cut, 2133);
    CHECK_WORK(sum.passes, 173);
    CHECK_WORK(sum.moves, 12622);
    CHECK_WORK(sum.rollbacks, 8678);
}

TEST(each_part_of_the_heuristic_earns_its_place) {
    partition::BipartitionParams params;
    params.starts = 1;
    params.cycles = 0;
    CHECK_COST(of_points(params).cut, 1166);
    CHECK_WORK(of_points(params).moves, 3262);
    params.cycles = 3;
    CHECK_COST(of_points(params).cut, 1166);
    params = {};
    params.coarsest = 1000;  // one level
    CHECK_COST(of_points(params).cut, 950);
    CHECK_WORK(of_points(params).start_cut, 3268);
    CHECK_WORK(of_points(params).moves, 48806);
}

TEST(weights_and_fixed_vertices_cost_little) {
    Random random(5);
    std::vector<std::int64_t> weights;
    std::vector<std::int8_t> fixed;
    for (std::int32_t v = 0; v < 500; ++v) {
        weights.push_back(random.below(6));
        fixed.push_back(random.below(12) > 0 ? partition::kFreeVertex : std::int8_t(random.below(2)));
    }
    partition::BipartitionParams params;
    params.vertex_weights = weights;
    params.fraction = 0.3;
    params.imbalance = 0.05;
    CHECK_COST(of_points(params).cut, 692);
    CHECK_WORK(of_points(params).moves, 8162);
    params.fixed = fixed;
    CHECK_COST(of_points(params).cut, 4297);
    CHECK_WORK(of_points(params).moves, 10625);
}
