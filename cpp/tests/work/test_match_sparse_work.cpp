// Nodes that searches visit where the target is lists of neighbours: bounds, symmetries, the ball around the
// first image.
#include <algorithm>

#include "first_vertices.hpp"
#include "topoplace/match.hpp"
#include "work/work.hpp"

namespace match = topoplace::match;
using namespace work;

namespace {

constexpr std::int32_t kSize = 1000;

// Three edges a vertex, with weights of `kinds` kinds.
match::Target target(std::int32_t kinds) {
    Random random(1);
    std::vector<Edge> edges;
    std::vector<std::int32_t> seen;
    while (edges.size() < 3 * kSize) {
        const std::int32_t u = random.below(kSize), v = random.below(kSize);
        const std::int32_t pair = std::min(u, v) * kSize + std::max(u, v);
        if (u == v || std::find(seen.begin(), seen.end(), pair) != seen.end()) continue;
        seen.push_back(pair);
        edges.push_back({u, v, 1.0 + random.below(kinds)});
    }
    return match::Target(Graph(kSize, edges));
}

struct Nodes {
    std::uint64_t sum, bottleneck, count;
};

Nodes nodes_for(const Graph& pattern, std::int32_t kinds) {
    const match::Target t = target(kinds);
    CHECK(t.is_sparse());
    const match::Pattern p(pattern);
    const auto best = [&](match::Objective objective) {
        return match::best_subgraph(p, t, first_vertices(kSize), objective, {}).nodes;
    };
    const match::EnumerateParams images{.distinct = match::Distinct::images};
    return {best(match::Objective::sum), best(match::Objective::bottleneck),
            match::count_subgraphs(p, t, images).nodes};
}

void check_work(const Graph& pattern, std::int32_t kinds, const Nodes& figures) {
    const Nodes nodes = nodes_for(pattern, kinds);
    CHECK_WORK(nodes.sum, double(figures.sum));
    CHECK_WORK(nodes.bottleneck, double(figures.bottleneck));
    CHECK_WORK(nodes.count, double(figures.count));
}

}  // namespace

TEST(many_weights_prune_a_sparse_search) {
    check_work(ring(6), 1000000, {2072, 349, 68024});
    check_work(grid(2, 3), 1000000, {123464, 140650, 98757});
    check_work(star(6), 1000000, {339, 211, 57960});
}

TEST(few_weights_prune_a_sparse_search) {
    check_work(ring(6), 4, {799, 335, 68024});
    check_work(grid(1, 5), 4, {4429, 69, 42824});
}

TEST(equal_weights_leave_the_order_of_vertices) {
    check_work(ring(6), 1, {1496, 1504, 68024});
    check_work(grid(2, 3), 1, {17856, 18272, 98757});
}
