// How much work a search may do on fixed cases, and the graphs of those cases. Bounds that grow weak and
// heuristics that grow bad leave answers right, or nearly so: what shows them is the work.
#pragma once

#include <cstdint>
#include <vector>

#include "check.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/random.hpp"

namespace work {

using topoplace::Edge;
using topoplace::Graph;
using topoplace::Random;

// Work: at most a tenth more than when the figure was written, and more than half of that. A search that has
// become better gets a new figure, and a counter that no longer counts is found.
inline bool is_near(double actual, double figure) { return actual <= 1.1 * figure && actual > 0.5 * figure; }
// Costs that are to be low, and proven bounds that are to be high: at most a hundredth worse.
inline bool is_low(double actual, double figure) { return actual <= 1.01 * figure; }
inline bool is_high(double actual, double figure) { return actual >= 0.99 * figure; }

inline Graph ring(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) edges.push_back({u, (u + 1) % size, 1});
    return {size, edges};
}

inline Graph grid(std::int32_t rows, std::int32_t columns) {
    std::vector<Edge> edges;
    for (std::int32_t v = 0; v < rows * columns; ++v) {
        if (v % columns + 1 < columns) edges.push_back({v, v + 1, 1});
        if (v + columns < rows * columns) edges.push_back({v, v + columns, 1});
    }
    return {rows * columns, edges};
}

inline Graph star(std::int32_t size) {
    std::vector<Edge> edges;
    for (std::int32_t u = 1; u < size; ++u) edges.push_back({0, u, 1});
    return {size, edges};
}

// Every pair is an edge with the probability `percent` / 100, of a weight in 1 .. heaviest.
inline Graph random_graph(Random& random, std::int32_t size, std::int32_t percent, std::int32_t heaviest) {
    std::vector<Edge> edges;
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) {
            const double weight = 1 + random.below(heaviest);
            if (random.below(100) < percent) edges.push_back({u, v, weight});
        }
    }
    return {size, edges};
}

}  // namespace work

#define CHECK_FIGURE(holds, actual, figure)                                                                 \
    do {                                                                                                    \
        const auto actual_ = static_cast<double>(actual);                                                   \
        if (!::work::holds(actual_, figure))                                                                \
            ::check::fail(__FILE__, __LINE__) << #actual " is " << actual_ << ", was " << (figure) << '\n'; \
    } while (false)
#define CHECK_WORK(actual, figure) CHECK_FIGURE(is_near, actual, figure)
#define CHECK_COST(actual, figure) CHECK_FIGURE(is_low, actual, figure)
#define CHECK_BOUND(actual, figure) CHECK_FIGURE(is_high, actual, figure)
