// What only C++ can set: the effort after which a search turns to local search and to the target's
// symmetries.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "check.hpp"
#include "first_vertices.hpp"
#include "topoplace/match.hpp"

using topoplace::Edge;
using topoplace::Graph;
namespace match = topoplace::match;

namespace {

using Vertices = std::vector<std::int32_t>;

Graph complete(std::int32_t size, double weight = 1) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) edges.push_back({u, v, weight});
    }
    return {size, edges};
}

Graph ring(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) edges.push_back({u, (u + 1) % size, 1});
    return {size, edges};
}

// Vertices that differ in one bit weigh 3, all others 1: 384 automorphisms, one orbit.
Graph hypercube_of_sixteen() {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < 16; ++u) {
        for (std::int32_t v = u + 1; v < 16; ++v)
            edges.push_back({u, v, ((u ^ v) & ((u ^ v) - 1)) == 0 ? 3.0 : 1.0});
    }
    return {16, edges};
}

match::BestParams at_once() {
    match::BestParams params;
    params.polish_after = params.symmetry_after = 0;
    return params;
}

}  // namespace

TEST(effort_changes_the_work_and_never_the_answer) {
    const match::Target target(hypercube_of_sixteen());
    for (const std::int32_t size : {3, 5, 7, 9, 11, 13}) {
        const match::Pattern pattern(ring(size));
        match::BestParams never;
        never.polish_after = never.symmetry_after = std::uint64_t{1} << 62;
        const auto plain =
            match::best_subgraph(pattern, target, first_vertices(16), match::Objective::sum, never);
        const auto aided =
            match::best_subgraph(pattern, target, first_vertices(16), match::Objective::sum, at_once());
        CHECK(plain.optimal && aided.optimal);
        CHECK(plain.vertices == aided.vertices);
        CHECK_EQ(aided.score, plain.score);
        CHECK(aided.nodes <= plain.nodes);
    }
}

// Bounds count degrees up to 32 one by one.
TEST(a_star_of_34_takes_the_heaviest_edges_of_its_center) {
    constexpr std::int32_t kSize = 38, kTasks = 34;
    std::vector<Edge> edges, spokes;
    for (std::int32_t u = 0; u < kSize; ++u) {
        for (std::int32_t v = u + 1; v < kSize; ++v) edges.push_back({u, v, 1.0 + (u * 31 + v * 17) % 23});
    }
    for (std::int32_t u = 1; u < kTasks; ++u) spokes.push_back({0, u, 1});
    const Graph graph(kSize, edges);
    double best = 0;
    for (std::int32_t u = 0; u < kSize; ++u) {
        std::vector<double> weights(graph.weights(u).begin(), graph.weights(u).end());
        std::sort(weights.rbegin(), weights.rend());
        best = std::max(best, std::accumulate(weights.begin(), weights.begin() + kTasks - 1, 0.0));
    }
    const auto found = match::best_subgraph(match::Pattern(Graph(kTasks, spokes)), match::Target(graph),
                                            first_vertices(kSize), match::Objective::sum, {});
    CHECK(found.optimal);
    CHECK_EQ(found.score, best);
}

TEST(symmetry_of_the_weights_says_nothing_about_link_classes) {
    const match::Target target(complete(6));
    std::vector<std::uint8_t> classes(36, 1);
    classes[4 * 6 + 5] = classes[5 * 6 + 4] = 0;  // the one good pair
    const std::vector<double> scores{0, 1};       // of the count vectors (0, 1) and (1, 0)
    const match::LinkCountScore score(target, classes, 2, 1, scores);
    const match::Pattern pair(complete(2));
    match::BestParams params = at_once();
    params.polish_after = std::uint64_t{1} << 62;  // local search would find the pair all the same
    const auto best = match::best_subgraph(pair, target, first_vertices(6), score, params);
    CHECK(best.optimal);
    CHECK(best.vertices == (Vertices{4, 5}));
}

TEST(symmetry_keeps_to_the_free_vertices) {
    const match::Target target(hypercube_of_sixteen());
    const Vertices free{1, 2, 4, 7, 8, 11, 13, 14, 15};
    const match::Pattern pattern(ring(4));
    const auto plain = match::best_subgraph(pattern, target, free, match::Objective::sum, {});
    const auto aided = match::best_subgraph(pattern, target, free, match::Objective::sum, at_once());
    CHECK(plain.vertices == aided.vertices);
    CHECK_EQ(aided.score, plain.score);
}

TEST(a_deadline_that_has_passed_stops_a_search_within_a_stride) {
    const match::Target target(complete(40));
    match::EnumerateParams params;
    params.stop = topoplace::StopCondition::in(0);
    const auto counted = match::count_subgraphs(match::Pattern(ring(16)), target, params);
    CHECK(!counted.complete);
    CHECK(counted.nodes <= 2048);
}

TEST(counts_beyond_63_bits_saturate) {
    const match::Pattern lonely(Graph(28, {}));  // 435 images of 28! mappings each
    const match::Target target(complete(30));
    CHECK_EQ(match::count_subgraphs(lonely, target, {}).count, match::kNoLimit);
    match::EnumerateParams images;
    images.distinct = match::Distinct::images;
    CHECK_EQ(match::count_subgraphs(lonely, target, images).count, 435);
}

TEST(a_verifier_says_what_is_wrong) {
    const Graph path(3, std::vector<Edge>{{0, 1}, {1, 2}});
    const Graph square(4, std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}, {0, 3}});
    const auto fault = [&](const Vertices& images, bool induced = false) {
        return match::verify_embedding(path, square, images, induced).value_or("none");
    };
    CHECK_EQ(fault({0, 1, 2}), "none");
    CHECK_EQ(fault({0, 1}), "2 vertices are mapped; the pattern has 3");
    CHECK_EQ(fault({0, 1, 4}), "vertex 2 is mapped to 4; the target has 4 vertices");
    CHECK_EQ(fault({1, 0, 1}), "vertex 0 and vertex 2 are both mapped to 1");
    CHECK_EQ(fault({0, 2, 3}), "edge (0, 1) is mapped to (0, 2), which is no edge");
    const Graph triangle(3, std::vector<Edge>{{0, 1}, {1, 2}, {0, 2}});
    CHECK_EQ(match::verify_embedding(path, triangle, Vertices{0, 1, 2}, true).value_or("none"),
             "(0, 2) is no edge, but is mapped to the edge (0, 2)");
}

TEST(a_required_vertex_that_is_not_free_leaves_no_embedding) {
    const match::Pattern pattern(ring(3));
    const match::Target target(complete(6));
    const Vertices free{0, 1, 2, 3}, required{1, 5};
    match::BestParams params;
    params.required = required;
    for (const auto objective :
         {match::Objective::sum, match::Objective::bottleneck, match::Objective::bottleneck_sum}) {
        const auto found = match::best_subgraph(pattern, target, free, objective, params);
        CHECK(!found.found);
    }
    CHECK(!match::best_remainder(pattern, target, free, {.required = required}).found);
}

TEST(link_counts_that_cannot_be_tabulated_are_refused) {
    const auto refused = [](std::int32_t edges, std::int32_t classes) {
        return match::LinkCountScore::check(edges, classes).has_value();
    };
    CHECK(!refused(0, 1) && !refused(3, 3) && !refused(65535, 1));
    CHECK(refused(-1, 2) && refused(65536, 1) && refused(3, 0) && refused(3, 9) && refused(20000, 3));
}
