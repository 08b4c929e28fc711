// Binds what collective operations can carry: cuts between terminals, and rings.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/ring_packing.hpp"
#include "topoplace/ring_rates.hpp"
#include "topoplace/terminal_cuts.hpp"
#include "topoplace/tree_packing.hpp"

namespace topoplace::bindings {

using collective::ChannelRules;

}  // namespace topoplace::bindings

template <>
class pybind11::detail::type_caster<topoplace::collective::TerminalGraph>
    : public topoplace::bindings::HandleCaster<topoplace::collective::TerminalGraph> {};
template <>
class pybind11::detail::type_caster<topoplace::collective::RingNetwork>
    : public topoplace::bindings::HandleCaster<topoplace::collective::RingNetwork> {};
template <>
class pybind11::detail::type_caster<topoplace::collective::ChannelRules>
    : public topoplace::bindings::HandleCaster<topoplace::collective::ChannelRules> {};

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using collective::CutParams;
using collective::RingNetwork;
using collective::TerminalGraph;
using Numbers = std::vector<std::int32_t>;
using Rings = std::vector<std::pair<Numbers, std::int32_t>>;  // the order of the terminals, and how often
using RouteRow = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t,
                            std::vector<std::pair<std::int32_t, std::int32_t>>>;

std::unique_ptr<TerminalGraph> make_graph(
    std::int32_t num_vertices, std::int32_t num_terminals,
    const std::vector<std::tuple<std::int32_t, std::int32_t, std::int64_t>>& arcs) {
    std::vector<collective::Arc> list;
    for (const auto& [tail, head, capacity] : arcs) list.push_back({tail, head, capacity});
    require(TerminalGraph::check(num_vertices, num_terminals, list));
    return std::make_unique<TerminalGraph>(num_vertices, num_terminals, std::move(list));
}

std::tuple<std::int64_t, Numbers, bool, std::uint64_t> least_max_flow(const TerminalGraph& graph,
                                                                      const Numbers& chosen,
                                                                      bool relay_others,
                                                                      std::optional<double> timeout) {
    const CutParams params{chosen, relay_others, to_stop_condition(timeout)};
    auto found = without_gil<collective::LeastFlow>([&] {
        require(check(graph, params));
        return collective::least_max_flow(graph, params);
    });
    return {found.value, std::move(found.side), found.complete, found.flows};
}

std::tuple<std::int64_t, std::int64_t, Numbers, bool, std::uint64_t> throughput_bound(
    const TerminalGraph& graph, const Numbers& chosen, bool relay_others, std::optional<double> timeout) {
    const CutParams params{chosen, relay_others, to_stop_condition(timeout)};
    auto found = without_gil<collective::ThroughputBound>([&] {
        require(check(graph, params));
        return collective::throughput_bound(graph, params);
    });
    return {found.terminals, found.capacity, std::move(found.side), found.complete, found.flows};
}

Fault verify_least_flow(const TerminalGraph& graph, const Numbers& chosen, bool relay_others,
                        std::int64_t value, const Numbers& side) {
    return collective::verify_least_flow(graph, {chosen, relay_others, {}}, {value, side});
}

Fault verify_throughput(const TerminalGraph& graph, const Numbers& chosen, bool relay_others,
                        std::int64_t terminals, std::int64_t capacity, const Numbers& side) {
    return collective::verify_throughput(graph, {chosen, relay_others, {}}, {terminals, capacity, side});
}

using WayRow = std::pair<Numbers, std::int64_t>;
using HopRow = std::tuple<std::int32_t, std::int32_t, std::vector<WayRow>>;
using TreeRow = std::tuple<std::int32_t, std::int64_t, std::vector<HopRow>>;

std::vector<TreeRow> to_rows(std::vector<collective::Tree>&& trees) {
    std::vector<TreeRow> rows;
    for (collective::Tree& tree : trees) {
        std::vector<HopRow> hops;
        for (collective::TreeHop& hop : tree.hops) {
            std::vector<WayRow> ways;
            for (collective::HopWay& way : hop.ways) ways.emplace_back(std::move(way.vertices), way.count);
            hops.emplace_back(hop.from, hop.to, std::move(ways));
        }
        rows.emplace_back(tree.root, tree.count, std::move(hops));
    }
    return rows;
}

std::vector<collective::Tree> to_trees(const std::vector<TreeRow>& rows) {
    std::vector<collective::Tree> trees;
    for (const auto& [root, count, hops] : rows) {
        trees.push_back({root, count, {}});
        for (const auto& [from, to, ways] : hops) {
            trees.back().hops.push_back({from, to, {}});
            for (const auto& [vertices, some] : ways)
                trees.back().hops.back().ways.push_back({vertices, some});
        }
    }
    return trees;
}

