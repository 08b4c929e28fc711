// Clusters, busy parts of them, and patterns, for what searches of subgraphs cost.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "work/work.hpp"

namespace work {

// Machines of four, whose links are strong; a GPU of one machine and its twin in the next are linked better
// than others.
inline Graph machines(std::int32_t count) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < 4 * count; ++u) {
        for (std::int32_t v = u + 1; v < 4 * count; ++v)
            edges.push_back({u, v,
                             u / 4 == v / 4   ? ((u ^ v) == 3 ? 25.0 : 50.0)
                             : u % 4 == v % 4 ? 12.0
                                              : 8.0});
    }
    return {4 * count, edges};
}

// Machines of eight in racks of four, every link a little different.
inline Graph measured_machines(std::int32_t count) {
    Random random(4);
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < 8 * count; ++u) {
        for (std::int32_t v = u + 1; v < 8 * count; ++v) {
            const double weight =
                u / 8 == v / 8 ? ((u + v) % 3 == 0 ? 50.0 : 25.0) : (u / 32 == v / 32 ? 6.0 : 3.0);
            edges.push_back({u, v, weight * (1 + 0.0001 * random.below(600))});
        }
    }
    return {8 * count, edges};
}

// Machines of eight in racks of four, linked like those of a DGX-1.
inline Graph linked_machines(std::int32_t count) {
    constexpr std::array<std::pair<std::int32_t, std::int32_t>, 8> kDouble{
        {{0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {4, 7}, {5, 6}, {6, 7}}};
    constexpr std::array<std::pair<std::int32_t, std::int32_t>, 8> kSingle{
        {{0, 1}, {0, 2}, {1, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 6}, {5, 7}}};
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < 8 * count; ++u) {
        for (std::int32_t v = u + 1; v < 8 * count; ++v) {
            const std::pair pair{u % 8, v % 8};
            const bool is_double = std::ranges::find(kDouble, pair) != kDouble.end();
            const bool is_single = std::ranges::find(kSingle, pair) != kSingle.end();
            const double inside = is_double ? 50 : is_single ? 25 : 12;
            edges.push_back({u, v, u / 8 == v / 8 ? inside : u / 32 == v / 32 ? 6.0 : 3.0});
        }
    }
    return {8 * count, edges};
}

// A torus of single links, of which a part is cut into small islands; all other pairs are joined slowly.
inline Graph torus(std::int32_t rows, std::int32_t columns) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < rows * columns; ++u) {
        for (std::int32_t v = u + 1; v < rows * columns; ++v) {
            const std::int32_t across = (v % columns - u % columns + columns) % columns;
            const std::int32_t down = (v / columns - u / columns + rows) % rows;
            const bool is_link = (down == 0 && (across == 1 || across == columns - 1)) ||
                                 (across == 0 && (down == 1 || down == rows - 1));
            edges.push_back({u, v, is_link ? 50.0 : 12.0});
        }
    }
    return {rows * columns, edges};
}

// `percent` of the vertices, at random.
inline std::vector<std::int32_t> part_of(std::int32_t size, std::int32_t percent) {
    Random random(5);
    std::vector<std::int32_t> part;
    for (std::int32_t v = 0; v < size; ++v) {
        if (random.below(100) < percent) part.push_back(v);
    }
    return part;
}

inline Graph tree(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t v = 1; v < size; ++v) edges.push_back({(v - 1) / 2, v, 1});
    return {size, edges};
}

inline Graph clique(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) edges.push_back({u, v, 1});
    }
    return {size, edges};
}

}  // namespace work
