// Nodes that subgraph searches visit on fixed targets: bounds of each objective, local search, symmetries.
#include <algorithm>
#include <utility>

#include "first_vertices.hpp"
#include "topoplace/match.hpp"
#include "work/match_targets.hpp"

namespace match = topoplace::match;
using namespace work;

namespace {

using Vertices = std::vector<std::int32_t>;

const std::vector<Graph>& patterns() {
    static const std::vector<Graph> all{ring(5), ring(7), star(6), grid(2, 3), grid(1, 6)};
    return all;
}

template <class Search>
std::uint64_t nodes_on_random_targets(Search&& search, std::int32_t size, std::int32_t percent = 100) {
    Random random(1);
    std::uint64_t nodes = 0;
    for (int round = 0; round < 4; ++round) {
        const match::Target target(random_graph(random, size, percent, 9));
        for (const Graph& pattern : patterns()) nodes += search(match::Pattern(pattern), target).nodes;
    }
    return nodes;
}

std::uint64_t nodes_for(match::Objective objective, const match::BestParams& params,
                        std::int32_t percent = 100) {
    return nodes_on_random_targets(
        [&](const match::Pattern& pattern, const match::Target& target) {
            return match::best_subgraph(pattern, target, first_vertices(20), objective, params);
        },
        20, percent);
}

// Scores fall with the links of class 0 and grow with those of class 2: of `rare` in a hundred links, and of
// all links of the first `hubs` vertices.
std::uint64_t nodes_by_link_counts(std::int32_t rare, std::int32_t percent, std::int32_t hubs = 0) {
    return nodes_on_random_targets(
        [&](const match::Pattern& pattern, const match::Target& target) {
            Random random(2);
            std::vector<std::uint8_t> classes(20 * 20);
            for (std::int32_t u = 0; u < 20; ++u) {
                for (std::int32_t v = 0; v < u; ++v)
                    classes[std::size_t(u * 20 + v)] = classes[std::size_t(v * 20 + u)] =
                        std::uint8_t(v < hubs || random.below(100) < rare ? 2 : random.below(2));
            }
            const auto num_edges = std::int32_t(pattern.num_edges());
            const auto counts = match::LinkCountScore::count_vectors(num_edges, 3);
            std::vector<double> scores;
            for (std::size_t row = 0; row < counts.size(); row += 3)
                scores.push_back(4.0 * counts[row + 2] - 3.0 * counts[row] + random.below(3));
            const match::LinkCountScore score(target, classes, 3, num_edges, scores);
            return match::best_subgraph(pattern, target, first_vertices(20), score, {});
        },
        20, percent);
}

match::EnumerateParams counting(match::Distinct distinct, bool induced = false) {
    match::EnumerateParams params;
    params.distinct = distinct;
    params.induced = induced;
    params.min_weight = 3;
    return params;
}

std::uint64_t nodes_to_count(const match::EnumerateParams& params) {
    return nodes_on_random_targets(
        [&](const match::Pattern& pattern, const match::Target& target) {
            return match::count_subgraphs(pattern, target, params);
        },
        12, 50);
}

std::uint64_t nodes_to_enumerate(const match::EnumerateParams& params) {
    return nodes_on_random_targets(
        [&](const match::Pattern& pattern, const match::Target& target) {
            return match::enumerate_subgraphs(pattern, target, params);
        },
        12, 50);
}

}  // namespace

TEST(bounds_prune_searches_for_the_best) {
    match::BestParams params;
    CHECK_WORK(nodes_for(match::Objective::sum, params), 3662);
    CHECK_WORK(nodes_for(match::Objective::bottleneck, params), 4111);
    CHECK_WORK(nodes_for(match::Objective::bottleneck_sum, params), 4544);
    CHECK_WORK(nodes_for(match::Objective::sum, params, 40), 4267);
    CHECK_WORK(nodes_by_link_counts(33, 100), 6084);
    CHECK_WORK(nodes_by_link_counts(5, 100), 7304);
    CHECK_WORK(nodes_by_link_counts(5, 30), 5362);
    CHECK_WORK(nodes_by_link_counts(1, 50), 7092);
    CHECK_WORK(nodes_by_link_counts(0, 100, 1), 9776);
    CHECK_WORK(nodes_by_link_counts(0, 50, 2), 5067);
    params.min_weight = 4;
    CHECK_WORK(nodes_for(match::Objective::sum, params), 3662);
    params.min_weight = 0;
    const Vertices required{3, 9};
    params.required = required;
    CHECK_WORK(nodes_for(match::Objective::sum, params), 6379);
    CHECK_WORK(nodes_for(match::Objective::bottleneck, params), 3992);
}

