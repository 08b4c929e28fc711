// Checks a bipartition by the definition; shares no code with the solvers.
#include <array>
#include <cmath>
#include <string>

#include "graph/index.hpp"
#include "topoplace/partition.hpp"

namespace topoplace::partition {
namespace {

Fault sides_allowed(const Graph& graph, const BipartitionParams& params, std::span<const std::int8_t> side) {
    if (side.size() != index(graph.num_vertices())) {
        return "side has " + std::to_string(side.size()) + " entries; the graph has " +
               std::to_string(graph.num_vertices()) + " vertices";
    }
    for (std::size_t v = 0; v < side.size(); ++v) {
        const auto entry = [&] { return "side[" + std::to_string(v) + "] = " + std::to_string(side[v]); };
        if (side[v] != 0 && side[v] != 1) return entry() + " is neither 0 nor 1";
        if (!params.fixed.empty() && params.fixed[v] != kFreeVertex && params.fixed[v] != side[v])
            return entry() + ", but the vertex is fixed to side " + std::to_string(params.fixed[v]);
    }
    return std::nullopt;
}

Fault balanced(const BipartitionParams& params, std::span<const std::int8_t> side) {
    std::array<std::int64_t, 2> held{};
    for (std::size_t v = 0; v < side.size(); ++v) {
        held[side[v] == 1 ? 1 : 0] += params.vertex_weights.empty() ? 1 : params.vertex_weights[v];
    }
    const double total = static_cast<double>(held[0] + held[1]);
    const std::array<double, 2> share{params.fraction, 1 - params.fraction};
    for (std::size_t s = 0; s < 2; ++s) {
        const double target = std::ceil(share[s] * total - 1e-9);
        const double limit = std::floor((1 + params.imbalance) * target + 1e-9);
        if (!(static_cast<double>(held[s]) <= limit)) {
            return "side " + std::to_string(s) + " holds " + std::to_string(held[s]) + "; at most " +
                   std::to_string(limit) + " are allowed";
        }
    }
    return std::nullopt;
}

}  // namespace

Fault verify_bipartition(const Graph& graph, const BipartitionParams& params,
                         std::span<const std::int8_t> side, double cut) {
    if (auto fault = sides_allowed(graph, params, side)) return fault;
    if (auto fault = balanced(params, side)) return fault;
    double crossing = 0;
    double total = 0;
    for (std::int32_t u = 0; u < graph.num_vertices(); ++u) {
        for (std::size_t i = 0; i < graph.neighbors(u).size(); ++i) {
            const std::int32_t v = graph.neighbors(u)[i];
            if (v < u) continue;
            total += graph.weights(u)[i];
            if (side[index(u)] != side[index(v)]) crossing += graph.weights(u)[i];
        }
    }
    if (std::abs(crossing - cut) <= 1e-9 * total) return std::nullopt;
    return "the cut is " + std::to_string(crossing) + ", not " + std::to_string(cut);
}

}  // namespace topoplace::partition
