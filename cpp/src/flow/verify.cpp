// Verifiers of flows, cuts and cycles by the definition alone: they share no code with the algorithms.
#include <algorithm>
#include <optional>
#include <string>

#include "graph/index.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::flow {
namespace {

using Failure = std::optional<std::string>;

std::string text(Total value) {
    const bool negative = value < 0;
    std::string digits;
    do {
        const auto digit = static_cast<int>(value % 10);
        digits.push_back(static_cast<char>('0' + (negative ? -digit : digit)));
        value /= 10;
    } while (value != 0);
    if (negative) digits.push_back('-');
    std::reverse(digits.begin(), digits.end());
    return digits;
}

std::string arc_name(std::size_t arc) { return "arc " + std::to_string(arc); }
std::string node_name(std::size_t node) { return "node " + std::to_string(node); }

std::int64_t lower_bound(const Network& network, std::size_t arc) {
    return network.lower.empty() ? 0 : network.lower[arc];
}

bool is_node(const Network& network, std::int32_t v) { return v >= 0 && v < network.num_nodes; }
bool is_arc(const Network& network, std::int32_t a) { return a >= 0 && index(a) < network.tail.size(); }

Fault check_length(std::size_t length, const char* name, std::size_t expected) {
    if (length == expected) return std::nullopt;
    return std::string(name) + " has " + std::to_string(length) + " entries, not " + std::to_string(expected);
}

Total unmet_demand(const Network& network) {
    Total supplies = 0;
    for (const std::int64_t supply : network.supply) supplies += supply;
    return -supplies;
}

Failure length_failure(const char* name, std::size_t length, std::size_t expected, const char* unit) {
    if (length == expected) return std::nullopt;
    return std::string(name) + " has " + std::to_string(length) + " entries; the network has " +
           std::to_string(expected) + " " + unit;
}

Failure total_failure(const Network& network, std::span<const std::int64_t> flow, Total cost) {
    Total total = 0;
    for (std::size_t a = 0; a < flow.size(); ++a) total += Total{network.cost[a]} * flow[a];
    if (total == cost) return std::nullopt;
    return "the flow costs " + text(total) + ", not " + text(cost);
}

Failure arc_failure(const Network& network, std::size_t a, std::int64_t flow, Total reduced_cost) {
    const std::string carries = arc_name(a) + " carries " + std::to_string(flow);
    const std::int64_t lower = lower_bound(network, a);
    const std::int64_t capacity = network.capacity[a];
    if (flow < lower) return carries + ", its lower bound is " + std::to_string(lower);
    if (flow > capacity) return carries + ", its capacity is " + std::to_string(capacity);
    if (reduced_cost < 0 && flow < capacity)
        return carries + " of " + std::to_string(capacity) + ", its reduced cost is " + text(reduced_cost);
    if (reduced_cost > 0 && flow > lower)
        return carries + ", more than it has to, its reduced cost is " + text(reduced_cost);
    return std::nullopt;
}

Failure first_arc_failure(const Network& network, std::span<const std::int64_t> flow,
                          std::span<const std::int64_t> potential) {
    for (std::size_t a = 0; a < flow.size(); ++a) {
        const Total reduced_cost =
            Total{network.cost[a]} + potential[index(network.tail[a])] - potential[index(network.head[a])];
        const bool in_bounds = lower_bound(network, a) <= flow[a] && flow[a] <= network.capacity[a];
        const bool may_grow = reduced_cost < 0 && flow[a] < network.capacity[a];
        const bool may_shrink = reduced_cost > 0 && flow[a] > lower_bound(network, a);
        if (!in_bounds || may_grow || may_shrink) return arc_failure(network, a, flow[a], reduced_cost);
    }
    return std::nullopt;
}

// What each node still has to send; below zero, to receive.
std::vector<Total> excesses(const Network& network, std::span<const std::int64_t> flow) {
    std::vector<Total> left(network.supply.begin(), network.supply.end());
    for (std::size_t a = 0; a < flow.size(); ++a) {
        left[index(network.tail[a])] -= flow[a];
        left[index(network.head[a])] += flow[a];
    }
    return left;
}

Failure first_node_failure(const Network& network, std::span<const std::int64_t> flow,
                           std::span<const std::int64_t> potential) {
    const std::vector<Total> left = excesses(network, flow);
    const Total unmet = unmet_demand(network);
    if (unmet < 0) return "supplies exceed demands by " + text(-unmet);
    for (std::size_t v = 0; v < left.size(); ++v) {
        const bool may_take_less = unmet > 0 && network.supply[v] < 0;
        if (left[v] > 0) return node_name(v) + " keeps " + text(left[v]) + " units";
        if (left[v] < 0 && !may_take_less) return node_name(v) + " lacks " + text(-left[v]) + " units";
        const bool wants = may_take_less && (potential[v] > 0 || (left[v] < 0 && potential[v] != 0));
        if (wants) return node_name(v) + " has an unmet demand and potential " + std::to_string(potential[v]);
    }
    return std::nullopt;
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

Failure flow_failure(const Network& network, std::span<const std::int64_t> flow,
                     std::span<const std::int64_t> potential, Total cost) {
    if (auto failure = length_failure("flow", flow.size(), network.tail.size(), "arcs")) return failure;
    if (auto failure = length_failure("potential", potential.size(), network.supply.size(), "nodes"))
        return failure;
    if (auto failure = total_failure(network, flow, cost)) return failure;
    if (auto failure = first_arc_failure(network, flow, potential)) return failure;
    return first_node_failure(network, flow, potential);
}

Failure cut_failure(const Network& network, std::span<const std::int32_t> cut) {
    std::vector<bool> inside(index(network.num_nodes));
    for (const std::int32_t v : cut) {
        if (!is_node(network, v)) return "the cut names " + std::to_string(v) + ", which is not a node";
        if (inside[index(v)]) return "the cut names node " + std::to_string(v) + " twice";
        inside[index(v)] = true;
    }
    const Total supplied = supplied_by(network, inside);
    Total taken = 0;
    for (std::size_t a = 0; a < network.tail.size(); ++a) {
        if (inside[index(network.tail[a])] == inside[index(network.head[a])]) continue;
        const bool leaves = inside[index(network.tail[a])];
        if (leaves && network.capacity[a] == kInfinite)
            return arc_name(a) + " leaves the cut and has infinite capacity";
        taken += leaves ? network.capacity[a] : -lower_bound(network, a);
    }
    if (supplied > taken) return std::nullopt;
    return "the cut supplies " + text(supplied) + ", and " + text(taken) + " can leave it";
}

Failure cycle_failure(const Network& network, std::span<const std::int32_t> cycle) {
    if (cycle.empty()) return "the cycle has no arc";
    for (const std::int32_t a : cycle) {
        if (!is_arc(network, a)) return "the cycle names " + std::to_string(a) + ", which is not an arc";
    }
    Total cost = 0;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        const std::size_t a = index(cycle[i]);
        const std::size_t next = index(cycle[(i + 1) % cycle.size()]);
        if (network.capacity[a] != kInfinite) return arc_name(a) + " has a finite capacity";
        if (network.head[a] != network.tail[next])
            return arc_name(next) + " does not begin where arc " + std::to_string(a) + " ends";
        cost += network.cost[a];
    }
    if (cost < 0) return std::nullopt;
    return "the cycle costs " + text(cost);
}

}  // namespace

