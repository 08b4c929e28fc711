#include <algorithm>
#include <stdexcept>
#include <string>

#include "topoplace/flow.hpp"

namespace topoplace::flow {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

std::int64_t lower_bound(const Network& network, std::size_t arc) {
    return network.lower.empty() ? 0 : network.lower[arc];
}

bool is_node(const Network& network, std::int32_t v) { return v >= 0 && v < network.num_nodes; }

void check_length(std::size_t length, const char* name, std::size_t expected) {
    if (length == expected) return;
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(length) + " entries, not " +
                                std::to_string(expected));
}

// Throws where the columns are none of a network, so that nothing outside of them is read.
void check_columns(const Network& network) {
    const std::size_t arcs = network.tail.size();
    check_length(network.supply.size(), "supply", at(std::max(network.num_nodes, 0)));
    check_length(network.head.size(), "head", arcs);
    check_length(network.capacity.size(), "capacity", arcs);
    check_length(network.cost.size(), "cost", arcs);
    if (!network.lower.empty()) check_length(network.lower.size(), "lower", arcs);
    for (std::size_t a = 0; a < arcs; ++a) {
        const bool tail = is_node(network, network.tail[a]);
        if (tail && is_node(network, network.head[a])) continue;
        const std::int32_t node = tail ? network.head[a] : network.tail[a];
        throw std::invalid_argument((tail ? "head[" : "tail[") + std::to_string(a) +
                                    "] = " + std::to_string(node) + " is not a node");
    }
}

Total unmet_demand(const Network& network) {
    Total supplies = 0;
    for (const std::int64_t supply : network.supply) supplies += supply;
    return -supplies;
}

bool arcs_agree(const Network& network, std::span<const std::int64_t> flow,
                std::span<const std::int64_t> potential) {
    for (std::size_t a = 0; a < flow.size(); ++a) {
        const Total reduced =
            Total{network.cost[a]} + potential[at(network.tail[a])] - potential[at(network.head[a])];
        if (flow[a] < lower_bound(network, a) || flow[a] > network.capacity[a]) return false;
        if (reduced < 0 && flow[a] < network.capacity[a]) return false;
        if (reduced > 0 && flow[a] > lower_bound(network, a)) return false;
    }
    return true;
}

bool nodes_agree(const Network& network, std::span<const std::int64_t> flow,
                 std::span<const std::int64_t> potential) {
    std::vector<Total> left(network.supply.begin(), network.supply.end());
    for (std::size_t a = 0; a < flow.size(); ++a) {
        left[at(network.tail[a])] -= flow[a];
        left[at(network.head[a])] += flow[a];
    }
    const Total unmet = unmet_demand(network);
    for (std::size_t v = 0; v < left.size(); ++v) {
        const bool may_take_less = unmet > 0 && network.supply[v] < 0;
        if (left[v] != 0 && !may_take_less) return false;
        if (may_take_less && (left[v] > 0 || potential[v] > 0 || (left[v] < 0 && potential[v] != 0)))
            return false;
    }
    return unmet >= 0;
}

// What nodes supply together. Demands in excess of all supplies do not count where no other node has a
// demand that could be left unmet in their place.
Total supplied_by(const Network& network, const std::vector<bool>& inside) {
    Total supplied = 0;
    bool all_demands = true;
    for (std::size_t v = 0; v < inside.size(); ++v) {
        if (inside[v]) supplied += network.supply[v];
        all_demands = all_demands && (inside[v] || network.supply[v] >= 0);
    }
    return all_demands ? supplied + std::max<Total>(0, unmet_demand(network)) : supplied;
}

}  // namespace

bool verify_flow(const Network& network, std::span<const std::int64_t> flow,
                 std::span<const std::int64_t> potential, Total cost) {
    check_columns(network);
    if (flow.size() != network.tail.size() || potential.size() != network.supply.size()) return false;
    Total total = 0;
    for (std::size_t a = 0; a < flow.size(); ++a) total += Total{network.cost[a]} * flow[a];
    return total == cost && arcs_agree(network, flow, potential) && nodes_agree(network, flow, potential);
}

bool verify_infeasible(const Network& network, std::span<const std::int32_t> cut) {
    check_columns(network);
    std::vector<bool> inside(at(network.num_nodes));
    for (const std::int32_t v : cut) {
        if (!is_node(network, v) || inside[at(v)]) return false;
        inside[at(v)] = true;
    }
    const Total supplied = supplied_by(network, inside);
    Total taken = 0;
    for (std::size_t a = 0; a < network.tail.size(); ++a) {
        if (inside[at(network.tail[a])] == inside[at(network.head[a])]) continue;
        const bool leaves = inside[at(network.tail[a])];
        if (leaves && network.capacity[a] == kInfinite) return false;
        taken += leaves ? network.capacity[a] : -lower_bound(network, a);
    }
    return supplied > taken;
}

bool verify_unbounded(const Network& network, std::span<const std::int32_t> cycle) {
    check_columns(network);
    if (cycle.empty()) return false;
    Total cost = 0;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        const std::int32_t a = cycle[i];
        if (a < 0 || at(a) >= network.tail.size() || network.capacity[at(a)] != kInfinite) return false;
        const std::int32_t next = cycle[(i + 1) % cycle.size()];
        if (next < 0 || at(next) >= network.tail.size() || network.head[at(a)] != network.tail[at(next)])
            return false;
        cost += network.cost[at(a)];
    }
    return cost < 0;
}

}  // namespace topoplace::flow