TEST(local_search_and_symmetries_save_work) {
    match::BestParams alone;
    alone.polish_after = alone.symmetry_after = match::kNoLimit;
    CHECK_WORK(nodes_for(match::Objective::sum, alone), 3662);
    match::BestParams at_once;
    at_once.polish_after = at_once.symmetry_after = 0;
    const match::Target target(machines(6));
    for (const auto& [params, sum, bottleneck] :
         {std::tuple{alone, 8571, 9089}, {match::BestParams{}, 2763, 2783}, {at_once, 2369, 2773}}) {
        std::uint64_t nodes[2] = {0, 0};
        for (const Graph& pattern : patterns()) {
            const match::Pattern p(pattern);
            nodes[0] +=
                match::best_subgraph(p, target, first_vertices(24), match::Objective::sum, params).nodes;
            nodes[1] +=
                match::best_subgraph(p, target, first_vertices(24), match::Objective::bottleneck_sum, params)
                    .nodes;
        }
        CHECK_WORK(nodes[0], sum);
        CHECK_WORK(nodes[1], bottleneck);
    }
}

TEST(bounds_by_machines_prune_searches_on_busy_clusters) {
    const match::Target target(measured_machines(8));
    const Vertices free = part_of(64, 50);
    const auto nodes = [&](const Graph& pattern, match::Objective objective, double tolerance) {
        match::BestParams params;
        params.tolerance = tolerance;
        params.stop.max_nodes = 1'000'000;
        const auto found = match::best_subgraph(match::Pattern(pattern), target, free, objective, params);
        CHECK(found.bound <= found.score * (1 + tolerance + 1e-12));
        return found.nodes;
    };
    using match::Objective;
    CHECK_WORK(nodes(ring(16), Objective::sum, 0.03), 713);
    CHECK_WORK(nodes(grid(2, 5), Objective::sum, 0.03), 520);
    CHECK_WORK(nodes(tree(15), Objective::sum, 0.1), 661);
    CHECK_WORK(nodes(clique(12), Objective::sum, 0.03), 781);
    CHECK_WORK(nodes(ring(8), Objective::sum, 1e-9), 540);
    CHECK_WORK(nodes(ring(16), Objective::bottleneck, 1e-9), 4912);
    CHECK_WORK(nodes(tree(15), Objective::bottleneck, 1e-9), 1880);
    CHECK_WORK(nodes(clique(8), Objective::bottleneck, 1e-9), 464);
}

// A torus of 8 by 8, of which a part is free: links of 50, and 12 through the hosts.
Graph torus() {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < 64; ++u) {
        for (std::int32_t v = u + 1; v < 64; ++v) {
            const std::int32_t rows = std::min((v - u + u % 8 - v % 8) / 8, 8 - (v - u + u % 8 - v % 8) / 8);
            const std::int32_t columns = std::min(std::abs(u % 8 - v % 8), 8 - std::abs(u % 8 - v % 8));
            edges.push_back({u, v, rows + columns == 1 ? 50.0 : 12.0});
        }
    }
    return {64, edges};
}

match::BestResult best_sum(const Graph& pattern, const match::Target& target, const Vertices& free) {
    match::BestParams params;
    params.stop.max_nodes = 30'000;
    return match::best_subgraph(match::Pattern(pattern), target, free, match::Objective::sum, params);
}

// By degrees and components the bounds are 944, 2,542 and 1,200.
TEST(the_most_links_among_a_few_vertices_bound_sums_on_a_torus) {
    const match::Target target(torus());
    CHECK_COST(best_sum(clique(8), target, part_of(64, 70)).bound, 716);
    CHECK_COST(best_sum(clique(16), target, part_of(64, 70)).bound, 2276);
    CHECK_COST(best_sum(grid(4, 4), target, part_of(64, 70)).bound, 1124);
}

// By degrees and sizes alone the bounds are 570.6, 1,179.7 and 1,294.2.
TEST(the_pieces_that_trees_fall_into_bound_their_sums) {
    const match::Target four(measured_machines(4));
    const match::Target eight(measured_machines(8));
    CHECK_COST(best_sum(tree(15), four, part_of(32, 70)).bound, 541.5);
    CHECK_COST(best_sum(tree(31), eight, part_of(64, 50)).bound, 1127.4);
    CHECK_COST(best_sum(tree(31), eight, part_of(64, 90)).bound, 1244.6);
}

// Two whole machines of different racks, and five GPUs of each other: that no more than two machines are as
// good is proven by the edges that more would have between them.
TEST(pieces_prove_that_more_machines_are_worse) {
    Vertices free;
    for (std::int32_t v = 0; v < 64; ++v) {
        if (v / 8 % 4 == 0 || v % 8 < 5) free.push_back(v);
    }
    const auto found = best_sum(tree(16), match::Target(linked_machines(8)), free);
    CHECK(found.optimal);
    CHECK_EQ(found.score, 603.0);
}

