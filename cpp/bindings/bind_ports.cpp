// Binds networks of ports, and the time that flows take in them.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/max_min.hpp"
#include "topoplace/port_network.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using ports::FlowCounts;
using ports::PhaseTime;
using ports::PortNetwork;
using Ints = Array<std::int32_t>;
using Reals = Array<double>;
using Times = std::vector<std::tuple<double, std::int32_t, double>>;  // seconds, slowest hop, port-seconds

std::unique_ptr<PortNetwork> make_network(std::int32_t num_vertices, const Reals& gb_per_s, const Ints& entry,
                                          const Ints& segment_of, const Ints& domain, const Ints& uplink,
                                          const Ints& links, const Array<std::uint8_t>& is_slower,
                                          const Ints& access, const Ints& group, const Ints& lane) {
    const ports::NetworkParams params{.num_vertices = num_vertices,
                                      .gb_per_s = as_span(gb_per_s),
                                      .entry = as_span(entry),
                                      .segment_of = as_span(segment_of),
                                      .domain = as_span(domain),
                                      .uplink = as_span(uplink),
                                      .links = as_span(links),
                                      .is_slower = as_span(is_slower),
                                      .access = as_span(access),
                                      .group = as_span(group),
                                      .lane = as_span(lane)};
    require(PortNetwork::check(params));
    return std::make_unique<PortNetwork>(params);
}

std::vector<std::int32_t> route(const PortNetwork& network, std::int32_t from, std::int32_t to) {
    std::vector<std::int32_t> hops;
    if (!network.route(from, to, hops)) hops.assign(1, ports::kNone);
    return hops;
}

Times rows_of(const std::vector<PhaseTime>& found) {
    Times times;
    for (const PhaseTime& one : found) times.emplace_back(one.seconds, one.slowest, one.port_seconds);
    return times;
}

Times times_of(const PortNetwork& network, const std::vector<std::int64_t>& phase_ends,
               const ports::Flows& flows, const FlowCounts* others) {
    return rows_of(without_gil<std::vector<PhaseTime>>([&] {
        require(ports::check(phase_ends, flows, network.num_vertices()));
        return ports::phase_times(network, phase_ends, flows, others);
    }));
}

Times phase_times(const PortNetwork& network, const std::vector<std::int64_t>& phase_ends, const Ints& from,
                  const Ints& to, const Reals& there, const Reals& back) {
    return times_of(network, phase_ends, {as_span(from), as_span(to), as_span(there), as_span(back)},
                    nullptr);
}

Times phase_times_beside(const PortNetwork& network, const std::vector<std::int64_t>& phase_ends,
                         const Ints& from, const Ints& to, const Reals& there, const Reals& back,
                         const FlowCounts& others) {
    return times_of(network, phase_ends, {as_span(from), as_span(to), as_span(there), as_span(back)},
                    &others);
}

// The phases of the first job, whether they are complete, and nodes.
std::tuple<Times, bool, std::uint64_t> max_min_times(
    const PortNetwork& network,
    const std::vector<std::tuple<std::vector<std::int64_t>, Ints, Ints, Reals, Reals, Reals>>& jobs,
    std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    std::vector<ports::SharingJob> given;
    for (const auto& [phase_ends, from, to, there, back, at_least] : jobs) {
        given.push_back({.phase_ends = phase_ends,
                         .flows = {as_span(from), as_span(to), as_span(there), as_span(back)},
                         .at_least = as_span(at_least)});
    }
    const StopCondition stop = to_stop_condition(timeout, max_nodes);
    const auto found = without_gil<ports::MaxMinTimes>([&] {
        require(ports::check(network, given));
        return ports::max_min_times(network, given, stop);
    });
    return {rows_of(found.phases), found.complete, found.nodes};
}

void add(FlowCounts& counts, const Ints& from, const Ints& to, const Reals& there, const Reals& back) {
    const ports::Flows flows{as_span(from), as_span(to), as_span(there), as_span(back)};
    require(ports::check(flows, counts.network().num_vertices()));
    counts.add(flows);
}

