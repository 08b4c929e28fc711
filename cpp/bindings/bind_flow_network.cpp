#include <pybind11/stl.h>

#include "convert.hpp"
#include "flow_convert.hpp"
#include "register.hpp"
#include "topoplace/flow_network.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::flow::FlowNetwork>
    : public topoplace::bindings::HandleCaster<topoplace::flow::FlowNetwork> {};

namespace topoplace::bindings {
namespace {

using flow::FlowNetwork;
using Units = Array<std::int64_t>;
using Ends = Array<std::int32_t>;

Indices add_arcs(FlowNetwork& network, const Ends& tail, const Ends& head, const Units& capacity,
                 const Units& cost) {
    return to_row(network.add_arcs(as_span(tail), as_span(head), as_span(capacity), as_span(cost)));
}

template <class T>
Array<T> copied(std::span<const T> values) {
    return Array<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// Tail, head, capacity, cost, supply.
using Columns = py::typing::Tuple<Ends, Ends, Units, Units, Units>;

Columns columns(const FlowNetwork& network) {
    const flow::Network view = network.network();
    return py::make_tuple(copied(view.tail), copied(view.head), copied(view.capacity), copied(view.cost),
                          copied(view.supply));
}

Solved solve(FlowNetwork& network, const std::string& algorithm, std::optional<double> timeout,
             std::optional<std::uint64_t> max_nodes) {
    flow::FlowParams params;
    params.algorithm = to_algorithm(algorithm);
    params.deadline = to_deadline(timeout, max_nodes);
    return to_tuple(without_gil<flow::FlowResult>([&] { return network.solve(params); }));
}

}  // namespace

void register_flow_network(py::module_& module) {
    py::class_<FlowNetwork>(module, "FlowNetwork", "A network that is kept and changed between solutions.")
        .def(py::init<>())
        .def("add_nodes", [](FlowNetwork& network,
                             const Units& supply) { return to_row(network.add_nodes(as_span(supply))); })
        .def("add_arcs", &add_arcs)
        .def("remove_nodes",
             [](FlowNetwork& network, const Ends& nodes) { network.remove_nodes(as_span(nodes)); })
        .def("remove_arcs",
             [](FlowNetwork& network, const Ends& arcs) { network.remove_arcs(as_span(arcs)); })
        .def("set_supply", [](FlowNetwork& network, const Ends& nodes,
                              const Units& supply) { network.set_supply(as_span(nodes), as_span(supply)); })
        .def("set_capacity",
             [](FlowNetwork& network, const Ends& arcs, const Units& capacity) {
                 network.set_capacity(as_span(arcs), as_span(capacity));
             })
        .def("set_cost", [](FlowNetwork& network, const Ends& arcs,
                            const Units& cost) { network.set_cost(as_span(arcs), as_span(cost)); })
        .def_property_readonly("num_nodes", &FlowNetwork::num_nodes)
        .def_property_readonly("num_arcs", &FlowNetwork::num_arcs)
        .def_property_readonly("version", &FlowNetwork::version)
        .def("columns", &columns)
        .def("solve", &solve);
}

}  // namespace topoplace::bindings
