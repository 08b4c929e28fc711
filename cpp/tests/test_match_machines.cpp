// The best embedding on clusters of small machines, of which a part is free, against all mappings.
#include <algorithm>
#include <utility>
#include <vector>

#include "check.hpp"
#include "oracles/match_oracle.hpp"
#include "topoplace/match.hpp"
#include "topoplace/random.hpp"

using topoplace::Edge;
using topoplace::Graph;
using topoplace::Random;
namespace match = topoplace::match;

namespace {

using Vertices = std::vector<std::int32_t>;
using Pairs = std::vector<std::pair<std::int32_t, std::int32_t>>;

Graph of_pairs(std::int32_t size, const Pairs& pairs) {
    std::vector<Edge> edges;
    for (const auto& [u, v] : pairs) edges.push_back({u, v, 1});
    return {size, edges};
}

std::vector<Graph> patterns() {
    return {of_pairs(4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}),
            of_pairs(4, {{0, 1}, {2, 3}}),
            of_pairs(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}),
            of_pairs(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}),
            of_pairs(5, {{0, 1}, {0, 2}, {1, 3}, {1, 4}}),
            of_pairs(5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}})};
}

// Machines of two to four vertices in two racks. Measured weights all differ; some pairs have no link.
Graph cluster(Random& rng, std::int32_t num_vertices) {
    std::vector<std::int32_t> machine_of;
    for (std::int32_t machine = 0; std::ssize(machine_of) < num_vertices; ++machine)
        machine_of.insert(machine_of.end(), static_cast<std::size_t>(2 + rng.below(3)), machine);
    const bool is_measured = rng.below(3) == 0;
    const std::int32_t missing = rng.below(2) == 0 ? 0 : 8;  // one in eight pairs has no link, or none
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < num_vertices; ++u) {
        for (std::int32_t v = u + 1; v < num_vertices; ++v) {
            const std::int32_t a = machine_of[static_cast<std::size_t>(u)];
            const std::int32_t b = machine_of[static_cast<std::size_t>(v)];
            const double inside = rng.below(2) == 0 ? 50.0 : 25.0;
            const double weight = a == b ? inside : a % 2 == b % 2 ? 6.0 : 3.0;
            if (missing > 0 && rng.below(missing) == 0) continue;
            edges.push_back({u, v, is_measured ? weight * (1 + 0.001 * rng.below(60)) : weight});
        }
    }
    return {num_vertices, edges};
}

Vertices free_of(Random& rng, std::int32_t num_vertices) {
    Vertices free;
    for (std::int32_t v = 0; v < num_vertices; ++v) {
        if (rng.below(4) > 0) free.push_back(v);
    }
    return free;
}

double value(const Graph& pattern, const Graph& target, const Vertices& mapping, match::Objective objective) {
    double sum = 0;
    double least = 1e9;
    for (std::int32_t u = 0; u < pattern.num_vertices(); ++u) {
        for (const std::int32_t v : pattern.neighbors(u)) {
            const double weight =
                target.weight(mapping[static_cast<std::size_t>(u)], mapping[static_cast<std::size_t>(v)]);
            if (u < v) sum += weight;
            least = std::min(least, weight);
        }
    }
    return objective == match::Objective::sum ? sum : least;
}

// The largest value of all mappings onto free vertices; below 0 where there is none.
double largest(const Graph& pattern, const Graph& target, const Vertices& free, match::Objective objective) {
    double best = -1;
    for (const Vertices& mapping : oracle::mappings(pattern, target)) {
        const bool is_free = std::all_of(mapping.begin(), mapping.end(), [&](std::int32_t v) {
            return std::binary_search(free.begin(), free.end(), v);
        });
        if (is_free) best = std::max(best, value(pattern, target, mapping, objective));
    }
    return best;
}

// Local search, starts on a few machines and symmetries come in after this number of nodes.
match::BestParams helped_after(std::uint64_t nodes) {
    match::BestParams params;
    params.polish_after = params.symmetry_after = nodes;
    return params;
}

}  // namespace

TEST(jobs_on_a_few_machines_against_all_mappings) {
    Random rng(5);
    const match::BestParams at_once = helped_after(0);
    const match::BestParams never = helped_after(std::uint64_t{1} << 62);
    for (int round = 0; round < 40; ++round) {
        const std::int32_t size = 8 + rng.below(3);
        const Graph graph = cluster(rng, size);
        const Vertices free = free_of(rng, size);
        const match::Target target(graph);
        for (const Graph& pattern : patterns()) {
            const match::Pattern prepared(pattern);
            for (const auto objective : {match::Objective::sum, match::Objective::bottleneck}) {
                const auto found = match::best_subgraph(prepared, target, free, objective, at_once);
                const auto plain = match::best_subgraph(prepared, target, free, objective, never);
                const double best = largest(pattern, graph, free, objective);
                CHECK(found.optimal && plain.optimal);
                CHECK_EQ(found.found, best >= 0);
                CHECK(found.vertices == plain.vertices);
                if (!found.found) continue;
                CHECK(std::abs(found.score - best) <= 1e-9 * best);
                CHECK(std::abs(value(pattern, graph, found.vertices, objective) - best) <= 1e-9 * best);
            }
        }
    }
}

// The same answer whether or not searches on a few machines come first, where all mappings are too many.
TEST(searches_on_a_few_machines_change_no_answer) {
    Random rng(9);
    const match::BestParams at_once = helped_after(0);
    const match::BestParams never = helped_after(std::uint64_t{1} << 62);
    for (int round = 0; round < 12; ++round) {
        const Graph graph = cluster(rng, 18);
        const Vertices free = free_of(rng, 18);
        const match::Target target(graph);
        for (const Graph& pattern : patterns()) {
            const match::Pattern prepared(pattern);
            for (const auto objective :
                 {match::Objective::sum, match::Objective::bottleneck, match::Objective::bottleneck_sum}) {
                const auto found = match::best_subgraph(prepared, target, free, objective, at_once);
                const auto plain = match::best_subgraph(prepared, target, free, objective, never);
                CHECK(found.optimal && plain.optimal);
                CHECK(found.vertices == plain.vertices);
                CHECK_EQ(found.score, plain.score);
            }
        }
    }
}
