// Checks trees by the definition alone; shares no code with the search.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "topoplace/tree_packing.hpp"

namespace topoplace::collective {

namespace {

using Loads = std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>;

bool may_forward(const TerminalGraph& graph, const CutParams& params, std::int32_t vertex) {
    if (vertex < 0 || vertex >= graph.num_vertices()) return false;
    if (vertex >= graph.num_terminals()) return true;
    return params.relay_others &&
           std::find(params.chosen.begin(), params.chosen.end(), vertex) == params.chosen.end();
}

// Adds what a hop takes of each arc.
Fault load_hop(const TerminalGraph& graph, const CutParams& params, const TreeHop& hop, std::int64_t count,
               Loads& loads) {
    for (const HopWay& way : hop.ways) {
        if (way.count < 1) return "a way is taken less than once";
        count -= way.count;
        const auto& vertices = way.vertices;
        if (vertices.size() < 2 || vertices.front() != hop.from || vertices.back() != hop.to) {
            return "a way does not lead from the beginning of its hop to the end";
        }
        for (std::size_t i = 1; i < vertices.size(); ++i) {
            if (i + 1 < vertices.size() && !may_forward(graph, params, vertices[i])) {
                return "vertex " + std::to_string(vertices[i]) + " forwards, which it may not";
            }
            loads[{vertices[i - 1], vertices[i]}] += way.count;
        }
    }
    if (count != 0) return "the ways of a hop are not as many as its trees";
    return std::nullopt;
}

Fault load_tree(const TerminalGraph& graph, const CutParams& params, const Tree& tree, Loads& loads) {
    std::set<std::int32_t> reached{tree.root};
    for (const TreeHop& hop : tree.hops) {
        if (!reached.contains(hop.from)) return "a hop begins where its tree has not been";
        if (!reached.insert(hop.to).second) return "a tree reaches a terminal twice";
        if (Fault fault = load_hop(graph, params, hop, tree.count, loads)) return fault;
    }
    if (reached != std::set<std::int32_t>(params.chosen.begin(), params.chosen.end())) {
        return "a tree does not reach the chosen terminals";
    }
    return std::nullopt;
}

}  // namespace

Fault verify_trees(const TerminalGraph& graph, const CutParams& params, const TreePacking& found) {
    if (found.rate_numerator < 1 || found.rate_denominator < 1) return "trees have no rate";
    Loads loads;
    std::map<std::int32_t, std::int64_t> counts;
    for (const Tree& tree : found.trees) {
        if (tree.count < 1) return "a tree is there less than once";
        counts[tree.root] += tree.count;
        if (Fault fault = load_tree(graph, params, tree, loads)) return fault;
    }
    for (const std::int32_t root : params.chosen) {
        if (counts[root] != found.per_root) {
            return "root " + std::to_string(root) + " has " + std::to_string(counts[root]) + " trees";
        }
    }
    Loads capacities;
    for (const Arc& arc : graph.arcs()) capacities[{arc.tail, arc.head}] += arc.capacity;
    for (const auto& [ends, load] : loads) {
        if (load > capacities[ends] * found.rate_denominator / found.rate_numerator) {
            return "the arcs from " + std::to_string(ends.first) + " to " + std::to_string(ends.second) +
                   " are overloaded";
        }
    }
    return std::nullopt;
}

}  // namespace topoplace::collective