Fault check_columns(const Network& network) {
    const std::size_t arcs = network.tail.size();
    if (auto fault = check_length(network.supply.size(), "supply", index(std::max(network.num_nodes, 0))))
        return fault;
    if (auto fault = check_length(network.head.size(), "head", arcs)) return fault;
    if (auto fault = check_length(network.capacity.size(), "capacity", arcs)) return fault;
    if (auto fault = check_length(network.cost.size(), "cost", arcs)) return fault;
    if (auto fault = check_length(network.lower.size(), "lower", network.lower.empty() ? 0 : arcs))
        return fault;
    for (std::size_t a = 0; a < arcs; ++a) {
        const bool tail = is_node(network, network.tail[a]);
        if (tail && is_node(network, network.head[a])) continue;
        const std::int32_t node = tail ? network.head[a] : network.tail[a];
        return (tail ? "head[" : "tail[") + std::to_string(a) + "] = " + std::to_string(node) +
               " is not a node";
    }
    return std::nullopt;
}

Fault verify_flow(const Network& network, std::span<const std::int64_t> flow,
                  std::span<const std::int64_t> potential, Total cost) {
    TOPOPLACE_ASSERT(!check_columns(network));
    return flow_failure(network, flow, potential, cost);
}

Fault verify_infeasible(const Network& network, std::span<const std::int32_t> cut) {
    TOPOPLACE_ASSERT(!check_columns(network));
    return cut_failure(network, cut);
}

Fault verify_unbounded(const Network& network, std::span<const std::int32_t> cycle) {
    TOPOPLACE_ASSERT(!check_columns(network));
    return cycle_failure(network, cycle);
}

}  // namespace topoplace::flow