std::tuple<std::vector<TreeRow>, std::int64_t, std::int64_t, std::int64_t, bool, std::uint64_t> pack_trees(
    const TerminalGraph& graph, const Numbers& chosen, bool relay_others, std::optional<double> timeout) {
    const CutParams params{chosen, relay_others, to_stop_condition(timeout)};
    auto found = without_gil<collective::TreePacking>([&] {
        require(collective::check_trees(graph, params));
        return collective::pack_trees(graph, params);
    });
    return {to_rows(std::move(found.trees)), found.per_root, found.rate_numerator,
            found.rate_denominator,          found.complete, found.flows};
}

Fault verify_trees(const TerminalGraph& graph, const Numbers& chosen, bool relay_others,
                   const std::vector<TreeRow>& trees, std::int64_t per_root, std::int64_t rate_numerator,
                   std::int64_t rate_denominator) {
    return collective::verify_trees(graph, {chosen, relay_others, {}},
                                    {to_trees(trees), per_root, rate_numerator, rate_denominator});
}

std::unique_ptr<RingNetwork> make_network(std::int32_t num_terminals, std::vector<std::int64_t> capacities,
                                          const std::vector<RouteRow>& routes,
                                          const std::vector<std::pair<std::uint64_t, Numbers>>& cuts) {
    std::vector<collective::Route> list;
    for (const auto& [from, to, relay, level, uses] : routes) {
        list.push_back({from, to, relay, level, {}});
        for (const auto& [link, thousandths] : uses) list.back().uses.push_back({link, thousandths});
    }
    std::vector<collective::LinkCut> link_cuts;
    for (const auto& [near, links] : cuts) link_cuts.push_back({near, links});
    require(RingNetwork::check(num_terminals, capacities, list, link_cuts));
    return std::make_unique<RingNetwork>(num_terminals, std::move(capacities), std::move(list),
                                         std::move(link_cuts));
}

Rings to_rings(std::vector<collective::Ring>&& rings) {
    Rings found;
    for (collective::Ring& ring : rings) found.emplace_back(std::move(ring.terminals), ring.count);
    return found;
}

std::tuple<Rings, std::int32_t, std::int32_t, bool, bool, std::uint64_t> pack_rings(
    const RingNetwork& network, const Numbers& chosen, std::int64_t rate, std::int32_t level,
    std::int32_t max_rings, bool equal, std::optional<double> timeout,
    std::optional<std::uint64_t> max_nodes) {
    const collective::PackParams params{rate, level, max_rings, equal, to_stop_condition(timeout, max_nodes)};
    auto found = without_gil<collective::RingPacking>([&] {
        require(check(params));
        require(collective::check(network, chosen));
        return collective::pack_rings(network, chosen, params);
    });
    return {to_rings(std::move(found.rings)),
            found.count,
            found.bound,
            found.optimal,
            found.complete,
            found.nodes};
}

Fault verify_rings(const RingNetwork& network, const Numbers& chosen, std::int64_t rate, std::int32_t level,
                   std::int32_t max_rings, bool equal, const Rings& rings) {
    std::vector<collective::Ring> list;
    for (const auto& [order, count] : rings) list.push_back({order, count});
    return collective::verify_rings(network, chosen, {rate, level, max_rings, equal, {}}, list);
}

std::unique_ptr<ChannelRules> make_rules(std::vector<std::int64_t> rates, std::int32_t max_channels,
                                         std::int32_t slowest_thousandths, std::int64_t split_rate,
                                         std::int64_t whole_rate, std::int32_t whole_count,
                                         std::int32_t equal_level, std::int32_t group_level,
                                         std::uint64_t max_nodes) {
    collective::ChannelParams params{{},          max_channels, slowest_thousandths, split_rate, whole_rate,
                                     whole_count, equal_level,  group_level,         {}};
    params.stop.max_nodes = max_nodes;
    return std::make_unique<ChannelRules>(ChannelRules{std::move(rates), params});
}

collective::Channels channels_of(const RingNetwork& network, const Numbers& chosen,
                                 const ChannelRules& rules) {
    collective::ChannelParams params = rules.params;
    params.rates = rules.rates;
    params.stop.interrupted = signal_pending;
    return without_gil<collective::Channels>([&] {
        require(check(params));
        require(collective::check(network, chosen));
        return collective::best_channels(network, chosen, params);
    });
}

std::tuple<Rings, std::int32_t, std::int64_t, std::int32_t, bool, std::uint64_t> best_channels(
    const RingNetwork& network, const Numbers& chosen, const ChannelRules& rules) {
    auto found = channels_of(network, chosen, rules);
    return {
        to_rings(std::move(found.rings)), found.count, found.rate, found.level, found.complete, found.nodes};
}

