// Converts solutions of minimum-cost flow for Python.
#pragma once

#include <pybind11/critical_section.h>
#include <pybind11/stl.h>

#include <array>
#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::bindings {

// A one-dimensional array that a kernel reads where it is; no other argument is accepted.
template <class T>
struct Row {
    std::span<const T> values;
};

// True for a contiguous array of one dimension and this type. Looks at the fields of the array alone: numpy's
// own questions take longer than the solution of a small network.
template <class T>
bool is_row(pybind11::handle value) {
    if (Py_TYPE(value.ptr()) != pybind11::detail::npy_api::get().PyArray_Type_) return false;
    const auto* const array = pybind11::detail::array_proxy(value.ptr());
    const auto* const type = pybind11::detail::array_descriptor_proxy(array->descr);
    constexpr int kPlain =
        pybind11::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | pybind11::detail::npy_api::NPY_ARRAY_ALIGNED_;
    return array->nd == 1 && type->type_num == pybind11::dtype::num_of<T>() &&
           (array->flags & kPlain) == kPlain &&
           type->byteorder != (std::endian::native == std::endian::big ? '<' : '>');
}

template <class T>
std::span<const T> row_of(pybind11::handle value) {
    const auto* const array = pybind11::detail::array_proxy(value.ptr());
    return {reinterpret_cast<const T*>(array->data), static_cast<std::size_t>(array->dimensions[0])};
}

using Numbers = pybind11::array_t<std::int64_t>;
using Indices = pybind11::array_t<std::int32_t>;

// Numbers that become an array of Python's where they are first read: small networks are solved in the time
// that a few arrays take to make.
template <class T>
class LateRow {
  public:
    LateRow(std::vector<T>&& values) : values_(std::move(values)) {}
    LateRow(pybind11::array_t<T> array) : array_(std::move(array)) {}

    // `owner` is the object of Python's that holds this row.
    pybind11::array_t<T> read(pybind11::handle owner) {
        const pybind11::scoped_critical_section one_at_a_time(owner);
        if (!array_) array_ = to_row(std::move(values_));
        return pybind11::reinterpret_borrow<pybind11::array_t<T>>(array_);
    }

  private:
    std::vector<T> values_;
    pybind11::object array_;
};

// FlowResult as Python sees it.
struct FlowAnswer {
    flow::Status status;
    LateRow<std::int64_t> flow;
    LateRow<std::int64_t> potential;
    flow::Total cost;
    LateRow<std::int32_t> cut;
    LateRow<std::int32_t> cycle;
    flow::Algorithm algorithm;
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

inline pybind11::int_ to_int(flow::Total total) {
    const pybind11::int_ high(static_cast<std::int64_t>(total >> 64));
    const pybind11::int_ low(static_cast<std::uint64_t>(total));
    return pybind11::int_((high << pybind11::int_(64)) + low);
}

inline FlowAnswer to_answer(flow::FlowResult&& result) {
    require(result.fault);
    return {.status = result.status,
            .flow = std::move(result.flow),
            .potential = std::move(result.potential),
            .cost = result.cost,
            .cut = std::move(result.cut),
            .cycle = std::move(result.cycle),
            .algorithm = result.algorithm,
            .steps = result.steps};
}

}  // namespace topoplace::bindings

template <class T>
struct pybind11::detail::type_caster<topoplace::bindings::Row<T>> {
    PYBIND11_TYPE_CASTER(topoplace::bindings::Row<T>, handle_type_name<array_t<T>>::name);
    bool load(handle source, bool /*convert*/) {
        if (!topoplace::bindings::is_row<T>(source)) return false;
        value.values = topoplace::bindings::row_of<T>(source);
        return true;
    }
};
