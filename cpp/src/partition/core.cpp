// Isolated vertices: set aside before the division, and filled in after it.
#include <algorithm>

#include "graph/index.hpp"
#include "partition/problem.hpp"

namespace topoplace::partition {
namespace {

std::int64_t weight_of(const BipartitionParams& params, std::int32_t v) {
    return params.vertex_weights.empty() ? 1 : params.vertex_weights[index(v)];
}

}  // namespace

Core core_of(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
             std::int64_t total) {
    // Where a vertex fits on neither side, both have less room than it weighs: less than 2 w - 1 together,
    // while the spare room and the vertex itself are free.
    const std::int64_t heaviest = limits[0] + limits[1] - total + 1;
    const auto is_aside = [&](std::int32_t v) {
        return graph.degree(v) == 0 && weight_of(params, v) <= heaviest &&
               (params.fixed.empty() || params.fixed[index(v)] == kFreeVertex);
    };
    Core core;
    core.size = graph.num_vertices();
    core.weight = total;
    for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
        if (!is_aside(v)) continue;
        --core.size;
        core.weight -= weight_of(params, v);
    }
    if (core.size == graph.num_vertices()) return core;
    core.number.assign(index(graph.num_vertices()), kAbsent);
    std::int32_t next = 0;
    for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
        if (is_aside(v)) continue;
        core.number[index(v)] = next++;
        if (!params.vertex_weights.empty()) core.vertex_weights.push_back(weight_of(params, v));
        if (!params.fixed.empty()) core.fixed.push_back(params.fixed[index(v)]);
    }
    return core;
}

std::vector<std::int8_t> extended(const Core& core, const BipartitionParams& params,
                                  std::array<std::int64_t, 2> room, const std::vector<std::int8_t>& side) {
    std::vector<std::int8_t> all(core.number.size());
    std::vector<std::int32_t> aside;
    for (std::size_t v = 0; v < all.size(); ++v) {
        if (core.number[v] == kAbsent) {
            aside.push_back(static_cast<std::int32_t>(v));
        } else {
            all[v] = side[index(core.number[v])];
        }
    }
    if (!params.vertex_weights.empty()) {
        std::ranges::stable_sort(aside, std::greater<>(),
                                 [&](std::int32_t v) { return weight_of(params, v); });
    }
    for (const std::int32_t v : aside) {
        all[index(v)] = std::int8_t{room[0] < room[1]};
        room[index(all[index(v)])] -= weight_of(params, v);
        TOPOPLACE_ASSERT(room[0] >= 0 && room[1] >= 0);
    }
    return all;
}

}  // namespace topoplace::partition
