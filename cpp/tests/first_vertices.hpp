// The choice of all vertices of a graph, or of its first ones, as kernels take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

// 0, 1, ..., count - 1.
inline std::vector<std::int32_t> first_vertices(std::int32_t count) {
    std::vector<std::int32_t> vertices(static_cast<std::size_t>(count));
    std::iota(vertices.begin(), vertices.end(), 0);
    return vertices;
}
