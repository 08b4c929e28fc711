// Checks what a caller asks for, and turns weights into integers.
#include "partition/problem.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "graph/index.hpp"

namespace topoplace::partition {
namespace {

template <class T>
std::string wrong(const std::string& name, T value, const std::string& rule) {
    return name + " = " + std::to_string(value) + " is not " + rule;
}

std::string entry(const char* name, std::size_t i) {
    return std::string(name) + "[" + std::to_string(i) + "]";
}

template <class T>
Fault check_length(std::span<const T> values, const char* name, std::int32_t size) {
    if (values.empty() || values.size() == index(size)) return std::nullopt;
    return std::string(name) + " has " + std::to_string(values.size()) + " entries; the graph has " +
           std::to_string(size) + " vertices";
}

Fault check_vertices(const Graph& graph, const BipartitionParams& params) {
    if (auto fault = check_length(params.vertex_weights, "vertex_weights", graph.num_vertices()))
        return fault;
    if (auto fault = check_length(params.fixed, "fixed", graph.num_vertices())) return fault;
    std::int64_t total = 0;
    for (std::size_t v = 0; v < params.vertex_weights.size(); ++v) {
        const std::int64_t weight = params.vertex_weights[v];
        if (weight < 0 || weight > kMaxVertexWeight)
            return wrong(entry("vertex_weights", v), weight, "in 0..2^53");
        total += weight;
        if (total > kMaxVertexWeight) return wrong("the sum of vertex_weights", total, "at most 2^53");
    }
    for (std::size_t v = 0; v < params.fixed.size(); ++v) {
        if (params.fixed[v] < -1 || params.fixed[v] > 1)
            return wrong(entry("fixed", v), int{params.fixed[v]}, "-1, 0 or 1");
    }
    return std::nullopt;
}

Fault check_weights(const Graph& graph) {
    double total = 0;
    for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
        for (const double weight : graph.weights(v)) total += weight;
    }
    if (std::isfinite(total)) return std::nullopt;
    return "the sum of the graph's weights is not finite";
}

}  // namespace

Fault check(const Graph& graph, const BipartitionParams& params) {
    if (!(params.fraction >= 0 && params.fraction <= 1)) return wrong("fraction", params.fraction, "in 0..1");
    if (!(params.imbalance >= 0 && std::isfinite(params.imbalance)))
        return wrong("imbalance", params.imbalance, "a finite number of at least 0");
    if (params.starts < 1) return wrong("starts", params.starts, "at least 1");
    if (params.cycles < 0) return wrong("cycles", params.cycles, "at least 0");
    if (params.exact_up_to < 0 || params.exact_up_to > kMaxExactVertices)
        return wrong("exact_up_to", params.exact_up_to, "in 0.." + std::to_string(kMaxExactVertices));
    if (params.coarsest < 1) return wrong("coarsest", params.coarsest, "at least 1");
    if (auto fault = check_vertices(graph, params)) return fault;
    return check_weights(graph);
}

std::int64_t total_weight(const Graph& graph, const BipartitionParams& params) {
    if (params.vertex_weights.empty()) return graph.num_vertices();
    std::int64_t total = 0;
    for (const std::int64_t weight : params.vertex_weights) total += weight;
    return total;
}

std::array<std::int64_t, 2> limits_of(const BipartitionParams& params, std::int64_t total) {
    constexpr double kClose = 1e-9;
    const double whole = static_cast<double>(total);
    const auto limit = [&](double share) {
        const double target = std::ceil(share * whole - kClose);
        return static_cast<std::int64_t>(
            std::min(whole, std::floor((1 + params.imbalance) * target + kClose)));
    };
    const std::array<std::int64_t, 2> limits{limit(params.fraction), limit(1 - params.fraction)};
    TOPOPLACE_ASSERT(limits[0] >= 0 && limits[1] >= 0 && limits[0] <= total && limits[1] <= total);
    return limits;
}

std::optional<double> scale_of(const Graph& graph, WorkMeter& meter) {
    double total = 0;
    bool integral = true;
    for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
        if (meter.pass_time(8 * graph.weights(v).size())) return std::nullopt;
        for (const double weight : graph.weights(v)) {
            total += weight;
            integral = integral && weight == std::floor(weight);
        }
    }
    TOPOPLACE_ASSERT(std::isfinite(total));
    if (integral && total < 0x1p53) return 1.0;
    int exponent = 0;
    std::frexp(total, &exponent);
    return std::ldexp(1.0, 61 - std::max(exponent, -960));
}

std::int64_t scaled(double weight, double scale) {
    TOPOPLACE_ASSERT(weight > 0 && weight * scale <= 0x1p61);
    return std::llround(weight * scale);
}

bool fill(IntegerGraph& result, const Graph& graph, const Core& core, double scale, WorkMeter& meter) {
    TOPOPLACE_ASSERT(result.size() == index(core.size));
    std::size_t row = 0;
    std::size_t end = 0;
    for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
        if (core.sets_aside(v)) continue;
        result.offsets[row++] = static_cast<std::int64_t>(end);
        const auto neighbors = graph.neighbors(v);
        const auto weights = graph.weights(v);
        if (meter.pass_time(16 * neighbors.size())) return false;
        std::copy(neighbors.begin(), neighbors.end(), &result.neighbors[end]);
        if (!core.number.empty()) {
            for (std::size_t i = end; i < end + neighbors.size(); ++i)
                result.neighbors[i] = core.number[index(result.neighbors[i])];
        }
        if (scale == 1) {
            for (std::size_t i = 0; i < weights.size(); ++i)
                result.weights[end + i] = static_cast<std::int64_t>(weights[i]);
        } else {
            for (std::size_t i = 0; i < weights.size(); ++i)
                result.weights[end + i] = scaled(weights[i], scale);
        }
        end += neighbors.size();
    }
    result.offsets[row] = static_cast<std::int64_t>(end);
    TOPOPLACE_ASSERT(result.num_arcs() == 2 * static_cast<std::size_t>(graph.num_edges()));
    return true;
}

double cut_of(const Graph& graph, std::span<const std::int8_t> side) {
    double cut = 0;
    for (std::int32_t u = 0; u < graph.num_vertices(); ++u) {
        const auto neighbors = graph.neighbors(u);
        const auto later = std::ranges::upper_bound(neighbors, u) - neighbors.begin();
        for (auto i = static_cast<std::size_t>(later); i < neighbors.size(); ++i) {
            // no branch: it could not be predicted
            cut += graph.weights(u)[i] * static_cast<double>(side[index(u)] != side[index(neighbors[i])]);
        }
    }
    return cut;
}

}  // namespace topoplace::partition
