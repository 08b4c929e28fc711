// Fabrics of known throughput.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topoplace/terminal_cuts.hpp"

namespace oracle {

using topoplace::collective::Arc;
using topoplace::collective::TerminalGraph;

inline void join(std::vector<Arc>& arcs, std::int32_t u, std::int32_t v, std::int64_t capacity) {
    arcs.push_back({u, v, capacity});
    arcs.push_back({v, u, capacity});
}

// Boxes of eight terminals around a switch at 300, with 25 each into a switch of all boxes.
inline TerminalGraph boxes_of_eight(std::int32_t boxes) {
    const std::int32_t terminals = 8 * boxes;
    std::vector<Arc> arcs;
    for (std::int32_t v = 0; v < terminals; ++v) {
        join(arcs, v, terminals + v / 8, 300);
        if (boxes > 1) join(arcs, v, terminals + boxes, 25);
    }
    return {terminals + boxes + 1, terminals, std::move(arcs)};
}

// Boxes of sixteen terminals with seven links of 50, of which four lead to the other one of a module and one
// each to the three modules after or before it; with 16 each into a switch of all boxes.
inline TerminalGraph boxes_of_sixteen(std::int32_t boxes) {
    const std::int32_t terminals = 16 * boxes;
    std::vector<Arc> arcs;
    for (std::int32_t box = 0; box < boxes; ++box) {
        for (std::int32_t module = 0; module < 8; ++module) {
            const std::int32_t a = 16 * box + 2 * module;
            join(arcs, a, a + 1, 200);
            for (std::int32_t d = 1; d <= 3; ++d) join(arcs, a, 16 * box + (2 * module + 2 * d) % 16 + 1, 50);
        }
    }
    for (std::int32_t v = 0; v < terminals && boxes > 1; ++v) join(arcs, v, terminals, 16);
    return {terminals + 1, terminals, std::move(arcs)};
}

}  // namespace oracle
