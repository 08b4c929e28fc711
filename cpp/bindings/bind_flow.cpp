// Binds minimum-cost flow and its verifiers.
#include <pybind11/stl.h>

#include "convert.hpp"
#include "flow_convert.hpp"
#include "register.hpp"
#include "topoplace/flow.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using Units = Row<std::int64_t>;
using Ends = Row<std::int32_t>;
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

// True if these are columns of one network, as `to_network` takes them; what they hold is not looked at.
bool are_columns(py::handle num_nodes, py::handle tail, py::handle head, py::handle lower,
                 py::handle capacity, py::handle cost, py::handle supply) {
    if (!PyLong_CheckExact(num_nodes.ptr()) || !is_row<std::int32_t>(tail)) return false;
    const std::size_t arcs = row_of<std::int32_t>(tail).size();
    const auto has_units = [](py::handle column, std::size_t length) {
        return is_row<std::int64_t>(column) && row_of<std::int64_t>(column).size() == length;
    };
    if (!is_row<std::int32_t>(head) || row_of<std::int32_t>(head).size() != arcs) return false;
    if (!lower.is_none() && !has_units(lower, arcs)) return false;
    if (!has_units(capacity, arcs) || !has_units(cost, arcs) || !is_row<std::int64_t>(supply)) return false;
    int overflow = 0;
    const long long nodes = PyLong_AsLongLongAndOverflow(num_nodes.ptr(), &overflow);
    return nodes >= 0 && static_cast<std::size_t>(nodes) == row_of<std::int64_t>(supply).size() &&
           nodes < std::numeric_limits<std::int32_t>::max();
}

flow::Network to_network(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                         const Units& capacity, const Units& cost, const Units& supply) {
    return {.num_nodes = num_nodes,
            .tail = tail.values,
            .head = head.values,
            .lower = lower ? lower->values : std::span<const std::int64_t>{},
            .capacity = capacity.values,
            .cost = cost.values,
            .supply = supply.values};
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
    if (start_flow) params.start_flow = start_flow->values;
    if (start_potential) params.start_potential = start_potential->values;
    params.stop = to_stop_condition(timeout, max_nodes);
    return to_answer(without_gil<flow::FlowResult>([&] { return flow::min_cost_flow(network, params); }));
}

// As `min_cost_flow` without options, of columns that are taken as they are; nothing where some are not. One
// call with arguments that need no conversion: others would take longer than the solution of a small network.
std::optional<FlowAnswer> solve_columns(py::handle num_nodes, py::handle tail, py::handle head,
                                        py::handle lower, py::handle capacity, py::handle cost,
                                        py::handle supply) {
    if (!are_columns(num_nodes, tail, head, lower, capacity, cost, supply)) return std::nullopt;
    const flow::Network network{
        .num_nodes = static_cast<std::int32_t>(row_of<std::int64_t>(supply).size()),
        .tail = row_of<std::int32_t>(tail),
        .head = row_of<std::int32_t>(head),
        .lower = lower.is_none() ? std::span<const std::int64_t>{} : row_of<std::int64_t>(lower),
        .capacity = row_of<std::int64_t>(capacity),
        .cost = row_of<std::int64_t>(cost),
        .supply = row_of<std::int64_t>(supply)};
    flow::FlowParams params;
    params.stop = to_stop_condition({});
    return to_answer(without_gil<flow::FlowResult>([&] { return flow::min_cost_flow(network, params); }));
}

bool verify_flow(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                 const Units& capacity, const Units& cost, const Units& supply, const Units& units,
                 const Units& potential, const py::int_& total) {
    const auto network = to_network(num_nodes, tail, head, lower, capacity, cost, supply);
    const auto known = to_total(total);
    const py::gil_scoped_release release;
    require(flow::check_columns(network));
    return known && !flow::verify_flow(network, units.values, potential.values, *known);
}

