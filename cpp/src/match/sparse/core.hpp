// Vertices no embedding can use: they go before the search begins.
//
// `degree`: by vertex, its neighbours that are left; kAbsent for a vertex that is not. each(v, visit) visits
// all neighbours of v. Unfinished where `meter` stops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::match::sparse {

// Takes away the vertices of fewer than `least` neighbours, again and again: the core is left.
template <class EachNeighbor>
void peel(std::int32_t least, std::vector<std::int32_t>& degree, EachNeighbor&& each, WorkMeter& meter) {
    std::vector<std::int32_t> going;
    const auto leave = [&](std::int32_t v) {
        degree[index(v)] = kAbsent;
        going.push_back(v);
    };
    for (std::int32_t v = 0; v < std::ssize(degree); ++v) {
        if (meter.pass_time(16)) return;
        if (degree[index(v)] != kAbsent && degree[index(v)] < least) leave(v);
        while (!going.empty() && !meter.stopped()) {
            const std::int32_t gone = going.back();
            going.pop_back();
            each(gone, [&](std::int32_t u) {
                if (meter.pass_time(32)) return;
                if (degree[index(u)] != kAbsent && --degree[index(u)] < least) leave(u);
            });
        }
    }
}

// Takes away the connected components of fewer than `least` vertices.
template <class EachNeighbor>
void drop_small_components(std::int32_t least, std::vector<std::int32_t>& degree, EachNeighbor&& each,
                           WorkMeter& meter) {
    if (least < 2) return;
    std::vector<bool> seen(degree.size());
    std::vector<std::int32_t> component;
    for (std::int32_t root = 0; root < std::ssize(degree); ++root) {
        if (seen[index(root)] || degree[index(root)] == kAbsent) continue;
        seen[index(root)] = true;
        component.assign(1, root);
        for (std::size_t next = 0; next < component.size(); ++next) {
            if (meter.stopped()) return;
            each(component[next], [&](std::int32_t u) {
                if (meter.pass_time(32) || seen[index(u)] || degree[index(u)] == kAbsent) return;
                seen[index(u)] = true;
                component.push_back(u);
            });
        }
        if (std::ssize(component) >= least) continue;
        for (const std::int32_t v : component) degree[index(v)] = kAbsent;
    }
}

struct Needs {
    std::int32_t degree;     // the pattern's smallest
    std::int32_t component;  // vertices of its smallest component
    bool is_connected;
};

inline Needs needs_of(const Pattern::Impl& pattern) {
    Needs needs{pattern.max_degree(), pattern.size(), true};
    std::vector<bool> seen(index(pattern.size()));
    for (std::int32_t root = 0; root < pattern.size(); ++root) {
        needs.degree = std::min(needs.degree, pattern.degree(root));
        if (seen[index(root)]) continue;
        std::vector<std::int32_t> component{root};
        seen[index(root)] = true;
        for (std::size_t next = 0; next < component.size(); ++next) {
            for (const std::int32_t v : pattern.neighbors(component[next])) {
                if (!seen[index(v)]) component.push_back(v);
                seen[index(v)] = true;
            }
        }
        needs.component = std::min(needs.component, static_cast<std::int32_t>(component.size()));
        needs.is_connected = needs.is_connected && std::ssize(component) == pattern.size();
    }
    return needs;
}

// The longest shortest path of a connected pattern, in edges.
inline std::int32_t diameter(const Pattern::Impl& pattern) {
    std::int32_t longest = 0;
    std::vector<std::int32_t> queue;
    for (std::int32_t root = 0; root < pattern.size(); ++root) {
        std::vector<std::int32_t> distance(index(pattern.size()), kAbsent);
        distance[index(root)] = 0;
        queue.assign(1, root);
        for (std::size_t next = 0; next < queue.size(); ++next) {
            for (const std::int32_t v : pattern.neighbors(queue[next])) {
                if (distance[index(v)] != kAbsent) continue;
                distance[index(v)] = distance[index(queue[next])] + 1;
                queue.push_back(v);
            }
        }
        longest = std::max(longest, distance[index(queue.back())]);
    }
    return longest;
}

}  // namespace topoplace::match::sparse
