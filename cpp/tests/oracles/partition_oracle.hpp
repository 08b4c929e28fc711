// Brute force over all side vectors: what the partition kernel has to answer.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "topoplace/partition.hpp"

namespace oracle {

using Sides = std::vector<std::int8_t>;

struct Halves {
    double cut = 0;
    Sides side;
};

inline double cut(const topoplace::Graph& graph, const Sides& side) {
    double sum = 0;
    for (std::int32_t u = 0; u < graph.num_vertices(); ++u) {
        for (std::int32_t v = u + 1; v < graph.num_vertices(); ++v) {
            if (side[std::size_t(u)] != side[std::size_t(v)]) sum += graph.weight(u, v);
        }
    }
    return sum;
}

// `percent`: what `params.fraction` is a hundredth of, and `slack` what `params.imbalance` is; in whole
// numbers, so that nothing is rounded.
inline bool allowed(const topoplace::partition::BipartitionParams& params, std::int64_t percent,
                    std::int64_t slack, const Sides& side) {
    std::int64_t held[2] = {0, 0};
    for (std::size_t v = 0; v < side.size(); ++v) {
        if (!params.fixed.empty() && params.fixed[v] != -1 && params.fixed[v] != side[v]) return false;
        held[side[v]] += params.vertex_weights.empty() ? 1 : params.vertex_weights[v];
    }
    const std::int64_t total = held[0] + held[1];
    const std::int64_t zero = (percent * total + 99) / 100;
    const std::int64_t one = ((100 - percent) * total + 99) / 100;
    return held[0] * 100 <= (100 + slack) * zero && held[1] * 100 <= (100 + slack) * one;
}

// The least cut, and of the side vectors that have it the lexicographically smallest; nothing where none is
// allowed.
inline std::optional<Halves> best_halves(const topoplace::Graph& graph,
                                         const topoplace::partition::BipartitionParams& params,
                                         std::int64_t percent, std::int64_t slack) {
    const auto n = std::size_t(graph.num_vertices());
    std::optional<Halves> best;
    for (std::uint32_t number = 0; number < (1U << n); ++number) {
        Sides side;
        for (std::size_t v = 0; v < n; ++v) side.push_back(std::int8_t((number >> (n - 1 - v)) & 1U));
        if (!allowed(params, percent, slack, side)) continue;
        if (const double found = cut(graph, side); !best || found < best->cut) best = Halves{found, side};
    }
    return best;
}

}  // namespace oracle
