// Converts solutions of minimum-cost flow for Python.
#pragma once

#include <pybind11/stl.h>

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

// FlowResult as Python sees it.
struct FlowAnswer {
    std::string status;
    Numbers flow;
    Numbers potential;
    pybind11::int_ cost;
    Indices cut;
    Indices cycle;
    std::string algorithm;
    std::uint64_t steps;
};

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

inline FlowAnswer to_answer(flow::FlowResult&& result) {
    return {.status = kStatus.at(static_cast<std::size_t>(result.status)),
            .flow = to_row(std::move(result.flow)),
            .potential = to_row(std::move(result.potential)),
            .cost = to_int(result.cost),
            .cut = to_row(std::move(result.cut)),
            .cycle = to_row(std::move(result.cycle)),
            .algorithm = to_name(result.algorithm),
            .steps = result.steps};
}

}  // namespace topoplace::bindings
