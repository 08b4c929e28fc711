// FlowNetwork: checks changes, applies them to the columns, and reports them to the assignment that is kept.
#include "topoplace/flow_network.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "flow/general/arc_lists.hpp"
#include "flow/proof.hpp"
#include "flow/scheduling/kept_assignment.hpp"
#include "graph/index.hpp"

namespace topoplace::flow {
namespace {

using Numbers = std::span<const std::int32_t>;
using Values = std::span<const std::int64_t>;

std::string wrong(const char* name, std::size_t i, std::int64_t value, const char* why) {
    return std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) + ": " + why;
}

Fault check_lengths(std::size_t length, const char* name, std::size_t other, const char* others) {
    if (length == other) return std::nullopt;
    return std::string(name) + " has " + std::to_string(length) + " values, " + others + " has " +
           std::to_string(other);
}

Fault check_capacities(Values capacity) {
    for (std::size_t i = 0; i < capacity.size(); ++i) {
        if (capacity[i] < 0) return wrong("capacity", i, capacity[i], "capacities are not negative");
    }
    return std::nullopt;
}

Fault check_supplies(Values supply) {
    for (std::size_t i = 0; i < supply.size(); ++i) {
        if (supply[i] == std::numeric_limits<std::int64_t>::min())
            return wrong("supply", i, supply[i], "supplies are above -2^63");
    }
    return std::nullopt;
}

}  // namespace

struct FlowNetwork::Impl {
    ArcLists lists;
    KeptAssignment kept;
    // Of a network that is no scheduling graph: the last solution, and how many nodes and arcs it knew.
    std::vector<std::int64_t> flow;
    std::vector<std::int64_t> potential;
    std::uint64_t version = 0;

    Fault check_nodes(Numbers nodes, const char* name) const {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (!lists.has_node(nodes[i])) return wrong(name, i, nodes[i], "there is no such node");
        }
        return std::nullopt;
    }
    Fault check_arcs(Numbers arcs) const {
        for (std::size_t i = 0; i < arcs.size(); ++i) {
            if (!lists.has_arc(arcs[i])) return wrong("arcs", i, arcs[i], "there is no such arc");
        }
        return std::nullopt;
    }
    static Fault check_once(Numbers numbers, const char* name) {
        std::unordered_set<std::int32_t> seen;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (!seen.insert(numbers[i]).second) return wrong(name, i, numbers[i], "given twice");
        }
        return std::nullopt;
    }
    void remove_arc(std::int32_t arc) {
        kept.arc_leaves(lists, arc);
        if (index(arc) < flow.size()) flow[index(arc)] = 0;
        lists.remove_arc(arc);
    }
    FlowResult solve_in_general(FlowParams params);
};

FlowNetwork::FlowNetwork() : impl_(std::make_unique<Impl>()) {}
FlowNetwork::~FlowNetwork() = default;
FlowNetwork::FlowNetwork(FlowNetwork&&) noexcept = default;
FlowNetwork& FlowNetwork::operator=(FlowNetwork&&) noexcept = default;

Fault FlowNetwork::add_nodes(Values supply, std::vector<std::int32_t>& added) {
    if (auto fault = check_supplies(supply)) return fault;
    added.clear();
    for (const std::int64_t units : supply) {
        added.push_back(impl_->lists.add_node(units));
        impl_->kept.node_added(added.back());
    }
    ++impl_->version;
    return std::nullopt;
}

Fault FlowNetwork::add_arcs(Numbers tail, Numbers head, Values capacity, Values cost,
                            std::vector<std::int32_t>& added) {
    if (auto fault = check_lengths(head.size(), "head", tail.size(), "tail")) return fault;
    if (auto fault = check_lengths(capacity.size(), "capacity", tail.size(), "tail")) return fault;
    if (auto fault = check_lengths(cost.size(), "cost", tail.size(), "tail")) return fault;
    if (auto fault = impl_->check_nodes(tail, "tail")) return fault;
    if (auto fault = impl_->check_nodes(head, "head")) return fault;
    if (auto fault = check_capacities(capacity)) return fault;
    added.clear();
    for (std::size_t i = 0; i < tail.size(); ++i) {
        added.push_back(impl_->lists.add_arc(tail[i], head[i], capacity[i], cost[i]));
        impl_->kept.arc_added(impl_->lists, added.back());
    }
    ++impl_->version;
    return std::nullopt;
}

