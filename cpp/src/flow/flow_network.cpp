// FlowNetwork: checks changes, applies them to the columns, and reports them to the assignment that is kept.
#include "topoplace/flow_network.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
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

[[noreturn]] void refuse(const char* name, std::size_t i, std::int64_t value, const char* why) {
    throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) +
                                ": " + why);
}

void check_lengths(std::size_t length, const char* name, std::size_t other, const char* others) {
    if (length == other) return;
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(length) + " values, " + others +
                                " has " + std::to_string(other));
}

void check_capacities(Values capacity) {
    for (std::size_t i = 0; i < capacity.size(); ++i) {
        if (capacity[i] < 0) refuse("capacity", i, capacity[i], "capacities are not negative");
    }
}

void check_supplies(Values supply) {
    for (std::size_t i = 0; i < supply.size(); ++i) {
        if (supply[i] == std::numeric_limits<std::int64_t>::min())
            refuse("supply", i, supply[i], "supplies are above -2^63");
    }
}

}  // namespace

struct FlowNetwork::Impl {
    ArcLists lists;
    KeptAssignment kept;
    // Of a network that is no scheduling graph: the last solution, and how many nodes and arcs it knew.
    std::vector<std::int64_t> flow;
    std::vector<std::int64_t> potential;
    std::uint64_t version = 0;

    void check_nodes(Numbers nodes, const char* name) const {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (!lists.has_node(nodes[i])) refuse(name, i, nodes[i], "there is no such node");
        }
    }
    void check_arcs(Numbers arcs) const {
        for (std::size_t i = 0; i < arcs.size(); ++i) {
            if (!lists.has_arc(arcs[i])) refuse("arcs", i, arcs[i], "there is no such arc");
        }
    }
    static void check_once(Numbers numbers, const char* name) {
        std::unordered_set<std::int32_t> seen;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (!seen.insert(numbers[i]).second) refuse(name, i, numbers[i], "given twice");
        }
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

std::vector<std::int32_t> FlowNetwork::add_nodes(Values supply) {
    check_supplies(supply);
    std::vector<std::int32_t> nodes;
    for (const std::int64_t units : supply) {
        nodes.push_back(impl_->lists.add_node(units));
        impl_->kept.node_added(nodes.back());
    }
    ++impl_->version;
    return nodes;
}

std::vector<std::int32_t> FlowNetwork::add_arcs(Numbers tail, Numbers head, Values capacity, Values cost) {
    check_lengths(head.size(), "head", tail.size(), "tail");
    check_lengths(capacity.size(), "capacity", tail.size(), "tail");
    check_lengths(cost.size(), "cost", tail.size(), "tail");
    impl_->check_nodes(tail, "tail");
    impl_->check_nodes(head, "head");
    check_capacities(capacity);
    std::vector<std::int32_t> arcs;
    for (std::size_t i = 0; i < tail.size(); ++i) {
        arcs.push_back(impl_->lists.add_arc(tail[i], head[i], capacity[i], cost[i]));
        impl_->kept.arc_added(impl_->lists, arcs.back());
    }
    ++impl_->version;
    return arcs;
}

void FlowNetwork::remove_nodes(Numbers nodes) {
    impl_->check_nodes(nodes, "nodes");
    Impl::check_once(nodes, "nodes");
    for (const std::int32_t node : nodes) {
        impl_->kept.node_leaves(impl_->lists, node);
        for (const std::int32_t arc : impl_->lists.arcs_from(node)) impl_->remove_arc(arc);
        for (const std::int32_t arc : impl_->lists.arcs_to(node)) impl_->remove_arc(arc);
        impl_->lists.remove_node(node);
    }
    ++impl_->version;
}

void FlowNetwork::remove_arcs(Numbers arcs) {
    impl_->check_arcs(arcs);
    Impl::check_once(arcs, "arcs");
    for (const std::int32_t arc : arcs) impl_->remove_arc(arc);
    ++impl_->version;
}

void FlowNetwork::set_supply(Numbers nodes, Values supply) {
    check_lengths(supply.size(), "supply", nodes.size(), "nodes");
    impl_->check_nodes(nodes, "nodes");
    check_supplies(supply);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (std::exchange(impl_->lists.supply(nodes[i]), supply[i]) == supply[i]) continue;
        impl_->kept.supply_changed(impl_->lists, nodes[i]);
    }
    ++impl_->version;
}

void FlowNetwork::set_capacity(Numbers arcs, Values capacity) {
    check_lengths(capacity.size(), "capacity", arcs.size(), "arcs");
    impl_->check_arcs(arcs);
    check_capacities(capacity);
    for (std::size_t i = 0; i < arcs.size(); ++i) {
        const std::int64_t before = std::exchange(impl_->lists.capacity(arcs[i]), capacity[i]);
        if (before != capacity[i]) impl_->kept.capacity_changed(impl_->lists, arcs[i], before);
    }
    ++impl_->version;
}

void FlowNetwork::set_cost(Numbers arcs, Values cost) {
    check_lengths(cost.size(), "cost", arcs.size(), "arcs");
    impl_->check_arcs(arcs);
    for (std::size_t i = 0; i < arcs.size(); ++i) {
        if (std::exchange(impl_->lists.cost(arcs[i]), cost[i]) == cost[i]) continue;
        impl_->kept.cost_changed(impl_->lists, arcs[i]);
    }
    ++impl_->version;
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
        NodeCounter counter(params.deadline);
        if (auto result = impl_->kept.solve(impl_->lists, counter)) {
            result->steps = counter.nodes();
            assert_proven(network(), *result);
            return std::move(*result);
        }
    }
    return impl_->solve_in_general(params);
}

}  // namespace topoplace::flow
