// Small clusters of which a part is free, patterns for them, and the best of all mappings.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "oracles/match_oracle.hpp"
#include "topoplace/match.hpp"
#include "topoplace/random.hpp"

namespace machine_cases {

using topoplace::Edge;
using topoplace::Graph;
using topoplace::Random;
namespace match = topoplace::match;
using Vertices = std::vector<std::int32_t>;
using Pairs = std::vector<std::pair<std::int32_t, std::int32_t>>;

inline Graph of_pairs(std::int32_t size, const Pairs& pairs) {
    std::vector<Edge> edges;
    for (const auto& [u, v] : pairs) edges.push_back({u, v, 1});
    return {size, edges};
}

inline std::vector<Graph> patterns() {
    return {of_pairs(4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}),
            of_pairs(4, {{0, 1}, {2, 3}}),
            of_pairs(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}),
            of_pairs(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}),
            of_pairs(5, {{0, 1}, {0, 2}, {1, 3}, {1, 4}}),
            of_pairs(5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}})};
}

// Machines of two to four vertices in two racks. Measured weights all differ; some pairs have no link.
inline Graph cluster(Random& rng, std::int32_t num_vertices) {
    std::vector<std::int32_t> machine_of;
    for (std::int32_t machine = 0; std::ssize(machine_of) < num_vertices; ++machine)
        machine_of.insert(machine_of.end(), static_cast<std::size_t>(2 + rng.below(3)), machine);
    const bool is_measured = rng.below(3) == 0;
    const std::int32_t missing = rng.below(2) == 0 ? 0 : 8;  // one in eight pairs has no link, or none
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < num_vertices; ++u) {
        for (std::int32_t v = u + 1; v < num_vertices; ++v) {
            const std::int32_t a = machine_of[static_cast<std::size_t>(u)];
            const std::int32_t b = machine_of[static_cast<std::size_t>(v)];
            const double inside = rng.below(2) == 0 ? 50.0 : 25.0;
            const double weight = a == b ? inside : a % 2 == b % 2 ? 6.0 : 3.0;
            if (missing > 0 && rng.below(missing) == 0) continue;
            edges.push_back({u, v, is_measured ? weight * (1 + 0.001 * rng.below(60)) : weight});
        }
    }
    return {num_vertices, edges};
}

inline Vertices free_of(Random& rng, std::int32_t num_vertices) {
    Vertices free;
    for (std::int32_t v = 0; v < num_vertices; ++v) {
        if (rng.below(4) > 0) free.push_back(v);
    }
    return free;
}

inline double value(const Graph& pattern, const Graph& target, const Vertices& mapping,
                    match::Objective objective) {
    double sum = 0;
    double least = 1e9;
    for (std::int32_t u = 0; u < pattern.num_vertices(); ++u) {
        for (const std::int32_t v : pattern.neighbors(u)) {
            const double weight =
                target.weight(mapping[static_cast<std::size_t>(u)], mapping[static_cast<std::size_t>(v)]);
            if (u < v) sum += weight;
            least = std::min(least, weight);
        }
    }
    return objective == match::Objective::sum ? sum : least;
}

// The largest value of all mappings onto free vertices; below 0 where there is none.
inline double largest(const Graph& pattern, const Graph& target, const Vertices& free,
                      match::Objective objective) {
    double best = -1;
    for (const Vertices& mapping : oracle::mappings(pattern, target)) {
        const bool is_free = std::all_of(mapping.begin(), mapping.end(), [&](std::int32_t v) {
            return std::binary_search(free.begin(), free.end(), v);
        });
        if (is_free) best = std::max(best, value(pattern, target, mapping, objective));
    }
    return best;
}

}  // namespace machine_cases
