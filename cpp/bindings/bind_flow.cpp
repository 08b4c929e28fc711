// Binds minimum-cost flow and its verifiers.
#include <pybind11/stl.h>

#include "convert.hpp"
#include "flow_convert.hpp"
#include "register.hpp"
#include "topoplace/flow.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using Units = Array<std::int64_t>;
using Ends = Array<std::int32_t>;
using MaybeUnits = std::optional<Units>;
// The total of a Python integer; nothing where it is beyond 128 bits, which no total is.
std::optional<flow::Total> to_total(const py::int_& value) {
    const py::object high = value >> py::int_(64);
    const py::object low = value & py::int_(std::numeric_limits<std::uint64_t>::max());
    int overflow = 0;
    const long long upper = PyLong_AsLongLongAndOverflow(high.ptr(), &overflow);
    if (overflow != 0) return std::nullopt;
    return (flow::Total{upper} << 64) + low.cast<std::uint64_t>();
}

template <class T>
std::span<const T> one_dimensional(const Array<T>& array, const char* name) {
    check_shape(array, name, {-1});
    return as_span(array);
}

flow::Network to_network(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                         const Units& capacity, const Units& cost, const Units& supply) {
    return {.num_nodes = num_nodes,
            .tail = one_dimensional(tail, "tail"),
            .head = one_dimensional(head, "head"),
            .lower = lower ? one_dimensional(*lower, "lower") : std::span<const std::int64_t>{},
            .capacity = one_dimensional(capacity, "capacity"),
            .cost = one_dimensional(cost, "cost"),
            .supply = one_dimensional(supply, "supply")};
}

FlowAnswer min_cost_flow(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                         const Units& capacity, const Units& cost, const Units& supply,
                         const std::string& algorithm, bool structure, const MaybeUnits& start_flow,
                         const MaybeUnits& start_potential, std::optional<double> timeout,
                         std::optional<std::uint64_t> max_nodes) {
    const auto network = to_network(num_nodes, tail, head, lower, capacity, cost, supply);
    flow::FlowParams params;
    params.algorithm = to_algorithm(algorithm);
    params.structure = structure;
    if (start_flow) params.start_flow = one_dimensional(*start_flow, "start_flow");
    if (start_potential) params.start_potential = one_dimensional(*start_potential, "start_potential");
    params.stop = to_stop_condition(timeout, max_nodes);
    return to_answer(without_gil<flow::FlowResult>([&] { return flow::min_cost_flow(network, params); }));
}

bool verify_flow(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                 const Units& capacity, const Units& cost, const Units& supply, const Units& units,
                 const Units& potential, const py::int_& total) {
    const auto network = to_network(num_nodes, tail, head, lower, capacity, cost, supply);
    const auto known = to_total(total);
    const py::gil_scoped_release release;
    return known && !flow::verify_flow(network, as_span(units), as_span(potential), *known);
}

bool verify_infeasible(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                       const Units& capacity, const Units& cost, const Units& supply, const Ends& cut) {
    return !flow::verify_infeasible(to_network(num_nodes, tail, head, lower, capacity, cost, supply),
                                    as_span(cut));
}

bool verify_unbounded(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                      const Units& capacity, const Units& cost, const Units& supply, const Ends& cycle) {
    return !flow::verify_unbounded(to_network(num_nodes, tail, head, lower, capacity, cost, supply),
                                   as_span(cycle));
}

// Defines a function whose arguments begin with those of a network.
template <class Function, class... Rest>
void define(py::module_& module, const char* name, Function* function, const Rest&... rest) {
    module.def(name, function, py::arg("num_nodes"), py::arg("tail").noconvert(), py::arg("head").noconvert(),
               py::arg("lower").noconvert(), py::arg("capacity").noconvert(), py::arg("cost").noconvert(),
               py::arg("supply").noconvert(), rest...);
}

}  // namespace

void register_flow(py::module_& module) {
    py::class_<FlowAnswer>(module, "FlowAnswer", "The answer of `min_cost_flow`.")
        .def_readonly("status", &FlowAnswer::status, "optimal, infeasible, unbounded or timeout.")
        .def_readonly("flow", &FlowAnswer::flow)
        .def_readonly("potential", &FlowAnswer::potential)
        .def_readonly("cost", &FlowAnswer::cost)
        .def_readonly("cut", &FlowAnswer::cut)
        .def_readonly("cycle", &FlowAnswer::cycle)
        .def_readonly("algorithm", &FlowAnswer::algorithm)
        .def_readonly("steps", &FlowAnswer::steps);
    define(module, "min_cost_flow", &min_cost_flow, py::arg("algorithm"), py::arg("structure"),
           py::arg("start_flow").noconvert(), py::arg("start_potential").noconvert(), py::arg("timeout"),
           py::arg("max_nodes"));
    define(module, "verify_flow", &verify_flow, py::arg("flow").noconvert(), py::arg("potential").noconvert(),
           py::arg("total"));
    define(module, "verify_infeasible", &verify_infeasible, py::arg("cut").noconvert());
    define(module, "verify_unbounded", &verify_unbounded, py::arg("cycle").noconvert());
}

}  // namespace topoplace::bindings
