// Least maximum flows and throughput bounds against all cuts, and against fabrics of known throughput.
#include <string>

#include "check.hpp"
#include "first_vertices.hpp"
#include "oracles/collective_oracle.hpp"
#include "oracles/fabrics.hpp"

namespace collective = topoplace::collective;
using collective::Arc;
using collective::TerminalGraph;
using oracle::boxes_of_eight;

namespace {

std::string refusal(const TerminalGraph& graph, const std::vector<std::int32_t>& chosen) {
    return collective::check(graph, {chosen, false, {}}).value_or("");
}

std::string refused_arc(const Arc& arc) {
    return TerminalGraph::check(3, 2, std::vector{Arc{0, 1, 1}, arc}).value_or("");
}

}  // namespace

TEST(all_cuts_agree) {
    topoplace::Random random(1);
    for (std::int32_t round = 0; round < 600; ++round) {
        const std::int32_t terminals = 2 + round % 4;
        const TerminalGraph graph = oracle::random_graph(random, terminals, round % 3);
        const auto chosen = first_vertices(2 + random.below(terminals - 1));
        const collective::CutParams params{chosen, round % 2 == 0, {}};
        const auto expected = oracle::all_cuts(graph, params);
        const auto flow = collective::least_max_flow(graph, params);
        CHECK_EQ(flow.value, expected.least_flow);
        CHECK(flow.complete && flow.flows > 0);
        CHECK(!collective::verify_least_flow(graph, params, flow));
        const auto bound = collective::throughput_bound(graph, params);
        CHECK(bound.complete);
        CHECK(!collective::verify_throughput(graph, params, bound));
        CHECK_EQ(bound.terminals * expected.capacity, expected.terminals * bound.capacity);
        CHECK_EQ(bound.capacity == 0, expected.capacity == 0);
    }
}

TEST(boxes_reach_the_published_optimum) {
    for (const auto& [boxes, numerator, denominator] : {std::array{1, 2400, 7}, {4, 800, 3}, {8, 1600, 7}}) {
        const TerminalGraph graph = boxes_of_eight(boxes);
        const auto chosen = first_vertices(8 * boxes);
        const auto bound = collective::throughput_bound(graph, {chosen, false, {}});
        CHECK_EQ(8 * boxes * bound.capacity * denominator, numerator * bound.terminals);
    }
}

TEST(a_stopped_search_has_a_valid_cut) {
    const TerminalGraph graph = boxes_of_eight(2);
    const auto chosen = first_vertices(16);
    collective::CutParams params{chosen, false, {}};
    params.stop.max_nodes = 1;
    const auto bound = collective::throughput_bound(graph, params);
    CHECK(!bound.complete);
    CHECK(!collective::verify_throughput(graph, params, bound));
    const auto flow = collective::least_max_flow(graph, params);
    CHECK(!flow.complete);
    CHECK(!collective::verify_least_flow(graph, params, flow));
}

TEST(faults_are_found) {
    const TerminalGraph graph(3, 2, {{0, 2, 3}, {2, 1, 2}, {1, 0, 5}});
    const auto chosen = first_vertices(2);
    const collective::CutParams params{chosen, false, {}};
    const auto flow = collective::least_max_flow(graph, params);
    CHECK_EQ(flow.value, 2);
    auto wrong = flow;
    wrong.value = 3;
    CHECK(collective::verify_least_flow(graph, params, wrong).has_value());
    wrong.side = {0, 1, 2};
    CHECK(collective::verify_least_flow(graph, params, wrong).has_value());
    const auto bound = collective::throughput_bound(graph, params);
    auto other = bound;
    other.terminals = 2;
    CHECK(collective::verify_throughput(graph, params, other).has_value());
    other = bound;
    other.capacity = 1;
    CHECK(collective::verify_throughput(graph, params, other).has_value());
    other.side = {0, 1};
    CHECK(collective::verify_throughput(graph, params, other).has_value());
}

TEST(wrong_arguments_are_named) {
    const TerminalGraph graph(3, 2, {{0, 1, 1}});
    CHECK_EQ(refusal(graph, {0}), "chosen has fewer than two terminals");
    CHECK_EQ(refusal(graph, {0, 2}), "chosen[1] = 2 is not a terminal");
    CHECK_EQ(refusal(graph, {1, 1}), "chosen[1] = 1 appears twice");
    CHECK_EQ(refused_arc({0, 3, 1}), "arcs[1] = (0, 3) does not join two of 3 vertices");
    CHECK(refused_arc({0, 1, -1}).starts_with("arcs[1] has the capacity -1"));
    CHECK(refused_arc({0, 1, std::int64_t{1} << 40}).starts_with("arcs[1] has the capacity"));
}
