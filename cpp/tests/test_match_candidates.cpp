// Enumeration where each pattern vertex has its own candidates, against filtering every mapping.
#include <algorithm>
#include <vector>

#include "check.hpp"
#include "oracles/match_oracle.hpp"
#include "topoplace/match.hpp"
#include "topoplace/random.hpp"

using oracle::Mapping;
using topoplace::Edge;
using topoplace::Graph;
namespace match = topoplace::match;

namespace {

constexpr std::int32_t kTargets = 7;

struct Case {
    Graph pattern;
    Graph target;
    std::vector<std::uint8_t> candidates;  // pattern x target

    std::vector<Mapping> expected(match::Distinct distinct) const {
        std::vector<Mapping> all = oracle::mappings(pattern, target);
        std::erase_if(all, [&](const Mapping& mapping) {
            for (std::size_t u = 0; u < mapping.size(); ++u) {
                if (candidates[u * kTargets + std::size_t(mapping[u])] == 0) return true;
            }
            return false;
        });
        if (distinct == match::Distinct::mappings) return all;
        return oracle::first_of_each(all, [&](const Mapping& mapping) {
            const bool sets = distinct == match::Distinct::vertex_sets;
            return sets ? oracle::sorted(mapping) : oracle::image(pattern, mapping, kTargets);
        });
    }
};

Case random_case(topoplace::Random& random, bool uniform) {
    std::vector<Edge> ring, edges;
    for (std::int32_t u = 0; u < 4; ++u) ring.push_back({u, (u + 1) % 4});
    for (std::int32_t u = 0; u < kTargets; ++u) {
        for (std::int32_t v = 0; v < u; ++v) {
            if (random.below(10) < 7) edges.push_back({u, v});
        }
    }
    std::vector<std::uint8_t> candidates;
    for (std::int32_t i = 0; i < 4 * kTargets; ++i) {
        const bool again = uniform && i >= kTargets;
        candidates.push_back(again ? candidates[std::size_t(i % kTargets)]
                                   : std::uint8_t(random.below(3) > 0));
    }
    return {Graph(4, ring), Graph(kTargets, edges), candidates};
}

}  // namespace

TEST(only_candidates_are_used) {
    topoplace::Random random(1);
    for (int round = 0; round < 60; ++round) {
        const Case c = random_case(random, round % 4 == 0);
        for (const auto distinct :
             {match::Distinct::mappings, match::Distinct::images, match::Distinct::vertex_sets}) {
            match::EnumerateParams params;
            params.distinct = distinct;
            params.candidates = c.candidates;
            const match::Pattern pattern(c.pattern);
            const match::Target target(c.target);
            const auto found = match::enumerate_subgraphs(pattern, target, params);
            std::vector<Mapping> rows;
            for (auto row = found.vertices.begin(); row != found.vertices.end(); row += 4)
                rows.emplace_back(row, row + 4);
            std::sort(rows.begin(), rows.end());
            const auto expected = c.expected(distinct);
            CHECK(rows == expected);
            CHECK_EQ(match::count_subgraphs(pattern, target, params).count, std::int64_t(expected.size()));
        }
    }
}

TEST(one_vertex_has_its_candidates) {
    const match::Pattern pattern(Graph(1, {}));
    const match::Target target(Graph(3, {}));
    const std::vector<std::uint8_t> candidates{1, 0, 1};
    match::EnumerateParams params;
    params.candidates = candidates;
    CHECK((match::enumerate_subgraphs(pattern, target, params).vertices == Mapping{0, 2}));
    CHECK_EQ(match::count_subgraphs(pattern, target, params).count, 2);
}
