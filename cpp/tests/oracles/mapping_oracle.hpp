// Brute force over all injective maps: what the mapping kernel has to answer. Slow and plain; shares no code
// with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "topoplace/graph.hpp"

namespace oracle {

using Places = std::vector<std::int32_t>;

struct MapCase {
    topoplace::Graph source;
    std::int32_t size = 0;  // of the target
    std::vector<double> distance;
    std::vector<double> price;  // empty: 0
    Places free;

    double cost(const Places& places) const {
        double sum = 0;
        for (std::size_t a = 0; a < places.size(); ++a) {
            if (!price.empty()) sum += price[std::size_t(places[a])];
            for (std::size_t b = 0; b < a; ++b)
                sum += source.weight(std::int32_t(a), std::int32_t(b)) *
                       distance[std::size_t(places[a] * size + places[b])];
        }
        return sum;
    }
};

// The heaviest task first, then the one most tied to those before it; of equal ones the heavier, then the
// smaller number.
inline Places placing_order(const topoplace::Graph& source) {
    Places order;
    const auto tie = [&](std::int32_t task, bool all) {
        double sum = 0;
        for (std::int32_t other = 0; other < source.num_vertices(); ++other) {
            if (all || std::find(order.begin(), order.end(), other) != order.end())
                sum += source.weight(task, other);
        }
        return sum;
    };
    while (std::int32_t(order.size()) < source.num_vertices()) {
        std::int32_t chosen = -1;
        for (std::int32_t task = 0; task < source.num_vertices(); ++task) {
            if (std::find(order.begin(), order.end(), task) != order.end()) continue;
            if (chosen < 0 || std::tuple(tie(task, false), tie(task, true)) >
                                  std::tuple(tie(chosen, false), tie(chosen, true)))
                chosen = task;
        }
        order.push_back(chosen);
    }
    return order;
}

// Of least cost, and of those the lexicographically smallest in the order of placing; nothing where there are
// too few vertices.
inline std::optional<Places> best_mapping(const MapCase& c) {
    const Places order = placing_order(c.source);
    Places free = c.free;
    std::sort(free.begin(), free.end());
    std::optional<Places> best;
    double least = 0;
    Places places(order.size(), -1);
    auto extend = [&](auto&& self, std::size_t depth) -> void {
        if (depth == order.size()) {
            if (const double cost = c.cost(places); !best || cost < least) {
                best = places;
                least = cost;
            }
            return;
        }
        std::int32_t& place = places[std::size_t(order[depth])];
        for (const std::int32_t v : free) {
            if (std::find(places.begin(), places.end(), v) != places.end()) continue;
            place = v;
            self(self, depth + 1);
            place = -1;
        }
    };
    extend(extend, 0);
    return best;
}

}  // namespace oracle
