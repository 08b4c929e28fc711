#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <array>
#include <string_view>

#include "convert.hpp"
#include "register.hpp"
#include "topoplace/flow.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using flow::Algorithm;
using Units = Array<std::int64_t>;
using Ends = Array<std::int32_t>;
using MaybeUnits = std::optional<Units>;
using Numbers = py::array_t<std::int64_t>;
using Indices = py::array_t<std::int32_t>;
// Status, flow, potential, cost, cut, cycle, algorithm, steps.
using Solved =
    py::typing::Tuple<std::string, Numbers, Numbers, py::int_, Indices, Indices, std::string, std::uint64_t>;

constexpr std::array<std::pair<std::string_view, Algorithm>, 5> kAlgorithms{
    {{"auto", Algorithm::automatic},
     {"cost_scaling", Algorithm::cost_scaling},
     {"network_simplex", Algorithm::network_simplex},
     {"successive_shortest_path", Algorithm::successive_shortest_path},
     {"cycle_canceling", Algorithm::cycle_canceling}}};
constexpr std::array<const char*, 4> kStatus{"optimal", "infeasible", "unbounded", "timeout"};

Algorithm to_algorithm(const std::string& name) {
    for (const auto& [known, algorithm] : kAlgorithms) {
        if (known == name) return algorithm;
    }
    throw std::invalid_argument("algorithm = '" + name +
                                "' is not one of auto, cost_scaling, network_simplex, " +
                                "successive_shortest_path, cycle_canceling");
}

std::string to_name(Algorithm algorithm) {
    return std::string(kAlgorithms.at(static_cast<std::size_t>(algorithm)).first);
}

py::int_ to_int(flow::Total total) {
    const py::int_ high(static_cast<std::int64_t>(total >> 64));
    const py::int_ low(static_cast<std::uint64_t>(total));
    return py::int_((high << py::int_(64)) + low);
}

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

template <class T>
py::array_t<T> to_row(std::vector<T>&& values) {
    const auto size = static_cast<py::ssize_t>(values.size());
    return to_array(std::move(values), {size});
}

Solved min_cost_flow(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
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
    params.deadline = to_deadline(timeout, max_nodes);
    auto result = without_gil<flow::FlowResult>([&] { return flow::min_cost_flow(network, params); });
    return py::make_tuple(kStatus.at(static_cast<std::size_t>(result.status)), to_row(std::move(result.flow)),
                          to_row(std::move(result.potential)), to_int(result.cost),
                          to_row(std::move(result.cut)), to_row(std::move(result.cycle)),
                          to_name(result.algorithm), result.steps);
}

bool verify_flow(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                 const Units& capacity, const Units& cost, const Units& supply, const Units& units,
                 const Units& potential, const py::int_& total) {
    const auto network = to_network(num_nodes, tail, head, lower, capacity, cost, supply);
    const auto known = to_total(total);
    const py::gil_scoped_release release;
    return known && flow::verify_flow(network, as_span(units), as_span(potential), *known);
}

bool verify_infeasible(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                       const Units& capacity, const Units& cost, const Units& supply, const Ends& cut) {
    return flow::verify_infeasible(to_network(num_nodes, tail, head, lower, capacity, cost, supply),
                                   as_span(cut));
}

bool verify_unbounded(std::int32_t num_nodes, const Ends& tail, const Ends& head, const MaybeUnits& lower,
                      const Units& capacity, const Units& cost, const Units& supply, const Ends& cycle) {
    return flow::verify_unbounded(to_network(num_nodes, tail, head, lower, capacity, cost, supply),
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
    define(module, "min_cost_flow", &min_cost_flow, py::arg("algorithm"), py::arg("structure"),
           py::arg("start_flow").noconvert(), py::arg("start_potential").noconvert(), py::arg("timeout"),
           py::arg("max_nodes"));
    define(module, "verify_flow", &verify_flow, py::arg("flow").noconvert(), py::arg("potential").noconvert(),
           py::arg("total"));
    define(module, "verify_infeasible", &verify_infeasible, py::arg("cut").noconvert());
    define(module, "verify_unbounded", &verify_unbounded, py::arg("cycle").noconvert());
}

}  // namespace topoplace::bindings