Fault FlowNetwork::remove_nodes(Numbers nodes) {
    if (auto fault = impl_->check_nodes(nodes, "nodes")) return fault;
    if (auto fault = Impl::check_once(nodes, "nodes")) return fault;
    for (const std::int32_t node : nodes) {
        impl_->kept.node_leaves(impl_->lists, node);
        for (const std::int32_t arc : impl_->lists.arcs_from(node)) impl_->remove_arc(arc);
        for (const std::int32_t arc : impl_->lists.arcs_to(node)) impl_->remove_arc(arc);
        impl_->lists.remove_node(node);
    }
    ++impl_->version;
    return std::nullopt;
}

Fault FlowNetwork::remove_arcs(Numbers arcs) {
    if (auto fault = impl_->check_arcs(arcs)) return fault;
    if (auto fault = Impl::check_once(arcs, "arcs")) return fault;
    for (const std::int32_t arc : arcs) impl_->remove_arc(arc);
    ++impl_->version;
    return std::nullopt;
}

Fault FlowNetwork::set_supply(Numbers nodes, Values supply) {
    if (auto fault = check_lengths(supply.size(), "supply", nodes.size(), "nodes")) return fault;
    if (auto fault = impl_->check_nodes(nodes, "nodes")) return fault;
    if (auto fault = check_supplies(supply)) return fault;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (std::exchange(impl_->lists.supply(nodes[i]), supply[i]) == supply[i]) continue;
        impl_->kept.supply_changed(impl_->lists, nodes[i]);
    }
    ++impl_->version;
    return std::nullopt;
}

Fault FlowNetwork::set_capacity(Numbers arcs, Values capacity) {
    if (auto fault = check_lengths(capacity.size(), "capacity", arcs.size(), "arcs")) return fault;
    if (auto fault = impl_->check_arcs(arcs)) return fault;
    if (auto fault = check_capacities(capacity)) return fault;
    for (std::size_t i = 0; i < arcs.size(); ++i) {
        const std::int64_t before = std::exchange(impl_->lists.capacity(arcs[i]), capacity[i]);
        if (before != capacity[i]) impl_->kept.capacity_changed(impl_->lists, arcs[i], before);
    }
    ++impl_->version;
    return std::nullopt;
}

Fault FlowNetwork::set_cost(Numbers arcs, Values cost) {
    if (auto fault = check_lengths(cost.size(), "cost", arcs.size(), "arcs")) return fault;
    if (auto fault = impl_->check_arcs(arcs)) return fault;
    for (std::size_t i = 0; i < arcs.size(); ++i) {
        if (std::exchange(impl_->lists.cost(arcs[i]), cost[i]) == cost[i]) continue;
        impl_->kept.cost_changed(impl_->lists, arcs[i]);
    }
    ++impl_->version;
    return std::nullopt;
}

Network FlowNetwork::network() const { return impl_->lists.network(); }
std::int32_t FlowNetwork::num_nodes() const { return impl_->lists.num_nodes(); }
std::int32_t FlowNetwork::num_arcs() const { return impl_->lists.num_arcs(); }
std::uint64_t FlowNetwork::version() const { return impl_->version; }

FlowResult FlowNetwork::Impl::solve_in_general(FlowParams params) {
    const Network network = lists.network();
    flow.resize(flow.empty() ? 0 : network.tail.size(), 0);
    potential.resize(potential.empty() ? 0 : network.supply.size(), 0);
    params.structure = false;
    params.start_flow = flow;
    params.start_potential = potential;
    FlowResult result = min_cost_flow(network, params);
    if (result.status == Status::optimal) {
        flow = result.flow;
        potential = result.potential;
    }
    return result;
}

FlowResult FlowNetwork::solve(const FlowParams& params) {
    if (params.algorithm == Algorithm::automatic && params.structure) {
        WorkMeter meter(params.stop);
        if (auto result = impl_->kept.solve(impl_->lists, meter)) {
            result->steps = meter.nodes();
            assert_proven(network(), *result);
            return std::move(*result);
        }
    }
    return impl_->solve_in_general(params);
}

}  // namespace topoplace::flow
