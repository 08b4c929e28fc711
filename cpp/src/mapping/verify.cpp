// Checks a mapping by the definition; shares no code with the searches.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/mapping.hpp"

namespace topoplace::mapping {
namespace {

constexpr std::int32_t kForbidden = -2;  // in addition to kAbsent and the tasks

// By vertex kAbsent where it may be used, else kForbidden.
std::vector<std::int32_t> usable(std::int32_t num_vertices, const MapParams& params) {
    std::vector<std::int32_t> task_on(index(num_vertices), params.free ? kForbidden : kAbsent);
    for (const std::int32_t v : params.free.value_or(std::span<const std::int32_t>{})) {
        if (v >= 0 && v < num_vertices) task_on[index(v)] = kAbsent;
    }
    return task_on;
}

Fault injective(std::int32_t num_vertices, const MapParams& params, std::span<const std::int32_t> target_of) {
    std::vector<std::int32_t> task_on = usable(num_vertices, params);
    for (std::size_t a = 0; a < target_of.size(); ++a) {
        const std::int32_t v = target_of[a];
        const auto mapped = [&] {
            return "task " + std::to_string(a) + " is mapped to " + std::to_string(v);
        };
        if (v < 0 || v >= num_vertices)
            return mapped() + "; the target has " + std::to_string(num_vertices) + " vertices";
        if (task_on[index(v)] == kForbidden) return mapped() + ", which is not free";
        if (task_on[index(v)] != kAbsent) {
            return "task " + std::to_string(task_on[index(v)]) + " and task " + std::to_string(a) +
                   " are both mapped to " + std::to_string(v);
        }
        task_on[index(v)] = static_cast<std::int32_t>(a);
    }
    return std::nullopt;
}

}  // namespace

Fault verify_mapping(const Graph& source, std::int32_t num_vertices, std::span<const double> distance,
                     const MapParams& params, std::span<const std::int32_t> target_of, double cost) {
    if (target_of.size() != index(source.num_vertices())) {
        return std::to_string(target_of.size()) + " tasks are mapped; the source has " +
               std::to_string(source.num_vertices());
    }
    for (const std::int32_t v : params.free.value_or(std::span<const std::int32_t>{})) {
        if (v < 0 || v >= num_vertices) return "free vertex " + std::to_string(v) + " does not exist";
    }
    if (auto fault = injective(num_vertices, params, target_of)) return fault;
    double sum = 0;
    double price = 0;
    for (const std::int32_t v : target_of) {
        if (!params.target_cost.empty()) sum += params.target_cost[index(v)];
    }
    for (const double p : params.target_cost) price = std::max(price, p);
    double weights = 0;
    double largest = 0;
    for (const double d : distance) largest = std::max(largest, d);
    for (std::int32_t a = 0; a < source.num_vertices(); ++a) {
        const std::size_t u = index(target_of[index(a)]);
        for (std::size_t i = 0; i < source.neighbors(a).size(); ++i) {
            const std::int32_t b = source.neighbors(a)[i];
            if (b < a) continue;
            const std::size_t v = index(target_of[index(b)]);
            weights += source.weights(a)[i];
            sum += source.weights(a)[i] * distance[u * index(num_vertices) + v];
        }
    }
    if (std::abs(sum - cost) <= 1e-9 * (weights * largest + source.num_vertices() * price))
        return std::nullopt;
    return "the cost is " + std::to_string(sum) + ", not " + std::to_string(cost);
}

}  // namespace topoplace::mapping
