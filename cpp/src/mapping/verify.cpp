// Checks a mapping by the definition; shares no code with the searches.
#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/mapping.hpp"

namespace topoplace::mapping {

bool verify_map(const Graph& source, std::int32_t num_vertices, std::span<const double> distance,
                const MapParams& params, std::span<const std::int32_t> target_of, double cost) {
    if (target_of.size() != index(source.num_vertices())) return false;
    std::vector<bool> usable(index(num_vertices), !params.free);
    for (const std::int32_t v : params.free.value_or(std::span<const std::int32_t>{})) {
        if (v < 0 || v >= num_vertices) return false;
        usable[index(v)] = true;
    }
    double sum = 0;
    double price = 0;
    for (const std::int32_t v : target_of) {
        if (v < 0 || v >= num_vertices || !usable[index(v)]) return false;
        usable[index(v)] = false;
        if (!params.target_cost.empty()) sum += params.target_cost[index(v)];
    }
    for (const double p : params.target_cost) price = std::max(price, p);
    double weights = 0;
    double largest = 0;
    for (const double d : distance) largest = std::max(largest, d);
    for (std::int32_t a = 0; a < source.num_vertices(); ++a) {
        const auto u = index(target_of[index(a)]);
        for (std::size_t i = 0; i < source.neighbors(a).size(); ++i) {
            const std::int32_t b = source.neighbors(a)[i];
            if (b < a) continue;
            const auto v = index(target_of[index(b)]);
            weights += source.weights(a)[i];
            sum += source.weights(a)[i] * distance[u * index(num_vertices) + v];
        }
    }
    return std::abs(sum - cost) <= 1e-9 * (weights * largest + source.num_vertices() * price);
}

}  // namespace topoplace::mapping
