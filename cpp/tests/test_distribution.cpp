// Distribution against brute force on small cases, and against its bound and its verifier on larger ones.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "topoplace/distribution.hpp"
#include "topoplace/random.hpp"

using topoplace::Edge;
using topoplace::Graph;
namespace mapping = topoplace::mapping;

namespace {

struct Case {
    Graph graph;
    std::vector<std::int32_t> room;
    std::vector<double> distance;

    mapping::DistributeParams params() const {
        mapping::DistributeParams params;
        params.room = room;
        params.distance = distance;
        return params;
    }
};

Graph random_graph(topoplace::Random& random, std::int32_t size, std::int32_t chance) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) {
            if (random.below(chance) == 0) edges.push_back({u, v, 0.5 * (1 + random.below(4))});
        }
    }
    return {size, edges};
}

Case random_case(topoplace::Random& random, std::int32_t tasks, std::int32_t blocks) {
    Case c{random_graph(random, tasks, 1 + random.below(3)), {}, {}};
    c.distance.assign(std::size_t(blocks * blocks), 0);
    for (std::int32_t i = 0; i < blocks; ++i) {
        c.room.push_back(random.below(4));
        for (std::int32_t j = 0; j <= i; ++j) {
            const double apart = 0.5 * (random.below(3) + (i == j ? 0 : random.below(6)));
            c.distance[std::size_t(i * blocks + j)] = c.distance[std::size_t(j * blocks + i)] = apart;
        }
    }
    return c;
}

double cost_of(const Case& c, const std::vector<std::int32_t>& block_of) {
    double sum = 0;
    for (std::int32_t a = 0; a < c.graph.num_vertices(); ++a) {
        for (std::int32_t b = 0; b < a; ++b) {
            const auto i = std::size_t(block_of[std::size_t(a)]);
            sum +=
                c.graph.weight(a, b) * c.distance[i * c.room.size() + std::size_t(block_of[std::size_t(b)])];
        }
    }
    return sum;
}

// Infinite where there is too little room.
double least_cost(const Case& c, std::vector<std::int32_t>& left, std::vector<std::int32_t>& block_of) {
    if (std::ssize(block_of) == c.graph.num_vertices()) return cost_of(c, block_of);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t block = 0; block < left.size(); ++block) {
        if (left[block] == 0) continue;
        --left[block];
        block_of.push_back(static_cast<std::int32_t>(block));
        least = std::min(least, least_cost(c, left, block_of));
        block_of.pop_back();
        ++left[block];
    }
    return least;
}

std::string refusal(const Case& c) {
    return mapping::check(mapping::Source(c.graph), c.params()).value_or("");
}

// Four tasks to a block, four blocks to a rack.
Case racks(Graph graph) {
    const std::int32_t blocks = graph.num_vertices() / 4;
    Case c{std::move(graph), std::vector<std::int32_t>(std::size_t(blocks), 4), {}};
    for (std::int32_t i = 0; i < blocks; ++i) {
        for (std::int32_t j = 0; j < blocks; ++j)
            c.distance.push_back(i == j ? 1 : i / 4 == j / 4 ? 50 : 100);
    }
    return c;
}

Graph ring(std::int32_t size, std::int32_t step) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) edges.push_back({u * step % size, (u + 1) * step % size, 1});
    return {size, edges};
}

}  // namespace

TEST(bounds_hold_and_proofs_are_right) {
    topoplace::Random random(1);
    int optimal = 0;
    int best = 0;
    int found_any = 0;
    for (std::int32_t round = 0; round < 400; ++round) {
        const Case c = random_case(random, 1 + round % 7, 1 + round % 4);
        auto left = c.room;
        std::vector<std::int32_t> block_of;
        const double least = least_cost(c, left, block_of);
        const auto found = mapping::distribute(mapping::Source(c.graph), c.params());
        CHECK(found.found == (least < std::numeric_limits<double>::infinity()));
        if (!found.found) continue;
        ++found_any;
        CHECK(!mapping::verify_distribution(c.graph, c.params(), found.block_of, found.cost));
        CHECK(found.bound <= least + 1e-9);
        CHECK(found.cost >= least - 1e-9);
        CHECK(!found.optimal || found.cost <= least + 1e-9);
        optimal += found.optimal ? 1 : 0;
        best += found.cost <= least + 1e-9 ? 1 : 0;
    }
    CHECK(10 * optimal > 4 * found_any);  // the bound is of use
    CHECK(10 * best > 8 * found_any);
}

