// Cuts and rings by trying all of them, for cases of a few vertices.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "topoplace/random.hpp"
#include "topoplace/ring_packing.hpp"
#include "topoplace/terminal_cuts.hpp"

namespace oracle {

using topoplace::collective::CutParams;
using topoplace::collective::RingNetwork;
using topoplace::collective::TerminalGraph;

struct Cuts {
    std::int64_t least_flow = std::numeric_limits<std::int64_t>::max();
    std::int64_t terminals = 0;  // of the worst ratio terminals / capacity
    std::int64_t capacity = 1;
};

inline Cuts all_cuts(const TerminalGraph& graph, const CutParams& params) {
    Cuts found;
    std::uint64_t chosen = 0;
    for (const auto v : params.chosen) chosen |= std::uint64_t{1} << v;
    const std::uint64_t terminals = (std::uint64_t{1} << graph.num_terminals()) - 1;
    const std::uint64_t absent = params.relay_others ? 0 : terminals & ~chosen;
    for (std::uint64_t side = 0; side < std::uint64_t{1} << graph.num_vertices(); ++side) {
        if ((side & absent) != 0 || (side & chosen) == chosen || (side & chosen) == 0) continue;
        std::int64_t capacity = 0;
        for (const auto& arc : graph.arcs()) {
            const bool present = ((absent >> arc.tail | absent >> arc.head) & 1U) == 0;
            if (present && (side >> arc.tail & 1U) != 0 && (side >> arc.head & 1U) == 0)
                capacity += arc.capacity;
        }
        const auto inside = static_cast<std::int64_t>(std::popcount(side & chosen));
        found.least_flow = std::min(found.least_flow, capacity);
        if (inside * found.capacity > found.terminals * capacity) {
            found.terminals = inside;
            found.capacity = capacity;
        }
    }
    return found;
}

inline TerminalGraph random_graph(topoplace::Random& random, std::int32_t terminals, std::int32_t others) {
    const std::int32_t n = terminals + others;
    std::vector<topoplace::collective::Arc> arcs;
    for (std::int32_t u = 0; u < n; ++u) {
        for (std::int32_t v = 0; v < n; ++v) {
            if (u != v && random.below(2) == 0) arcs.push_back({u, v, random.below(6)});
        }
    }
    return {n, terminals, std::move(arcs)};
}

// Links of equal capacity both ways, so that vertices that only forward are balanced.
inline TerminalGraph random_network(topoplace::Random& random, std::int32_t terminals, std::int32_t others) {
    std::vector<topoplace::collective::Arc> arcs;
    for (std::int32_t u = 0; u < terminals + others; ++u) {
        for (std::int32_t v = 0; v < u; ++v) {
            if (random.below(3) == 0) continue;
            const std::int64_t capacity = random.below(40);
            arcs.push_back({u, v, capacity});
            arcs.push_back({v, u, capacity});
        }
    }
    return {terminals + others, terminals, std::move(arcs)};
}

struct RingCase {
    std::int32_t terminals;
    std::vector<std::int64_t> capacities;
    std::vector<topoplace::collective::Route> routes;

    RingNetwork network() const { return {terminals, capacities, routes, {}}; }
};

// Routes over one to three random links, some of them through a relay, of three levels.
inline RingCase random_rings(topoplace::Random& random, std::int32_t terminals) {
    RingCase made{terminals, {}, {}};
    const std::int32_t links = 6 * terminals;
    for (std::int32_t i = 0; i < links; ++i) made.capacities.push_back(1000 * (1 + random.below(4)));
    for (std::int32_t from = 0; from < terminals; ++from) {
        for (std::int32_t to = 0; to < terminals; ++to) {
            if (from == to || random.below(8) == 0) continue;
            const std::int32_t relay = random.below(terminals);
            for (std::int32_t choices = random.below(3); choices >= 0; --choices) {
                topoplace::collective::Route route{from, to, -1, random.below(3), {}};
                if (choices > 0 && relay != from && relay != to) route.relay = relay;
                for (std::int32_t uses = 1 + random.below(3); uses > 0; --uses) {
                    route.uses.push_back({random.below(links), random.below(4) == 0 ? 1200 : 1000});
                }
                made.routes.push_back(std::move(route));
            }
        }
    }
    return made;
}

// What one ring uses of each link; empty where it takes a hop that is not there.
inline std::vector<std::int64_t> load_of(const RingNetwork& network, std::span<const std::int32_t> order,
                                         const topoplace::collective::PackParams& params) {
    std::vector<std::int64_t> load(network.capacities().size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const topoplace::collective::Route* taken = nullptr;
        for (const auto& route : network.routes(order[i], order[(i + 1) % order.size()])) {
            if (route.relay < 0 || std::count(order.begin(), order.end(), route.relay) > 0) {
                taken = &route;
                break;
            }
        }
        if (taken == nullptr || taken->level > params.level) return {};
        for (const auto& use : taken->uses) {
            load[static_cast<std::size_t>(use.link)] += (params.rate * use.thousandths + 999) / 1000;
        }
    }
    return load;
}

inline std::int32_t most_of(const std::vector<std::vector<std::int64_t>>& loads, std::size_t first,
                            std::vector<std::int64_t>& left, std::int32_t limit, bool equal) {
    std::int32_t most = 0;
    for (std::size_t i = first; i < loads.size() && limit > 0; ++i) {
        std::int32_t taken = 0;
        const auto before = left;
        while (taken < limit) {
            bool fits = true;
            for (std::size_t link = 0; link < left.size(); ++link) {
                fits = fits && loads[i][link] <= left[link];
            }
            if (!fits) break;
            for (std::size_t link = 0; link < left.size(); ++link) left[link] -= loads[i][link];
            ++taken;
            const std::int32_t more = equal ? 0 : most_of(loads, i + 1, left, limit - taken, equal);
            most = std::max(most, taken + more);
        }
        left = before;
    }
    return most;
}

// Chosen terminals ascending.
inline std::int32_t most_rings(const RingNetwork& network, std::vector<std::int32_t> chosen,
                               const topoplace::collective::PackParams& params) {
    std::vector<std::vector<std::int64_t>> loads;
    do {
        auto load = load_of(network, chosen, params);
        if (!load.empty()) loads.push_back(std::move(load));
    } while (std::next_permutation(chosen.begin() + 1, chosen.end()));
    std::vector<std::int64_t> left(network.capacities().begin(), network.capacities().end());
    return most_of(loads, 0, left, params.max_rings, params.equal);
}

}  // namespace oracle
