// The number of a pattern's automorphisms against counting every mapping of the pattern onto itself. In
// regular graphs, colours by degrees and distances leave vertices alike that no automorphism exchanges.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "check.hpp"
#include "oracles/match_oracle.hpp"
#include "topoplace/match.hpp"
#include "topoplace/random.hpp"

using topoplace::Edge;
using topoplace::Graph;
namespace match = topoplace::match;

namespace {

// Every vertex of the same degree: ends of edges are drawn until no edge is a loop or there twice.
Graph regular(topoplace::Random& random, std::int32_t size, std::int32_t degree) {
    while (true) {
        std::vector<std::int32_t> ends;
        for (std::int32_t end = 0; end < size * degree; ++end) ends.push_back(end / degree);
        for (std::size_t i = ends.size(); i > 1; --i)
            std::swap(ends[i - 1], ends[std::size_t(random.below(std::int32_t(i)))]);
        std::set<std::pair<std::int32_t, std::int32_t>> pairs;
        for (std::size_t i = 0; i < ends.size(); i += 2) {
            if (ends[i] != ends[i + 1]) pairs.insert(std::minmax({ends[i], ends[i + 1]}));
        }
        if (2 * pairs.size() < ends.size()) continue;
        std::vector<Edge> edges;
        for (const auto& [u, v] : pairs) edges.push_back({u, v});
        return {size, edges};
    }
}

Graph any(topoplace::Random& random, std::int32_t size) {
    std::vector<Edge> edges;
    const std::int32_t percent = 20 + random.below(60);
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = 0; v < u; ++v) {
            if (random.below(100) < percent) edges.push_back({u, v});
        }
    }
    return {size, edges};
}

void compare(const Graph& graph) {
    CHECK_EQ(match::Pattern(graph).num_automorphisms().value_or(0),
             double(oracle::mappings(graph, graph, true).size()));
}

}  // namespace

TEST(automorphisms_of_regular_graphs) {
    topoplace::Random random(1);
    for (int round = 0; round < check::rounds(60, 12); ++round) {
        for (const std::int32_t size : {6, 8, 10, 12, 14}) compare(regular(random, size, 3));
        for (const std::int32_t size : {7, 9, 11}) compare(regular(random, size, 4));
        for (const std::int32_t size : {8, 11, 13}) compare(regular(random, size, 2));
    }
}

TEST(automorphisms_of_any_graphs) {
    topoplace::Random random(2);
    for (int round = 0; round < check::rounds(100, 12); ++round) compare(any(random, 1 + round % 7));
}
