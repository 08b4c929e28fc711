// How graphs are built: from edges, from a matrix, and what is refused.
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/random.hpp"

using topoplace::Edge;
using topoplace::Graph;

namespace {

std::string refusal(std::int32_t num_vertices, const std::vector<Edge>& edges) {
    topoplace::Fault fault;
    CHECK_EQ(Graph::of_edges(num_vertices, edges, {}, fault).has_value(), !fault);
    return fault.value_or("");
}

bool is_refused(std::int32_t num_vertices, const std::vector<double>& matrix) {
    topoplace::Fault fault;
    CHECK_EQ(Graph::of_matrix(num_vertices, matrix, {}, fault).has_value(), !fault);
    return fault.has_value();
}

}  // namespace

TEST(a_bad_edge_is_named) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    CHECK_EQ(refusal(-1, {}), "num_vertices = -1 is negative");
    CHECK_EQ(refusal(2, {{0, 1, 1}, {1, 2, 1}}), "edges[1] = (1, 2, 1.000000): vertices must be in 0..1");
    CHECK_EQ(refusal(2, {{-1, 1, 1}}), "edges[0] = (-1, 1, 1.000000): vertices must be in 0..1");
    CHECK_EQ(refusal(2, {{1, 1, 1}}), "edges[0] = (1, 1, 1.000000) is a loop");
    for (const double weight : {0.0, -1.0, kInfinity, std::numeric_limits<double>::quiet_NaN()})
        CHECK(refusal(2, {{0, 1, weight}}).ends_with("the weight must be positive and finite"));
    CHECK_EQ(refusal(3, {{2, 1, 1}, {0, 1, 1}, {1, 2, 3}}), "edge (1, 2) is listed twice");
}

// Larger than the blocks in which the matrix is compared with its transpose.
TEST(a_matrix_gives_the_graph_of_its_edges) {
    constexpr std::int32_t kSize = 70;
    topoplace::Random random(1);
    std::vector<Edge> edges;
    std::vector<double> matrix(kSize * kSize);
    for (std::int32_t u = 0; u < kSize; ++u) {
        for (std::int32_t v = u + 1; v < kSize; ++v) {
            const double weight = random.below(4);
            if (weight > 0) edges.push_back({v, u, weight});
            for (const std::int32_t place : {u * kSize + v, v * kSize + u})
                matrix[static_cast<std::size_t>(place)] = weight;
        }
    }
    const Graph given(kSize, edges);
    topoplace::Fault fault;
    const Graph made = *Graph::of_matrix(kSize, matrix, {}, fault);
    CHECK_EQ(made.num_edges(), std::ssize(edges));
    for (std::int32_t u = 0; u < kSize; ++u) {
        CHECK_EQ(made.degree(u), given.degree(u));
        for (std::int32_t v = 0; v < kSize; ++v) CHECK_EQ(made.weight(u, v), given.weight(u, v));
    }
}

TEST(a_matrix_that_is_no_graph_is_refused) {
    const double no_number = std::numeric_limits<double>::quiet_NaN();
    CHECK(!is_refused(2, {0, 1, 1, 0}));
    CHECK(is_refused(2, {0, 1, 2, 0}));
    CHECK(is_refused(2, {1, 0, 0, 0}));
    CHECK(is_refused(2, {0, -1, -1, 0}));
    CHECK(is_refused(2, {0, no_number, no_number, 0}));
    std::vector<double> large(70 * 70);
    CHECK(!is_refused(70, large));
    large[69 * 70 + 3] = 1;  // in another block than its transpose
    CHECK(is_refused(70, large));
}