std::int64_t channel_rate(const RingNetwork& network, const Numbers& chosen, const ChannelRules& rules) {
    return channels_of(network, chosen, rules).total();
}

std::unique_ptr<collective::RingRates> make_ring_rates(const RingNetwork& network, const Numbers& class_of,
                                                       std::vector<ChannelRules> rules,
                                                       std::vector<ChannelRules> slower,
                                                       const std::vector<double>& per_unit) {
    collective::RingRatesParams params{
        .class_of = class_of, .rules = std::move(rules), .slower = std::move(slower)};
    if (per_unit.size() != params.per_unit.size()) throw std::invalid_argument("per_unit has not 16 entries");
    std::ranges::copy(per_unit, params.per_unit.begin());
    require(collective::RingRates::check(network, params));
    return std::make_unique<collective::RingRates>(network, params);
}

void register_cuts(py::module_& module) {
    py::class_<TerminalGraph>(module, "TerminalGraph",
                              "A directed graph with capacities; its first vertices are terminals.")
        .def(py::init(&make_graph), py::arg("num_vertices"), py::arg("num_terminals"), py::arg("arcs"));
    module.def("least_max_flow", &least_max_flow, py::arg("graph"), py::arg("chosen"),
               py::arg("relay_others"), py::arg("timeout"), "Value, side, complete, flows.");
    module.def("throughput_bound", &throughput_bound, py::arg("graph"), py::arg("chosen"),
               py::arg("relay_others"), py::arg("timeout"), "Terminals, capacity, side, complete, flows.");
    module.def("verify_least_flow", &verify_least_flow, py::arg("graph"), py::arg("chosen"),
               py::arg("relay_others"), py::arg("value"), py::arg("side"), "The first fault, or None.");
    module.def("verify_throughput", &verify_throughput, py::arg("graph"), py::arg("chosen"),
               py::arg("relay_others"), py::arg("terminals"), py::arg("capacity"), py::arg("side"),
               "The first fault, or None.");
    module.def("pack_trees", &pack_trees, py::arg("graph"), py::arg("chosen"), py::arg("relay_others"),
               py::arg("timeout"), "Trees, number per root, rate (two numbers), complete, flows.");
    module.def("verify_trees", &verify_trees, py::arg("graph"), py::arg("chosen"), py::arg("relay_others"),
               py::arg("trees"), py::arg("per_root"), py::arg("rate_numerator"), py::arg("rate_denominator"),
               "The first fault, or None.");
}

}  // namespace

void register_collective(py::module_& module) {
    register_cuts(module);
    py::class_<RingNetwork>(module, "RingNetwork", "Links, and routes over them between terminals.")
        .def(py::init(&make_network), py::arg("num_terminals"), py::arg("capacities"), py::arg("routes"),
             py::arg("cuts"),
             "routes: (from, to, relay or -1, level, [(link, thousandths)]). cuts: (near, links).");
    py::class_<ChannelRules>(module, "ChannelRules", "How channels of the best rate are looked for.")
        .def(py::init(&make_rules), py::arg("rates"), py::arg("max_channels"), py::arg("slowest_thousandths"),
             py::arg("split_rate"), py::arg("whole_rate"), py::arg("whole_count"), py::arg("equal_level"),
             py::arg("group_level"), py::arg("max_nodes"));
    py::class_<collective::RingRates>(module, "RingRates", "What rings among any terminals carry.")
        .def(py::init(&make_ring_rates), py::keep_alive<1, 2>(), py::arg("network"), py::arg("class_of"),
             py::arg("rules"), py::arg("slower"), py::arg("per_unit"));
    module.def("pack_rings", &pack_rings, py::arg("network"), py::arg("chosen"), py::arg("rate"),
               py::arg("level"), py::arg("max_rings"), py::arg("equal"), py::arg("timeout"),
               py::arg("max_nodes"), "Rings with their numbers, count, bound, optimal, complete, nodes.");
    module.def("verify_rings", &verify_rings, py::arg("network"), py::arg("chosen"), py::arg("rate"),
               py::arg("level"), py::arg("max_rings"), py::arg("equal"), py::arg("rings"),
               "The first fault, or None.");
    module.def("best_channels", &best_channels, py::arg("network"), py::arg("chosen"), py::arg("rules"),
               "Rings with their numbers, count, rate, level, complete, nodes.");
    module.def("channel_rate", &channel_rate, py::arg("network"), py::arg("chosen"), py::arg("rules"),
               "The rate of the best channels together.");
}

}  // namespace topoplace::bindings
