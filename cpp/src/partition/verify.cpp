// Checks a bipartition by the definition; shares no code with the solvers.
#include <algorithm>
#include <array>
#include <cmath>

#include "graph/index.hpp"
#include "topoplace/partition.hpp"

namespace topoplace::partition {
namespace {

bool sides_allowed(const Graph& graph, const BipartitionParams& params, std::span<const std::int8_t> side) {
    if (side.size() != index(graph.num_vertices())) return false;
    for (std::size_t v = 0; v < side.size(); ++v) {
        if (side[v] != 0 && side[v] != 1) return false;
        if (!params.fixed.empty() && params.fixed[v] != -1 && params.fixed[v] != side[v]) return false;
    }
    return true;
}

bool balanced(const BipartitionParams& params, std::span<const std::int8_t> side) {
    std::array<std::int64_t, 2> held{};
    for (std::size_t v = 0; v < side.size(); ++v) {
        held[side[v] == 1 ? 1 : 0] += params.vertex_weights.empty() ? 1 : params.vertex_weights[v];
    }
    const double total = static_cast<double>(held[0] + held[1]);
    const auto within = [&](std::int64_t weight, double share) {
        const double target = std::ceil(share * total - 1e-9);
        return static_cast<double>(weight) <= std::floor((1 + params.imbalance) * target + 1e-9);
    };
    return within(held[0], params.fraction) && within(held[1], 1 - params.fraction);
}

}  // namespace

bool verify_bipartition(const Graph& graph, const BipartitionParams& params,
                        std::span<const std::int8_t> side, double cut) {
    if (!sides_allowed(graph, params, side) || !balanced(params, side)) return false;
    double crossing = 0;
    double total = 0;
    for (std::int32_t u = 0; u < graph.num_vertices(); ++u) {
        for (std::size_t i = 0; i < graph.neighbors(u).size(); ++i) {
            const std::int32_t v = graph.neighbors(u)[i];
            if (v < u) continue;
            total += graph.weights(u)[i];
            if (side[index(u)] != side[index(v)])
                crossing += graph.weights(u)[i];
        }
    }
    return std::abs(crossing - cut) <= 1e-9 * total;
}

}  // namespace topoplace::partition
