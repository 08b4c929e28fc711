// Deadlines, by counted work: how much is done between two looks at the clock, and before a search whose time
// is over ends.
#include <chrono>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "first_vertices.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/match.hpp"
#include "topoplace/stop_condition.hpp"

using topoplace::Edge;
using topoplace::Graph;
using topoplace::StopCondition;
using topoplace::WorkMeter;
namespace match = topoplace::match;
namespace mapping = topoplace::mapping;

namespace {

StopCondition over() { return {.when = std::chrono::steady_clock::time_point::min()}; }

Graph complete(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) edges.push_back({u, v, 1.0 + (u * 7 + v * 13) % 97});
    }
    return {size, edges};
}

Graph ring(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) edges.push_back({u, (u + 1) % size, 1});
    return {size, edges};
}

}  // namespace

TEST(the_clock_is_read_by_nodes_and_by_steps) {
    WorkMeter nodes{StopCondition{}};
    for (std::uint64_t i = 0; i < 10 * WorkMeter::kNodesPerLook; ++i) CHECK(!nodes.visit());
    CHECK(nodes.looks() == 10);
    WorkMeter steps{StopCondition{}};
    for (std::uint64_t i = 0; i < 40; ++i) CHECK(!steps.spend(WorkMeter::kStepsPerLook / 4));
    CHECK(steps.looks() == 10);
    WorkMeter late{over()};
    CHECK(!late.spend(WorkMeter::kStepsPerLook - 1));
    CHECK(late.spend(1) && late.stopped());
}

TEST(dear_nodes_count_for_several_and_preparations_for_none) {
    WorkMeter meter{{.max_nodes = 10}};
    CHECK(!meter.pass_time(1000 * WorkMeter::kStepsPerNode));
    CHECK(!meter.visit() && meter.nodes() == 1);
    CHECK(!meter.spend(9 * WorkMeter::kStepsPerNode));
    CHECK(meter.nodes() == 9);
    CHECK(meter.spend(WorkMeter::kStepsPerNode) && meter.nodes() == 10);
}

TEST(spent_nodes_do_not_make_a_search_late) {
    WorkMeter spent{{.max_nodes = 1}};
    CHECK(spent.visit() && !spent.is_late_after(WorkMeter::kStepsPerLook));
    WorkMeter both{{.when = over().when, .max_nodes = 1}};
    CHECK(both.is_late_after(WorkMeter::kStepsPerLook) && both.stopped());
    WorkMeter asked{{.interrupted = [] { return true; }, .max_nodes = 1}};
    CHECK(asked.visit());
    while (!asked.is_late_after(WorkMeter::kStepsPerLook)) {
    }
}

TEST(a_preparation_ends_when_its_time_is_over) {
    WorkMeter meter{over()};
    CHECK(meter.pass_time(WorkMeter::kStepsPerLook));
    const Graph graph = complete(600);
    CHECK(!match::Target::make(graph, over()));
    CHECK(!match::Pattern::make(graph, over()));
    const match::Pattern pattern(ring(300));
    CHECK(!pattern.num_automorphisms(over()));
    CHECK(pattern.num_automorphisms() == 600);  // started over
}

TEST(a_graph_is_copied_without_its_rows) {
    const Graph graph = complete(40);
    const Graph copy = graph;
    CHECK(copy.neighbors(7).data() == graph.neighbors(7).data());
    CHECK(copy.weights(7).data() == graph.weights(7).data());
    CHECK(copy.num_vertices() == 40 && copy.num_edges() == graph.num_edges());
}

TEST(searches_end_after_few_dear_nodes) {
    const std::int32_t size = check::rounds(600);
    const match::Target target(complete(size));
    const match::Pattern pattern(ring(12));
    match::BestParams params;
    // Makes the plans.
    match::best_subgraph(pattern, target, first_vertices(20), match::Objective::sum, params);
    params.stop = over();
    const auto best =
        match::best_subgraph(pattern, target, first_vertices(size), match::Objective::sum, params);
    CHECK(!best.optimal);
    CHECK(best.nodes < 3 * WorkMeter::kNodesPerLook / 2);  // at the first look
    match::EnumerateParams count;
    count.stop = over();
    const auto counted = match::count_subgraphs(match::Pattern(ring(5)), target, count);
    CHECK(!counted.complete);
    CHECK(counted.nodes < 3 * WorkMeter::kNodesPerLook / 2);
}

TEST(what_is_prepared_does_not_count_for_a_limit_on_nodes) {
    match::BestParams params;
    params.stop.max_nodes = 2000;
    const match::Pattern pattern(ring(40));
    const match::Target target(complete(80));
    const auto first =
        match::best_subgraph(pattern, target, first_vertices(80), match::Objective::sum, params);
    const auto second =
        match::best_subgraph(pattern, target, first_vertices(80), match::Objective::sum, params);
    CHECK(first.nodes == second.nodes && first.vertices == second.vertices);
}

TEST(a_mapping_whose_time_is_over_is_complete_but_not_refined) {
    constexpr std::int32_t kSize = 500;
    std::vector<double> distance;
    for (std::int32_t u = 0; u < kSize; ++u) {
        for (std::int32_t v = 0; v < kSize; ++v) distance.push_back(u == v ? 0 : 1 + (u * v) % 31);
    }
    for (std::int32_t u = 0; u < kSize; ++u) {
        for (std::int32_t v = 0; v < u; ++v)
            distance[static_cast<std::size_t>(u * kSize + v)] =
                distance[static_cast<std::size_t>(v * kSize + u)];
    }
    const mapping::Target target(kSize, distance);
    const mapping::Source source(ring(400));
    mapping::MapParams params;
    params.stop = over();
    const auto found = mapping::map_graph(source, target, params);
    CHECK(found.found && !found.complete);
    CHECK(found.descents == 0 && found.exchanges == 0);  // not even the halves of the target are made
}
