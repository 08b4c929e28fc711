// Trees against the bound that all cuts give, and on fabrics of known throughput.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "check.hpp"
#include "first_vertices.hpp"
#include "oracles/collective_oracle.hpp"
#include "oracles/fabrics.hpp"
#include "topoplace/tree_packing.hpp"

namespace collective = topoplace::collective;
using collective::Arc;
using collective::TerminalGraph;
using collective::TreePacking;
using oracle::boxes_of_eight;
using oracle::boxes_of_sixteen;

namespace {

void check_optimal(const TerminalGraph& graph, const collective::CutParams& params, const TreePacking& found,
                   std::int64_t terminals, std::int64_t capacity) {
    CHECK(found.complete);
    const auto fault = collective::verify_trees(graph, params, found);
    CHECK_EQ(fault.value_or(""), "");
    // per_root * rate = capacity / terminals
    CHECK_EQ(found.per_root * found.rate_numerator * terminals, capacity * found.rate_denominator);
}

std::string fault_of(const TerminalGraph& graph, const std::vector<std::int32_t>& chosen,
                     const TreePacking& found) {
    return collective::verify_trees(graph, {chosen, false, {}}, found).value_or("");
}

}  // namespace

TEST(trees_reach_the_bound_of_all_cuts) {
    topoplace::Random random(4);
    std::int32_t joined = 0;
    for (std::int32_t round = 0; round < 400; ++round) {
        const std::int32_t terminals = 2 + round % 5;
        const TerminalGraph graph = oracle::random_network(random, terminals, round % 4);
        const auto chosen = first_vertices(2 + random.below(terminals - 1));
        const collective::CutParams params{chosen, round % 2 == 0, {}};
        const auto expected = oracle::all_cuts(graph, params);
        const auto found = collective::pack_trees(graph, params);
        if (expected.capacity == 0) {
            CHECK(found.trees.empty() && found.per_root == 0);
            continue;
        }
        ++joined;
        check_optimal(graph, params, found, expected.terminals, expected.capacity);
    }
    CHECK(joined > 200);
}

TEST(trees_of_boxes_reach_the_published_optimum) {
    for (const auto& [boxes, numerator, denominator] : {std::array{1, 2400, 7}, {4, 800, 3}, {8, 1600, 7}}) {
        const TerminalGraph graph = boxes_of_eight(boxes);
        const auto chosen = first_vertices(8 * boxes);
        const auto found = collective::pack_trees(graph, {chosen, false, {}});
        check_optimal(graph, {chosen, false, {}}, found, 8 * boxes * denominator, numerator);
    }
    for (const auto& [boxes, numerator, denominator] : {std::array{1, 2400, 7}, {4, 1024, 3}}) {
        const TerminalGraph graph = boxes_of_sixteen(boxes);
        const auto chosen = first_vertices(16 * boxes);
        const auto found = collective::pack_trees(graph, {chosen, false, {}});
        check_optimal(graph, {chosen, false, {}}, found, 16 * boxes * denominator, numerator);
    }
}

TEST(a_stopped_search_has_no_trees) {
    const auto chosen = first_vertices(16);
    collective::CutParams params{chosen, false, {}};
    params.stop.max_nodes = 20;
    const auto found = collective::pack_trees(boxes_of_eight(2), params);
    CHECK(!found.complete && found.trees.empty());
}

TEST(faults_are_found) {
    const TerminalGraph graph = boxes_of_eight(1);
    const auto chosen = first_vertices(3);
    const auto found = collective::pack_trees(graph, {chosen, false, {}});
    CHECK_EQ(fault_of(graph, chosen, found), "");
    auto wrong = found;
    wrong.rate_numerator *= 2;
    CHECK(fault_of(graph, chosen, wrong).ends_with("are overloaded"));
    wrong = found;
    wrong.trees.pop_back();
    CHECK(fault_of(graph, chosen, wrong).starts_with("root 2 has"));
    wrong = found;
    wrong.trees[0].hops.pop_back();
    CHECK_EQ(fault_of(graph, chosen, wrong), "a tree does not reach the chosen terminals");
    wrong = found;
    wrong.trees[0].hops[1].to = wrong.trees[0].hops[0].to;
    CHECK_EQ(fault_of(graph, chosen, wrong), "a tree reaches a terminal twice");
    wrong = found;
    std::swap(wrong.trees[0].hops[0].from, wrong.trees[0].hops[0].to);
    CHECK_EQ(fault_of(graph, chosen, wrong), "a hop begins where its tree has not been");
    wrong = found;
    wrong.trees[0].hops[0].ways[0].count += 1;
    CHECK_EQ(fault_of(graph, chosen, wrong), "the ways of a hop are not as many as its trees");
    wrong = found;
    wrong.trees[0].hops[0].ways[0].vertices[1] = 5;
    CHECK_EQ(fault_of(graph, chosen, wrong), "vertex 5 forwards, which it may not");
    wrong = found;
    wrong.trees[0].hops[0].ways[0].vertices.pop_back();
    CHECK(fault_of(graph, chosen, wrong).starts_with("a way does not lead"));
}

TEST(wrong_arguments_are_named) {
    const TerminalGraph leaky(3, 2, {{0, 2, 3}, {2, 1, 2}, {1, 0, 5}});
    const auto chosen = first_vertices(2);
    CHECK_EQ(collective::check_trees(leaky, {chosen, false, {}}).value_or(""),
             "vertex 2 only forwards, and 1 more of capacity lead into it than out of it");
}