bool verify_infeasible(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                       const Units& capacity, const Units& cost, const Units& supply, const Ends& cut) {
    const auto network = to_network(num_nodes, tail, head, lower, capacity, cost, supply);
    require(flow::check_columns(network));
    return !flow::verify_infeasible(network, cut.values);
}

bool verify_unbounded(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                      const Units& capacity, const Units& cost, const Units& supply, const Ends& cycle) {
    const auto network = to_network(num_nodes, tail, head, lower, capacity, cost, supply);
    require(flow::check_columns(network));
    return !flow::verify_unbounded(network, cycle.values);
}

// Defines a function whose arguments begin with those of a network.
template <class Function, class... Rest>
void define(py::module_& module, const char* name, Function* function, const Rest&... rest) {
    module.def(name, function, py::arg("num_nodes"), py::arg("tail"), py::arg("head"), py::arg("lower"),
               py::arg("capacity"), py::arg("cost"), py::arg("supply"), rest...);
}

// Reads one of the rows of an answer.
template <class T>
auto reading(LateRow<T> FlowAnswer::* row) {
    return [row](const py::object& answer) -> py::array_t<T> {
        return (answer.cast<FlowAnswer&>().*row).read(answer);
    };
}

// An answer as its fields, for pickle.
using Fields = std::tuple<int, Numbers, Numbers, py::int_, Indices, Indices, int, std::uint64_t>;

Fields to_fields(const py::object& self) {
    auto& answer = self.cast<FlowAnswer&>();
    return {static_cast<int>(answer.status),
            answer.flow.read(self),
            answer.potential.read(self),
            to_int(answer.cost),
            answer.cut.read(self),
            answer.cycle.read(self),
            static_cast<int>(answer.algorithm),
            answer.steps};
}

FlowAnswer from_fields(const Fields& fields) {
    const auto& [status, flow, potential, cost, cut, cycle, algorithm, steps] = fields;
    return {.status = static_cast<flow::Status>(status),
            .flow = flow,
            .potential = potential,
            .cost = to_total(cost).value(),
            .cut = cut,
            .cycle = cycle,
            .algorithm = static_cast<flow::Algorithm>(algorithm),
            .steps = steps};
}

}  // namespace

void register_flow(py::module_& module) {
    const auto name_of = [](const FlowAnswer& answer) {
        return kAlgorithms.at(static_cast<std::size_t>(answer.algorithm)).first;
    };
    py::class_<FlowAnswer>(module, "FlowAnswer", "The answer of `min_cost_flow`.")
        .def_property_readonly(
            "status",
            [](const FlowAnswer& answer) { return kStatus.at(static_cast<std::size_t>(answer.status)); },
            "optimal, infeasible, unbounded or timeout.")
        .def_property_readonly("flow", reading(&FlowAnswer::flow))
        .def_property_readonly("potential", reading(&FlowAnswer::potential))
        .def_property_readonly("cost", [](const FlowAnswer& answer) { return to_int(answer.cost); })
        .def_property_readonly("cut", reading(&FlowAnswer::cut))
        .def_property_readonly("cycle", reading(&FlowAnswer::cycle))
        .def_property_readonly("algorithm", name_of)
        .def_readonly("steps", &FlowAnswer::steps)
        .def(py::pickle(&to_fields, &from_fields));
    define(module, "are_columns", &are_columns);
    define(module, "solve_columns", &solve_columns);
    define(module, "min_cost_flow", &min_cost_flow, py::arg("algorithm"), py::arg("structure"),
           py::arg("start_flow"), py::arg("start_potential"), py::arg("timeout"), py::arg("max_nodes"));
    define(module, "verify_flow", &verify_flow, py::arg("flow"), py::arg("potential"), py::arg("total"));
    define(module, "verify_infeasible", &verify_infeasible, py::arg("cut"));
    define(module, "verify_unbounded", &verify_unbounded, py::arg("cycle"));
}

}  // namespace topoplace::bindings
