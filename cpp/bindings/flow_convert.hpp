// What a solution of minimum-cost flow is in Python.
#pragma once

#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::bindings {

using Numbers = pybind11::array_t<std::int64_t>;
using Indices = pybind11::array_t<std::int32_t>;
// Status, flow, potential, cost, cut, cycle, algorithm, steps.
using Solved = pybind11::typing::Tuple<std::string, Numbers, Numbers, pybind11::int_, Indices, Indices,
                                       std::string, std::uint64_t>;

inline constexpr std::array<std::pair<std::string_view, flow::Algorithm>, 5> kAlgorithms{
    {{"auto", flow::Algorithm::automatic},
     {"cost_scaling", flow::Algorithm::cost_scaling},
     {"network_simplex", flow::Algorithm::network_simplex},
     {"successive_shortest_path", flow::Algorithm::successive_shortest_path},
     {"cycle_canceling", flow::Algorithm::cycle_canceling}}};
inline constexpr std::array<const char*, 4> kStatus{"optimal", "infeasible", "unbounded", "timeout"};

inline flow::Algorithm to_algorithm(const std::string& name) {
    for (const auto& [known, algorithm] : kAlgorithms) {
        if (known == name) return algorithm;
    }
    throw std::invalid_argument("algorithm = '" + name +
                                "' is not one of auto, cost_scaling, network_simplex, " +
                                "successive_shortest_path, cycle_canceling");
}

inline std::string to_name(flow::Algorithm algorithm) {
    return std::string(kAlgorithms.at(static_cast<std::size_t>(algorithm)).first);
}

inline pybind11::int_ to_int(flow::Total total) {
    const pybind11::int_ high(static_cast<std::int64_t>(total >> 64));
    const pybind11::int_ low(static_cast<std::uint64_t>(total));
    return pybind11::int_((high << pybind11::int_(64)) + low);
}

template <class T>
pybind11::array_t<T> to_row(std::vector<T>&& values) {
    const auto size = static_cast<pybind11::ssize_t>(values.size());
    return to_array(std::move(values), {size});
}

inline Solved to_tuple(flow::FlowResult&& result) {
    return pybind11::make_tuple(kStatus.at(static_cast<std::size_t>(result.status)),
                                to_row(std::move(result.flow)), to_row(std::move(result.potential)),
                                to_int(result.cost), to_row(std::move(result.cut)),
                                to_row(std::move(result.cycle)), to_name(result.algorithm), result.steps);
}

}  // namespace topoplace::bindings
