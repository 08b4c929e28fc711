// Targets as lists of neighbours: the answers of dense targets, those of brute force, and sizes that only
// lists can hold.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "first_vertices.hpp"
#include "oracles/match_oracle.hpp"
#include "topoplace/match.hpp"
#include "topoplace/random.hpp"

using topoplace::Edge;
using topoplace::Graph;
using topoplace::Random;
namespace match = topoplace::match;

namespace {

using Vertices = std::vector<std::int32_t>;

// `degree` edges a vertex, with `kinds` different weights; 0 gives each edge its own weight.
Graph random_graph(Random& random, std::int32_t size, std::int32_t degree, std::int32_t kinds) {
    std::vector<Edge> edges;
    std::vector<std::int64_t> seen;
    for (std::int32_t i = 0; i < size * degree / 2; ++i) {
        const std::int32_t u = random.below(size), v = random.below(size);
        const std::int64_t key = std::int64_t{std::min(u, v)} * size + std::max(u, v);
        if (u == v || std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
        seen.push_back(key);
        edges.push_back({u, v, kinds > 0 ? 1.0 + random.below(kinds) : 1 + random.below(1 << 30) / 1e8});
    }
    return {size, edges};
}

const std::vector<Graph>& patterns() {
    const auto edges = [](std::vector<Edge> list) { return list; };
    static const std::vector<Graph> all{
        {1, {}},
        {2, edges({{0, 1}})},
        {3, edges({{0, 1}, {1, 2}, {0, 2}})},
        {4, edges({{0, 1}, {1, 2}, {2, 3}, {3, 0}})},
        {4, edges({{0, 1}, {0, 2}, {0, 3}})},
        {4, edges({{0, 1}, {2, 3}})},
        {4, edges({{0, 1}, {1, 2}, {0, 2}})},  // and an isolated vertex
        {5, edges({{3, 1}, {1, 4}, {4, 0}, {0, 2}})},
        {5, edges({{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}})},
        {6, edges({{0, 1}, {1, 2}, {3, 4}, {4, 5}, {0, 3}, {1, 4}, {2, 5}})},
    };
    return all;
}

Vertices some_of(Random& random, std::int32_t size, std::int32_t percent) {
    Vertices some;
    for (std::int32_t v = 0; v < size; ++v) {
        if (random.below(100) < percent) some.push_back(v);
    }
    return some;
}

constexpr auto kObjectives = {match::Objective::sum, match::Objective::bottleneck,
                              match::Objective::bottleneck_sum};
constexpr auto kDistinct = {match::Distinct::mappings, match::Distinct::images, match::Distinct::vertex_sets};

void check_same(const match::BestResult& dense, const match::BestResult& sparse) {
    CHECK(dense.optimal && sparse.optimal);
    CHECK_EQ(sparse.found, dense.found);
    CHECK(sparse.vertices == dense.vertices);
    CHECK_EQ(sparse.score, dense.score);
    CHECK_EQ(sparse.bound, dense.bound);
    CHECK_EQ(sparse.complete, dense.complete);
}

std::vector<double> score_of(match::Objective objective, const std::vector<double>& ascending) {
    const double sum = std::accumulate(ascending.begin(), ascending.end(), 0.0);
    if (objective == match::Objective::sum || ascending.empty()) return {sum};
    if (objective == match::Objective::bottleneck) return {ascending.front()};
    return {ascending.front(), sum};
}

}  // namespace

TEST(the_best_embedding_is_that_of_brute_force) {
    Random random(1);
    for (std::int32_t round = 0; round < check::rounds(24, 12); ++round) {
        const std::int32_t degree = 2 + random.below(4);
        const Graph graph = random_graph(random, 8 + random.below(3), degree, 1 + round % 4);
        const match::Target target(graph, match::Layout::sparse);
        CHECK(target.is_sparse());
        for (const Graph& pattern : patterns()) {
            const auto all = oracle::mappings(pattern, graph);
            for (const match::Objective objective : kObjectives) {
                const auto best = oracle::best(all, [&](const oracle::Mapping& mapping) {
                    return score_of(objective, oracle::used_weights(pattern, graph, mapping));
                });
                const auto found = match::best_subgraph(match::Pattern(pattern), target,
                                                        first_vertices(graph.num_vertices()), objective, {});
                CHECK(found.optimal);
                CHECK_EQ(found.found, best != nullptr);
                if (best == nullptr) continue;
                CHECK(found.vertices == *best);
                CHECK(found.complete);
            }
        }
    }
}

TEST(the_best_embedding_does_not_depend_on_the_layout) {
    Random random(2);
    for (std::int32_t round = 0; round < check::rounds(40, 12); ++round) {
        const std::int32_t size = 20 + random.below(180);
        const Graph graph =
            random_graph(random, size, 3 + random.below(4), std::vector{0, 1, 3, 9}[round % 4]);
        const match::Target dense(graph, match::Layout::dense);
        const match::Target sparse(graph, match::Layout::sparse);
        const Vertices free = round % 3 == 0 ? some_of(random, size, 80) : first_vertices(size);
        const Vertices required =
            round % 5 == 1 ? Vertices{free[3]}
            : round % 5 == 2
                ? Vertices{free[3], graph.neighbors(free[3]).empty() ? free[0] : graph.neighbors(free[3])[0]}
                : Vertices{};
        match::BestParams params;
        params.required = required;
        params.min_weight = round % 4 == 1 ? 0 : 2;
        for (const Graph& pattern : patterns()) {
            const match::Pattern p(pattern);
            for (const match::Objective objective : kObjectives) {
                check_same(match::best_subgraph(p, dense, free, objective, params),
                           match::best_subgraph(p, sparse, free, objective, params));
            }
        }
    }
}

TEST(matches_do_not_depend_on_the_layout) {
    Random random(3);
    for (std::int32_t round = 0; round < check::rounds(40, 12); ++round) {
        const std::int32_t size = 8 + random.below(round % 4 == 0 ? 120 : 12);
        const Graph graph = random_graph(random, size, 2 + random.below(3), 4);
        const match::Target dense(graph, match::Layout::dense);
        const match::Target sparse(graph, match::Layout::sparse);
        for (const Graph& pattern : patterns()) {
            const bool is_small = size < 20 || pattern.num_edges() + 1 >= pattern.num_vertices();
            if (!is_small) continue;
            const match::Pattern p(pattern);
            std::vector<std::uint8_t> candidates(std::size_t(pattern.num_vertices() * size));
            for (auto& may : candidates) may = random.below(100) < 70 ? 1 : 0;
            for (const match::Distinct distinct : kDistinct) {
                match::EnumerateParams params{.distinct = distinct};
                params.induced = round % 2 == 0;
                params.min_weight = round % 3;
                if (round % 5 == 3) params.candidates = candidates;
                if (round % 7 == 2) params.limit = 3;
                const auto expected = match::enumerate_subgraphs(p, dense, params);
                const auto found = match::enumerate_subgraphs(p, sparse, params);
                CHECK(found.vertices == expected.vertices);
                CHECK_EQ(found.complete, expected.complete);
                CHECK_EQ(match::count_subgraphs(p, sparse, params).count, expected.count);
            }
        }
    }
}

TEST(matches_are_those_of_brute_force) {
    Random random(4);
    for (std::int32_t round = 0; round < check::rounds(12, 12); ++round) {
        const std::int32_t degree = 2 + random.below(4);
        const Graph graph = random_graph(random, 7 + random.below(3), degree, 3);
        const match::Target target(graph, match::Layout::sparse);
        for (const Graph& pattern : patterns()) {
            const bool induced = round % 2 == 1;
            auto rows = match::enumerate_subgraphs(match::Pattern(pattern), target,
                                                   {.induced = induced, .min_weight = 2});
            std::vector<Vertices> found;
            const auto k = std::ptrdiff_t(pattern.num_vertices());
            for (auto row = rows.vertices.begin(); row != rows.vertices.end(); row += k)
                found.emplace_back(row, row + k);
            std::sort(found.begin(), found.end());
            CHECK(found == oracle::mappings(pattern, graph, induced, 2));
        }
    }
}

// Weights that round to the same number stay apart where a search names the least one.
TEST(the_least_weight_is_exact) {
    const double light = 1, heavy = std::nextafter(1.0, 2.0);
    const Graph graph(4, std::vector<Edge>{{0, 1, light}, {1, 2, heavy}, {2, 3, light}});
    const match::Target target(graph, match::Layout::sparse);
    const match::Pattern pair(Graph(2, std::vector<Edge>{{0, 1}}));
    match::BestParams params;
    params.min_weight = heavy;
    for (const match::Objective objective : kObjectives) {
        const auto found = match::best_subgraph(pair, target, first_vertices(4), objective, params);
        CHECK(found.vertices == (Vertices{1, 2}));
    }
    CHECK_EQ(match::count_subgraphs(pair, target, {.min_weight = heavy}).count, 2);
}

TEST(wherever_a_sparse_search_is_stopped_it_claims_nothing_false) {
    Random random(5);
    for (std::int32_t round = 0; round < check::rounds(12, 12); ++round) {
        const match::Target target(random_graph(random, 14, 4, round % 3), match::Layout::sparse);
        const match::Pattern pattern(patterns()[std::size_t(round % 10)]);
        for (const match::Objective objective : kObjectives) {
            const auto whole = match::best_subgraph(pattern, target, first_vertices(14), objective, {});
            for (std::uint64_t limit = 1; limit <= whole.nodes; ++limit) {
                match::BestParams params;
                params.stop.max_nodes = limit;
                const auto early =
                    match::best_subgraph(pattern, target, first_vertices(14), objective, params);
                const bool compares = objective != match::Objective::bottleneck_sum;
                CHECK(!early.found || !compares || early.bound >= whole.score - 1e-9);  // it is rounded
                CHECK(!early.optimal || early.score == whole.score);
                CHECK(!early.complete || early.vertices == whole.vertices);
            }
        }
    }
}

TEST(large_targets_are_sparse_and_small_or_full_ones_dense) {
    Random random(6);
    CHECK(!match::Target(random_graph(random, 60, 3, 2)).is_sparse());
    CHECK(match::Target(random_graph(random, 1000, 3, 2)).is_sparse());
    CHECK(match::Target(Graph(5000, std::vector<Edge>{{0, 1}})).is_sparse());
    std::vector<Edge> full;
    for (std::int32_t u = 0; u < 200; ++u) {
        for (std::int32_t v = 0; v < u; ++v) full.push_back({u, v});
    }
    CHECK(!match::Target(Graph(200, full)).is_sparse());
    const Graph large(5000, std::vector<Edge>{{0, 1}});
    CHECK(match::check_remainder(match::Pattern(patterns()[1]), match::Target(large)).has_value());
}
