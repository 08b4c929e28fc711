// Nodes of proofs, descents and exchanges of mapping on fixed cases, and how dear the mappings are.
#include <utility>

#include "topoplace/mapping.hpp"
#include "work/work.hpp"

namespace mapping = topoplace::mapping;
using namespace work;

namespace {

// Vertices whose numbers agree when divided by the first of a pair are that far apart, the rest 300.
mapping::Target nested(std::int32_t size, const std::vector<std::pair<std::int32_t, double>>& levels) {
    std::vector<double> distance;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = 0; v < size; ++v) {
            double apart = 300;
            for (const auto& [inside, near] : levels) {
                if (u / inside == v / inside) apart = near;
            }
            distance.push_back(u == v ? 0 : apart);
        }
    }
    return {size, distance};
}

mapping::Target random_target(Random& random, std::int32_t size) {
    std::vector<double> distance(std::size_t(size * size), 0);
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = 0; v < u; ++v)
            distance[std::size_t(u * size + v)] = distance[std::size_t(v * size + u)] = 1 + random.below(40);
    }
    return {size, distance};
}

// The steps between points of a square grid.
mapping::Target torus(std::int32_t side) {
    const auto apart = [&](std::int32_t a, std::int32_t b) {
        const std::int32_t steps = a < b ? b - a : a - b;
        return std::min(steps, side - steps);
    };
    std::vector<double> distance;
    for (std::int32_t u = 0; u < side * side; ++u) {
        for (std::int32_t v = 0; v < side * side; ++v)
            distance.push_back(apart(u / side, v / side) + apart(u % side, v % side));
    }
    return {side * side, distance};
}

struct Sum {
    double cost = 0, bound = 0;
    std::int64_t descents = 0;
    std::uint64_t exchanges = 0, nodes = 0;

    void add(const mapping::MapResult& found) {
        cost += found.cost;
        bound += found.bound;
        descents += found.descents;
        exchanges += found.exchanges;
        nodes += found.nodes;
    }
};

Sum on_random_targets(const mapping::MapParams& params, std::int32_t tasks, std::int32_t size,
                      std::int32_t percent) {
    Random random(1);
    Sum sum;
    for (int round = 0; round < 6; ++round) {
        const mapping::Source source(random_graph(random, tasks, percent, 9));
        sum.add(mapping::map_graph(source, random_target(random, size), params));
    }
    return sum;
}

std::vector<Graph> patterns() {
    Random random(7);
    return {ring(24), grid(4, 6), star(12), random_graph(random, 20, 20, 9), random_graph(random, 30, 60, 9)};
}

Sum of_patterns(const mapping::Target& target, const mapping::MapParams& params) {
    Sum sum;
    for (const Graph& pattern : patterns())
        sum.add(mapping::map_graph(mapping::Source(pattern), target, params));
    return sum;
}

mapping::MapParams exact() {
    mapping::MapParams params;
    params.method = mapping::Method::exact;
    return params;
}

}  // namespace

TEST(bounds_prune_proofs) {
    CHECK_WORK(on_random_targets(exact(), 6, 12, 60).nodes, 551);
    CHECK_WORK(on_random_targets(exact(), 7, 9, 90).nodes, 1544);
    CHECK_WORK(on_random_targets(exact(), 8, 8, 40).nodes, 316);
    mapping::MapParams params = exact();
    const std::vector<double> prices{3, 9, 1, 40, 7, 0, 12, 5, 30, 2};
    params.target_cost = prices;
    CHECK_WORK(on_random_targets(params, 6, 10, 60).nodes, 323);
    params.stop.max_nodes = 100;
    const Sum early = on_random_targets(params, 9, 10, 60);
    CHECK_BOUND(early.bound, 5656);
}

TEST(equal_tasks_and_vertices_are_tried_once) {
    Sum sum;
    const mapping::Target target = nested(16, {{8, 20}, {4, 5}, {2, 1}});
    for (const Graph& pattern : {ring(6), ring(9), star(7), grid(2, 4)})
        sum.add(mapping::map_graph(mapping::Source(pattern), target, exact()));
    CHECK_WORK(sum.nodes, 68070);
}

TEST(mappings_are_cheap_for_few_exchanges) {
    mapping::MapParams params;
    const Sum few = on_random_targets(params, 10, 24, 50);
    CHECK_COST(few.cost, 3027);
    CHECK_BOUND(few.bound, 1334);
    CHECK_WORK(few.descents, 66);
    CHECK_WORK(few.exchanges, 2008);
    CHECK_WORK(few.nodes, 600);
    const Sum large = of_patterns(nested(96, {{32, 50}, {8, 10}, {4, 1}}), params);
    CHECK_COST(large.cost, 48789);
    CHECK_BOUND(large.bound, 34224.5);
    CHECK_WORK(large.descents, 67);
    CHECK_WORK(large.exchanges, 2057);
    const Sum steps = of_patterns(torus(8), params);
    CHECK_COST(steps.cost, 3982);
    CHECK_BOUND(steps.bound, 2733);
    CHECK_WORK(steps.descents, 55);
    CHECK_WORK(steps.exchanges, 1780);
}

TEST(descents_alone_and_refinement_alone_are_good) {
    mapping::MapParams params;
    params.kicks = 0;
    params.proof_nodes = 0;
    CHECK_COST(on_random_targets(params, 10, 24, 50).cost, 3394);
    CHECK_COST(of_patterns(nested(96, {{32, 50}, {8, 10}, {4, 1}}), params).cost, 49060);
    const Sum steps = of_patterns(torus(8), params);
    CHECK_COST(steps.cost, 4077);
    CHECK_WORK(steps.exchanges, 108);
    std::vector<std::int32_t> free;
    for (std::int32_t v = 0; v < 64; ++v) {
        if (v % 3 != 1) free.push_back(v);
    }
    params.free = free;
    CHECK_COST(of_patterns(torus(8), params).cost, 4828);
    params.kicks = 30;
    CHECK_COST(of_patterns(torus(8), params).cost, 4712);
    CHECK_WORK(of_patterns(torus(8), params).exchanges, 1891);
}

TEST(cheap_vertices_are_worth_some_distance) {
    std::vector<double> prices;
    for (std::int32_t v = 0; v < 96; ++v) prices.push_back(v * 7 % 5 == 0 ? 0.0 : v % 3);
    mapping::MapParams params;
    params.target_cost = prices;
    const Sum kicked = of_patterns(nested(96, {{32, 4}, {8, 2}, {4, 1}}), params);
    CHECK_COST(kicked.cost, 4696);
    CHECK_WORK(kicked.exchanges, 2198);
    params.kicks = 0;
    params.proof_nodes = 0;
    CHECK_COST(of_patterns(nested(96, {{32, 4}, {8, 2}, {4, 1}}), params).cost, 4706);
}
