// Bounds and tolerances of the best embedding on small clusters, against all mappings.
#include <cmath>

#include "check.hpp"
#include "oracles/machine_cases.hpp"

using namespace machine_cases;

namespace {

constexpr auto kObjectives = {match::Objective::sum, match::Objective::bottleneck};

// All helps come in at once.
match::BestParams at_once() {
    match::BestParams params;
    params.polish_after = params.symmetry_after = 0;
    return params;
}

// Patterns of up to as many vertices as a whole machine and more.
std::vector<Graph> larger_patterns() {
    std::vector<Graph> all = patterns();
    all.push_back(of_pairs(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}}));
    all.push_back(of_pairs(6, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 5}}));
    all.push_back(of_pairs(6, {{0, 1}, {1, 2}, {3, 4}, {4, 5}, {0, 3}, {1, 4}, {2, 5}}));
    return all;
}

constexpr auto kLayouts = {match::Layout::dense, match::Layout::sparse};

struct Case {
    Graph pattern;
    Graph graph;
    Vertices free;
};

template <class Check>
void for_each_case(std::uint64_t seed, int rounds, Check&& check) {
    Random rng(seed);
    for (int round = 0; round < check::rounds(rounds, 12); ++round) {
        const std::int32_t size = 7 + rng.below(3);
        const Graph graph = cluster(rng, size);
        const Vertices free = free_of(rng, size);
        for (const Graph& pattern : larger_patterns()) {
            for (const auto layout : kLayouts) check(Case{pattern, graph, free}, layout);
        }
    }
}

bool about_at_least(double a, double b) { return a >= b - 1e-9 * std::abs(b); }

}  // namespace

TEST(a_search_that_ends_within_the_tolerance_is_as_near_as_it_says) {
    for_each_case(11, 12, [](const Case& one, match::Layout layout) {
        const match::Pattern pattern(one.pattern);
        const match::Target target(one.graph, layout);
        for (const auto objective : kObjectives) {
            const double best = largest(one.pattern, one.graph, one.free, objective);
            for (const double tolerance : {0.001, 0.03, 0.5, 1e300}) {
                match::BestParams params = at_once();
                params.tolerance = tolerance;
                const auto found = match::best_subgraph(pattern, target, one.free, objective, params);
                CHECK_EQ(found.found, best >= 0);
                if (!found.found) continue;
                CHECK(std::abs(value(one.pattern, one.graph, found.vertices, objective) - found.score) <=
                      1e-9 * best);
                CHECK(about_at_least(found.bound, best) && about_at_least(best, found.score));
                CHECK(about_at_least(found.score * (1 + tolerance), found.bound));
                CHECK(!found.complete && (!found.optimal || std::abs(found.score - best) <= 1e-9 * best));
                CHECK(!found.optimal || found.score == found.bound);
            }
        }
    });
}

TEST(a_bound_holds_wherever_the_search_stops) {
    for_each_case(12, 8, [](const Case& one, match::Layout layout) {
        const match::Pattern pattern(one.pattern);
        const match::Target target(one.graph, layout);
        for (const auto objective : kObjectives) {
            const double best = largest(one.pattern, one.graph, one.free, objective);
            for (std::uint64_t nodes = 1; nodes < 200; nodes = 2 * nodes + 1) {
                match::BestParams params = at_once();
                params.stop.max_nodes = nodes;
                const auto found = match::best_subgraph(pattern, target, one.free, objective, params);
                CHECK(!found.found ||
                      (about_at_least(found.bound, best) && about_at_least(best, found.score)));
                CHECK(!found.optimal || std::abs(std::max(found.score, -1.0) - best) <= 1e-9 * best ||
                      (!found.found && best < 0));
            }
        }
    });
}

TEST(in_a_complete_target_there_is_always_an_answer) {
    Random rng(13);
    for (int round = 0; round < check::rounds(60, 12); ++round) {
        const std::int32_t size = 12 + rng.below(8);
        std::vector<Edge> edges;
        for (std::int32_t u = 0; u < size; ++u) {
            for (std::int32_t v = u + 1; v < size; ++v) edges.push_back({u, v, 1.0 + rng.below(1000)});
        }
        const Graph graph(size, edges);
        Vertices free = free_of(rng, size);
        if (free.size() < 6) continue;
        const Vertices required{free[free.size() / 2]};
        for (const Graph& one : larger_patterns()) {
            const match::Pattern pattern(one);
            for (const auto objective :
                 {match::Objective::sum, match::Objective::bottleneck, match::Objective::bottleneck_sum}) {
                match::BestParams params;
                params.required = required;
                params.stop.max_nodes = 1;
                const auto plain = match::plain_subgraph(one, graph, free, objective, params);
                for (const auto layout : kLayouts) {
                    const match::Target target(graph, layout);
                    const auto found = match::best_subgraph(pattern, target, free, objective, params);
                    CHECK(found.found && found.bound >= found.score);
                    CHECK(!match::verify_embedding(one, graph, found.vertices));
                    CHECK(plain.found && !plain.optimal && plain.bound >= found.score);
                }
                CHECK(std::count(plain.vertices.begin(), plain.vertices.end(), required.front()) == 1);
            }
        }
    }
}

TEST(a_plain_answer_is_none_where_it_is_no_embedding) {
    const Graph path = of_pairs(4, {{0, 1}, {1, 2}, {2, 3}});
    const Graph target = of_pairs(5, {{0, 2}, {2, 4}, {4, 1}, {1, 3}});
    const Vertices free{0, 1, 2, 3, 4};
    CHECK(!match::plain_subgraph(path, target, free, match::Objective::sum, {}).found);
    CHECK(match::plain_subgraph(of_pairs(2, {}), target, free, match::Objective::sum, {}).found);
    const Vertices few{0, 1};
    CHECK(!match::plain_subgraph(path, path, few, match::Objective::sum, {}).found);
    CHECK(match::plain_subgraph(path, path, Vertices{3, 2, 1, 0}, match::Objective::sum, {}).score == 3);
    match::BestParams heavy;
    heavy.min_weight = 2;
    CHECK(!match::plain_subgraph(path, path, free, match::Objective::sum, heavy).found);
}
