// Cliques on sparse links, and the best of all sets of vertices.
#include <bit>
#include <cmath>

#include "check.hpp"
#include "first_vertices.hpp"
#include "oracles/machine_cases.hpp"

using namespace machine_cases;

namespace {

constexpr double kLink = 50;
constexpr double kHost = 12;
constexpr std::uint64_t kFewNodes = 60;
constexpr std::uint64_t kAllNodes = 1U << 24;

Graph clique(std::int32_t size) {
    Pairs pairs;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) pairs.emplace_back(u, v);
    }
    return of_pairs(size, pairs);
}

using Rows = std::vector<std::uint32_t>;

void join(Rows& rows, std::int32_t u, std::int32_t v) {
    rows[static_cast<std::size_t>(u)] |= 1U << v;
    rows[static_cast<std::size_t>(v)] |= 1U << u;
}

// Joins each of four vertices to the others.
void join_four(Rows& rows, std::int32_t first) {
    for (std::int32_t u = first; u < first + 4; ++u) {
        for (std::int32_t v = u + 1; v < first + 4; ++v) join(rows, u, v);
    }
}

// Links of a graph of up to 16 vertices: a torus of which a part is busy, a tree and some more, triangles
// that share vertices, or two cliques at the ends of a path, one of them perhaps apart from it.
Rows links(Random& rng) {
    const std::int32_t size = 10 + rng.below(7);
    Rows rows(static_cast<std::size_t>(size), 0);
    const std::int32_t kind = rng.below(4);
    const std::int32_t columns = 3 + rng.below(2);
    const std::int32_t missing = 1 + rng.below(6);
    for (std::int32_t v = 1; v < size; ++v) {
        if (kind == 0) {
            if (v % columns != 0 && rng.below(6) != missing) join(rows, v - 1, v);
            if (v >= columns && rng.below(6) != missing) join(rows, v - columns, v);
        } else if (kind == 1) {
            join(rows, rng.below(v), v);
            if (const std::int32_t u = rng.below(size); u != v && rng.below(2) == 0) join(rows, u, v);
        } else if (kind == 2 && v >= 2) {
            const std::int32_t u = rng.below(v - 1);
            join(rows, u, v);
            join(rows, u + 1, v);
            if (rng.below(2) == 0) join(rows, u, u + 1);
        }
    }
    if (kind == 3) {
        for (std::int32_t v = 3 + rng.below(2); v + 4 < size; ++v) join(rows, v, v + 1);
        join_four(rows, 0);
        join_four(rows, size - 4);
    }
    return rows;
}

Graph linked(const Rows& rows) {
    std::vector<Edge> edges;
    const auto size = static_cast<std::int32_t>(rows.size());
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v)
            edges.push_back({u, v, (rows[static_cast<std::size_t>(u)] >> v) & 1 ? kLink : kHost});
    }
    return {size, edges};
}

// For each number of vertices, the most links among a set of that size.
std::vector<std::int32_t> most_links(const Rows& rows) {
    std::vector<std::int32_t> most(rows.size() + 1, 0);
    for (std::uint32_t set = 1; set >> rows.size() == 0; ++set) {
        std::int32_t ends = 0;
        for (std::uint32_t rest = set; rest != 0; rest &= rest - 1)
            ends += std::popcount(rows[static_cast<std::size_t>(std::countr_zero(rest))] & set);
        auto& its = most[static_cast<std::size_t>(std::popcount(set))];
        its = std::max(its, ends / 2);
    }
    return most;
}

// Each clique's size, the best set's lightest edge.
std::vector<double> best_bottlenecks(const Graph& graph) {
    const std::int32_t size = graph.num_vertices();
    std::vector<double> best(static_cast<std::size_t>(size) + 1, 0);
    for (std::uint32_t set = 1; set >> size == 0; ++set) {
        double lightest = 1e300;
        for (std::int32_t u = 0; u < size; ++u) {
            if (((set >> u) & 1) == 0) continue;
            const auto row = graph.neighbors(u);
            for (std::size_t i = 0; i < row.size(); ++i) {
                if ((set >> row[i]) & 1) lightest = std::min(lightest, graph.weights(u)[i]);
            }
        }
        auto& its = best[static_cast<std::size_t>(std::popcount(set))];
        its = std::max(its, lightest);
    }
    return best;
}

}  // namespace

TEST(the_best_sum_of_a_clique_has_the_most_links) {
    Random rng(41);
    for (int round = 0; round < check::rounds(60); ++round) {
        const Rows rows = links(rng);
        const auto most = most_links(rows);
        const match::Target target(linked(rows));
        const auto size = static_cast<std::int32_t>(rows.size());
        for (std::int32_t count = 3; count <= size; ++count) {
            const double expected =
                kHost * count * (count - 1) / 2 + (kLink - kHost) * most[static_cast<std::size_t>(count)];
            const match::Pattern pattern(clique(count));
            for (const std::uint64_t nodes : {kFewNodes, kAllNodes}) {
                match::BestParams params;
                params.polish_after = params.symmetry_after = 0;
                params.stop.max_nodes = nodes;
                const auto found = match::best_subgraph(pattern, target, first_vertices(size),
                                                        match::Objective::sum, params);
                CHECK(found.found && found.bound >= expected - 1e-6 && found.score <= expected + 1e-6);
                CHECK(!found.optimal || std::abs(found.score - expected) < 1e-6);
                CHECK(nodes == kFewNodes || found.optimal);
            }
        }
    }
}

TEST(the_best_bottleneck_of_a_clique_is_that_of_all_sets) {
    Random rng(42);
    for (int round = 0; round < 40; ++round) {
        const std::int32_t size = 6 + rng.below(6);
        const std::int32_t kinds = 2 + rng.below(40);
        std::vector<Edge> edges;
        for (std::int32_t u = 0; u < size; ++u) {
            for (std::int32_t v = u + 1; v < size; ++v) edges.push_back({u, v, 1.0 + rng.below(kinds)});
        }
        const Graph graph(size, edges);
        const match::Target target(graph);
        const auto best = best_bottlenecks(graph);
        for (std::int32_t count = 2; count <= size; ++count) {
            const auto found = match::best_subgraph(match::Pattern(clique(count)), target,
                                                    first_vertices(size), match::Objective::bottleneck, {});
            CHECK(found.optimal && found.score == best[static_cast<std::size_t>(count)]);
        }
    }
}