TEST(rings_are_proven_whatever_their_numbers) {
    for (const std::int32_t step : {1, 7, 27}) {
        const Case c = racks(ring(64, step));
        const auto found = mapping::distribute(mapping::Source(c.graph), c.params());
        CHECK(found.optimal);
        CHECK(found.cost == 48 + 12 * 50 + 4 * 100);
    }
}

TEST(one_answer_for_one_seed) {
    topoplace::Random random(3);
    const Case c = racks(random_graph(random, 96, 12));
    const mapping::Source source(c.graph);
    const auto found = mapping::distribute(source, c.params());
    CHECK(found.complete && found.exchanges > 0);
    CHECK(found.block_of == mapping::distribute(source, c.params()).block_of);
    CHECK(!mapping::verify_distribution(c.graph, c.params(), found.block_of, found.cost));
}

TEST(a_stopped_search_has_an_answer_and_a_bound) {
    topoplace::Random random(4);
    const Case c = racks(random_graph(random, 96, 4));
    const mapping::Source source(c.graph);
    auto params = c.params();
    params.stop.max_nodes = 1;
    const auto found = mapping::distribute(source, params);
    CHECK(found.found && !found.complete);
    CHECK(!mapping::verify_distribution(c.graph, params, found.block_of, found.cost));
    CHECK(found.bound <= mapping::distribute(source, c.params()).cost);
    params.stop = topoplace::StopCondition::in(0);
    CHECK(!mapping::distribute(source, params).complete);
}

TEST(nothing_needs_no_room) {
    const Case nothing{Graph(0, {}), {}, {}};
    const auto found = mapping::distribute(mapping::Source(nothing.graph), nothing.params());
    CHECK(found.found && found.optimal && found.block_of.empty());
    const Case alone{Graph(1, {}), {}, {}};
    CHECK(!mapping::distribute(mapping::Source(alone.graph), alone.params()).found);
}

TEST(faults_are_found) {
    const Case c = racks(ring(16, 1));
    std::vector<std::int32_t> block_of(16, 0);
    CHECK(mapping::verify_distribution(c.graph, c.params(), block_of, 16).has_value());
    for (std::size_t task = 0; task < 16; ++task) block_of[task] = static_cast<std::int32_t>(task / 4);
    CHECK(!mapping::verify_distribution(c.graph, c.params(), block_of, 12 + 4 * 50));
    CHECK(mapping::verify_distribution(c.graph, c.params(), block_of, 200).has_value());
    block_of[3] = 4;
    CHECK(mapping::verify_distribution(c.graph, c.params(), block_of, 212).has_value());
    block_of.pop_back();
    CHECK(mapping::verify_distribution(c.graph, c.params(), block_of, 212).has_value());
}

TEST(wrong_arguments_are_named) {
    CHECK(refusal({Graph(1, {}), {-1}, {0}}) == "room[0] = -1 is not at least 0");
    CHECK(refusal({Graph(1, {}), {1}, {}}) == "distance does not have blocks x blocks entries");
    CHECK(refusal({Graph(1, {}), {1, 1}, {0, 1, 2, 0}}) ==
          "distance[1, 0] = 2 is not in 0..1e100, or not equal to its mirror image");
    CHECK(refusal({ring(3, 1), {3}, {1e101}}).starts_with("distance[0, 0] = 1e+101"));
}
