// The target's own weights under a mapping: what an answer reports, to the last bit, where the search rounds.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"

namespace topoplace::match {

// Pattern edges come in ascending order, so that sums are the same on every machine. `target`: of any layout.
template <class Layout, std::invocable<double> Visit>
void for_each_used_weight(const Pattern::Impl& pattern, const Layout& target,
                          const std::vector<std::int32_t>& vertices, Visit&& visit) {
    const auto image = [&](std::int32_t u) { return vertices[index(u)]; };
    TOPOPLACE_ASSERT(std::ssize(vertices) == pattern.size());
    for (std::int32_t u = 0; u < pattern.size(); ++u) {
        for (const std::int32_t v : pattern.neighbors(u)) {
            if (u > v) continue;
            const double weight = target.graph().weight(image(u), image(v));
            TOPOPLACE_ASSERT(weight > 0);
            visit(weight);
        }
    }
}

template <class Layout>
double sum_of_used_weights(const Pattern::Impl& pattern, const Layout& target,
                           const std::vector<std::int32_t>& vertices) {
    double sum = 0;
    for_each_used_weight(pattern, target, vertices, [&](double weight) { sum += weight; });
    return sum;
}

template <class Layout>
double lightest_used_weight(const Pattern::Impl& pattern, const Layout& target,
                            const std::vector<std::int32_t>& vertices) {
    double lightest = std::numeric_limits<double>::infinity();
    for_each_used_weight(pattern, target, vertices,
                         [&](double weight) { lightest = std::min(lightest, weight); });
    return lightest;
}

}  // namespace topoplace::match