// Islands hold no more links than a forest has, and one for each of their cycles.
TEST(cycles_of_components_bound_what_falls_on_them) {
    const match::Target target(torus(16, 16));
    const Vertices free = part_of(256, 30);
    const auto clique_of_twelve = best_sum(clique(12), target, free);
    const auto mesh = best_sum(grid(3, 4), target, free);
    CHECK(clique_of_twelve.optimal && mesh.optimal);
    CHECK_WORK(clique_of_twelve.nodes, 4091);
    CHECK_WORK(mesh.nodes, 13344);
}

// Local search alone ends at 858 and 566.7.
TEST(annealing_and_many_starts_find_better_mappings) {
    CHECK_BOUND(best_sum(grid(4, 4), match::Target(torus(16, 16)), part_of(256, 40)).score, 896);
    CHECK_BOUND(best_sum(tree(15), match::Target(measured_machines(4)), part_of(32, 90)).score, 611.3);
}

TEST(bounds_prune_searches_for_the_best_remainder) {
    const auto nodes = [](const match::RemainderParams& params) {
        return nodes_on_random_targets(
            [&](const match::Pattern& pattern, const match::Target& target) {
                return match::best_remainder(pattern, target, first_vertices(12), params);
            },
            14, 80);
    };
    CHECK_WORK(nodes({}), 5080);
    const Vertices required{2, 5};
    const Vertices kept{12, 13};
    CHECK_WORK(nodes({.required = required}), 2461);
    CHECK_WORK(nodes({.kept = kept}), 4164);
    const match::Target target(machines(5));
    std::uint64_t symmetric = 0;
    for (const Graph& pattern : patterns())
        symmetric += match::best_remainder(match::Pattern(pattern), target, first_vertices(20), {}).nodes;
    CHECK_WORK(symmetric, 10730);
}

TEST(counting_visits_no_more_than_it_must) {
    CHECK_WORK(nodes_to_count(counting(match::Distinct::mappings)), 9179);
    CHECK_WORK(nodes_to_count(counting(match::Distinct::images)), 9179);
    CHECK_WORK(nodes_to_count(counting(match::Distinct::vertex_sets)), 183834);
    CHECK_WORK(nodes_to_count(counting(match::Distinct::images, true)), 3389);
    CHECK_WORK(nodes_to_enumerate(counting(match::Distinct::mappings)), 34608);
    CHECK_WORK(nodes_to_enumerate(counting(match::Distinct::images)), 18358);
    CHECK_WORK(nodes_to_enumerate(counting(match::Distinct::vertex_sets)), 183834);
    CHECK_WORK(nodes_to_enumerate(counting(match::Distinct::mappings, true)), 8162);
}

TEST(degrees_and_distances_prune_counts_in_a_wide_target) {
    const match::Target target(grid(8, 8));
    const auto nodes = [&](const Graph& pattern) {
        return match::count_subgraphs(match::Pattern(pattern), target, {}).nodes;
    };
    CHECK_WORK(nodes(ring(12)), 50895);
    CHECK_WORK(nodes(star(5)), 392);
    CHECK_WORK(nodes(grid(3, 4)), 1846);
}

TEST(a_limit_ends_the_search_for_sets_of_vertices) {
    auto params = counting(match::Distinct::vertex_sets);
    params.limit = 5;
    CHECK_WORK(nodes_to_count(params), 10501);
}

// Steps for the rows of a full graph outweigh the nodes.
TEST(rows_count_as_work) {
    const auto found = match::enumerate_subgraphs(match::Pattern(ring(3)), match::Target(clique(100)),
                                                  {.distinct = match::Distinct::images});
    CHECK(found.count == 161700);
    CHECK_WORK(found.nodes, 1894);
}

// Wherever a search is stopped, what it claims is true: an optimal score, and ties broken to the end.
TEST(a_search_stopped_at_any_node_claims_nothing_false) {
    Random random(3);
    for (std::int32_t round = 0; round < 15; ++round) {
        const match::Target target(random_graph(random, 9, 80, 1 + round % 3));
        const match::Pattern pattern(patterns()[std::size_t(round % 5)]);
        for (const auto objective : {match::Objective::sum, match::Objective::bottleneck}) {
            const auto whole = match::best_subgraph(pattern, target, first_vertices(9), objective, {});
            for (std::uint64_t limit = 1; limit <= whole.nodes; ++limit) {
                match::BestParams params;
                params.stop.max_nodes = limit;
                const auto early =
                    match::best_subgraph(pattern, target, first_vertices(9), objective, params);
                CHECK(!early.found || early.bound >= whole.score);
                CHECK(!early.optimal || early.score == whole.score);
                CHECK(!early.complete || early.vertices == whole.vertices);
            }
        }
        const auto whole = match::best_remainder(pattern, target, first_vertices(9), {});
        for (std::uint64_t limit = 1; limit <= whole.nodes; ++limit) {
            match::RemainderParams params;
            params.stop.max_nodes = limit;
            const auto early = match::best_remainder(pattern, target, first_vertices(9), params);
            CHECK(!early.optimal || early.vertices == whole.vertices);
        }
    }
}