void remove(FlowCounts& counts, const Ints& from, const Ints& to, const Reals& there, const Reals& back) {
    const ports::Flows flows{as_span(from), as_span(to), as_span(there), as_span(back)};
    require(ports::check(flows, counts.network().num_vertices()));
    require(counts.remove(flows));
}

py::array_t<double> counted(const FlowCounts& counts, const Ints& hops, double most) {
    std::vector<double> found;
    for (const std::int32_t hop : as_span(hops)) {
        require(counts.check(hop));
        found.push_back(counts.counted(hop, most));
    }
    return to_row(std::move(found));
}

// (sets, size) vertices, seconds and port-seconds of each.
std::tuple<py::array_t<std::int32_t>, py::array_t<double>, py::array_t<double>> best_orders(
    const PortNetwork& network, const std::vector<std::int64_t>& phase_ends, const Ints& from, const Ints& to,
    const Reals& there, const Reals& back, const Ints& sets) {
    check_shape(sets, "sets", {-1, -1});
    const ports::Flows flows{as_span(from), as_span(to), as_span(there), as_span(back)};
    const auto size = static_cast<std::int32_t>(sets.shape(1));
    const StopCondition stop = to_stop_condition({});
    const auto found = without_gil<std::vector<ports::Order>>([&] {
        require(ports::check(network, phase_ends, flows, size, as_span(sets)));
        return ports::best_orders(network, phase_ends, flows, size, as_span(sets), stop);
    });
    std::vector<std::int32_t> vertices;
    std::vector<double> seconds, port_seconds;
    for (const ports::Order& one : found) {
        vertices.insert(vertices.end(), one.vertices.begin(), one.vertices.end());
        seconds.push_back(one.seconds);
        port_seconds.push_back(one.port_seconds);
    }
    return {to_array(std::move(vertices), {sets.shape(0), sets.shape(1)}), to_row(std::move(seconds)),
            to_row(std::move(port_seconds))};
}

}  // namespace

void register_ports(py::module_& module) {
    py::class_<PortNetwork> network(module, "PortNetwork");  // both are known to the signatures below
    py::class_<FlowCounts> counts(module, "FlowCounts");
    network
        .def(py::init(&make_network), py::arg("num_vertices"), py::arg("gb_per_s").noconvert(),
             py::arg("entry").noconvert(), py::arg("segment_of").noconvert(), py::arg("domain").noconvert(),
             py::arg("uplink").noconvert(), py::arg("links").noconvert(), py::arg("is_slower").noconvert(),
             py::arg("access").noconvert(), py::arg("group").noconvert(), py::arg("lane").noconvert())
        .def("route", &route, py::arg("start"), py::arg("end"), "Hops, or [-1] without a path.")
        .def("best_orders", &best_orders, py::arg("phase_ends"), py::arg("start").noconvert(),
             py::arg("end").noconvert(), py::arg("there").noconvert(), py::arg("back").noconvert(),
             py::arg("sets").noconvert())
        .def("max_min_times", &max_min_times, py::arg("jobs"), py::arg("timeout"), py::arg("max_nodes"))
        .def("phase_times", &phase_times, py::arg("phase_ends"), py::arg("start").noconvert(),
             py::arg("end").noconvert(), py::arg("there").noconvert(), py::arg("back").noconvert())
        .def("phase_times_beside", &phase_times_beside, py::arg("phase_ends"), py::arg("start").noconvert(),
             py::arg("end").noconvert(), py::arg("there").noconvert(), py::arg("back").noconvert(),
             py::arg("others"));
    counts.def(py::init<const PortNetwork&>(), py::keep_alive<1, 2>(), py::arg("network"))
        .def("add", &add, py::arg("start").noconvert(), py::arg("end").noconvert(),
             py::arg("there").noconvert(), py::arg("back").noconvert())
        .def("remove", &remove, py::arg("start").noconvert(), py::arg("end").noconvert(),
             py::arg("there").noconvert(), py::arg("back").noconvert())
        .def("counted", &counted, py::arg("hops").noconvert(), py::arg("most"));
}

}  // namespace topoplace::bindings
