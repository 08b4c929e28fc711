// The match kernel against the definition: every answer of every search on one small pattern and target. Some
// targets begin with lonely vertices, so that the others' bits fill the second word of a set, or a later one.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "fuzz.hpp"
#include "oracles/match_oracle.hpp"
#include "topoplace/match.hpp"

namespace {

using oracle::Mapping;
using topoplace::Graph;
namespace match = topoplace::match;

constexpr std::int32_t kClasses = 3;  // of links: as many as fuzz::graph has weights

struct Case {
    Graph pattern_graph;
    Graph target_graph;
    match::Pattern pattern{pattern_graph};
    match::Target target{target_graph, match::Layout::dense};
    match::Target sparse{target_graph, match::Layout::sparse};
};

std::vector<Mapping> rows(const match::EnumerateResult& result, const Graph& pattern) {
    const auto width = std::size_t(pattern.num_vertices());
    REQUIRE(result.vertices.size() == std::size_t(result.count) * width);
    std::vector<Mapping> found;
    for (auto row = result.vertices.begin(); row != result.vertices.end(); row += std::ptrdiff_t(width)) {
        found.emplace_back(row, row + std::ptrdiff_t(width));
    }
    std::sort(found.begin(), found.end());
    return found;
}

// What enumeration has to find, in lexicographic order.
std::vector<Mapping> expected_rows(const Case& c, const match::EnumerateParams& params) {
    std::vector<Mapping> all =
        oracle::mappings(c.pattern_graph, c.target_graph, params.induced, params.min_weight);
    if (params.distinct == match::Distinct::mappings) return all;
    return oracle::first_of_each(all, [&](const Mapping& mapping) {
        if (params.distinct == match::Distinct::vertex_sets) return oracle::sorted(mapping);
        return oracle::image(c.pattern_graph, mapping, c.target_graph.num_vertices());
    });
}

void check_enumeration(const Case& c, const match::Target& target, const match::EnumerateParams& params) {
    const match::EnumerateResult result = match::enumerate_subgraphs(c.pattern, target, params);
    const std::vector<Mapping> found = rows(result, c.pattern_graph);
    REQUIRE(result.complete);
    REQUIRE(found == expected_rows(c, params));
    for (const Mapping& mapping : found) {
        REQUIRE(!match::verify_embedding(c.pattern_graph, c.target_graph, mapping, params.induced,
                                         params.min_weight));
    }
    REQUIRE(match::count_subgraphs(c.pattern, target, params).count == result.count);
}

// The mappings that use free vertices alone and every required one.
std::vector<Mapping> usable(const Case& c, const Mapping& free, const match::BestParams& params) {
    std::vector<Mapping> all = oracle::mappings(c.pattern_graph, c.target_graph, false, params.min_weight);
    std::erase_if(all, [&](const Mapping& mapping) {
        const auto within = [](std::int32_t v, const auto& set) {
            return std::find(set.begin(), set.end(), v) != set.end();
        };
        return !std::all_of(mapping.begin(), mapping.end(), [&](auto v) { return within(v, free); }) ||
               !std::all_of(params.required.begin(), params.required.end(),
                            [&](auto v) { return within(v, mapping); });
    });
    return all;
}

template <class Score>
void check_best(const std::vector<Mapping>& all, const match::BestResult& result, const Score& score) {
    const Mapping* best = oracle::best(all, score);
    REQUIRE(result.found == (best != nullptr));
    if (best == nullptr) return;
    REQUIRE(result.optimal && result.complete && result.bound == result.score);
    REQUIRE(result.vertices == *best);
}

void check_objectives(const Case& c, const match::Target& target, const Mapping& free,
                      const match::BestParams& params) {
    const std::vector<Mapping> all = usable(c, free, params);
    const auto weights = [&](const Mapping& m) {
        return oracle::used_weights(c.pattern_graph, c.target_graph, m);
    };
    const auto sum = [&](const Mapping& m) {
        const std::vector<double> used = weights(m);
        return std::accumulate(used.begin(), used.end(), 0.0);
    };
    const auto run = [&](match::Objective objective) {
        return match::best_subgraph(c.pattern, target, free, objective, params);
    };
    check_best(all, run(match::Objective::sum), sum);
    if (c.pattern_graph.num_edges() == 0) return;  // no edge, no bottleneck
    const auto bottleneck = [&](const Mapping& m) { return weights(m).front(); };
    check_best(all, run(match::Objective::bottleneck), bottleneck);
    check_best(all, run(match::Objective::bottleneck_sum),
               [&](const Mapping& m) { return std::pair(bottleneck(m), sum(m)); });
}

// A score by link counts that no order explains: the number of each weight decides by an arbitrary table.
void check_count_score(const Case& c, const Mapping& free, const match::BestParams& params,
                       std::int32_t salt) {
    const std::int32_t n = c.target_graph.num_vertices();
    const auto num_edges = std::int32_t(c.pattern_graph.num_edges());
    const std::vector<std::int32_t> counts = match::LinkCountScore::count_vectors(num_edges, kClasses);
    std::vector<double> table;
    std::map<std::vector<std::int32_t>, double> score_of;
    for (auto row = counts.begin(); row != counts.end(); row += kClasses) {
        table.push_back(std::int32_t(table.size()) * salt % 5);
        score_of[{row, row + kClasses}] = table.back();
    }
    // Classes that neither follow the weights nor respect their symmetries.
    const auto class_of = [&](std::int32_t u, std::int32_t v) {
        return std::uint8_t((std::int32_t(c.target_graph.weight(u, v)) + salt * (u ^ v)) % kClasses);
    };
    std::vector<std::uint8_t> classes;
    for (std::int32_t pair = 0; pair < n * n; ++pair) classes.push_back(class_of(pair / n, pair % n));
    const match::LinkCountScore score(c.target, classes, kClasses, num_edges, table);
    check_best(usable(c, free, params), match::best_subgraph(c.pattern, c.target, free, score, params),
               [&](const Mapping& m) {
                   std::vector<std::int32_t> used(kClasses);
                   for (std::int32_t a = 0; a < c.pattern_graph.num_vertices(); ++a) {
                       for (const std::int32_t b : c.pattern_graph.neighbors(a)) {
                           if (a < b) ++used[class_of(m[std::size_t(a)], m[std::size_t(b)])];
                       }
                   }
                   return score_of.at(used);
               });
}

void check_remainder(const Case& c, const Mapping& free) {
    const auto sum_and_rest = [&](const Mapping& m) {
        const std::vector<double> used = oracle::used_weights(c.pattern_graph, c.target_graph, m);
        double left = 0;
        for (const std::int32_t u : free) {
            for (const std::int32_t v : free) {
                const bool stays = std::find(m.begin(), m.end(), u) == m.end() &&
                                   std::find(m.begin(), m.end(), v) == m.end();
                if (u < v && stays) left += c.target_graph.weight(u, v);
            }
        }
        return std::pair(left, std::accumulate(used.begin(), used.end(), 0.0));
    };
    const std::vector<Mapping> all = usable(c, free, {});
    const Mapping* best = oracle::best(all, sum_and_rest);
    const match::RemainderResult result = match::best_remainder(c.pattern, c.target, free, {});
    REQUIRE(result.found == (best != nullptr));
    if (best == nullptr) return;
    REQUIRE(result.optimal && result.vertices == *best);
    REQUIRE(std::pair(result.remainder, result.score) == sum_and_rest(*best));
}

constexpr std::array<std::int32_t, 12> kLonely{0, 0, 0, 0, 0, 0, 0, 0, 60, 62, 126, 300};

// A pattern vertex without edges could go to every lonely one, which makes for more mappings than can be
// tried.
std::int32_t lonely_for(const Graph& pattern, fuzz::Bytes& bytes) {
    const std::int32_t wanted = kLonely[std::size_t(bytes.below(kLonely.size()))];
    for (std::int32_t u = 0; u < pattern.num_vertices(); ++u) {
        if (pattern.degree(u) == 0) return 0;
    }
    return wanted;
}

Case read_case(fuzz::Bytes& bytes) {
    Graph pattern = fuzz::graph(bytes, 4);
    const std::int32_t lonely = lonely_for(pattern, bytes);
    return {std::move(pattern), fuzz::graph(bytes, 7, lonely)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const std::int32_t at_once = bytes.below(4);  // what only hard searches do, from the first node on
    const Case c = read_case(bytes);
    match::EnumerateParams enumerate;
    enumerate.min_weight = bytes.below(4);
    for (const auto distinct :
         {match::Distinct::mappings, match::Distinct::images, match::Distinct::vertex_sets}) {
        for (const bool induced : {false, true}) {
            enumerate.distinct = distinct;
            enumerate.induced = induced;
            check_enumeration(c, c.target, enumerate);
            check_enumeration(c, c.sparse, enumerate);
        }
    }
    Mapping free;
    for (std::int32_t v = 0; v < c.target_graph.num_vertices(); ++v) {
        if (c.target_graph.degree(v) == 0 || bytes.below(4) < 3) free.push_back(v);
    }
    check_remainder(c, free);
    match::BestParams best;
    best.min_weight = bytes.below(3);
    Mapping required;
    if (!free.empty() && bytes.below(2) == 1)
        required.push_back(free[std::size_t(bytes.below(std::int32_t(free.size())))]);
    best.required = required;
    if (at_once & 1) best.polish_after = 0;
    if (at_once & 2) best.symmetry_after = 0;
    check_objectives(c, c.target, free, best);
    check_objectives(c, c.sparse, free, best);
    check_count_score(c, free, best, 1 + bytes.below(4));
    return 0;
}
