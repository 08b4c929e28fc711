// Python's arguments as the kernels take them: shapes, dtypes and ranges are checked here, and nowhere
// further in.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/other_threads.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::bindings {

template <class T>
using Array = pybind11::array_t<T, pybind11::array::c_style>;

template <class T>
std::span<const T> as_span(const Array<T>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
}

template <class T>
void check_shape(const Array<T>& array, const char* name, std::initializer_list<pybind11::ssize_t> shape) {
    bool same = array.ndim() == static_cast<pybind11::ssize_t>(shape.size());
    pybind11::ssize_t axis = 0;
    for (const pybind11::ssize_t length : shape) {
        same = same && (length < 0 || array.shape(axis) == length);
        ++axis;
    }
    if (!same) throw std::invalid_argument(std::string(name) + " has the wrong shape");
}

// Kernels trust their arguments: the caller asks `check` first.
inline void require(const Fault& fault) {
    if (fault) throw std::invalid_argument(*fault);
}

inline void check_vertices(std::span<const std::int32_t> vertices, const char* name, std::int32_t size) {
    for (std::size_t i = 0; i < vertices.size(); ++i) {
        if (vertices[i] < 0 || vertices[i] >= size) {
            throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) +
                                        "] = " + std::to_string(vertices[i]) + ": vertices are 0.." +
                                        std::to_string(size - 1));
        }
    }
}

// Loads an object of a bound class. pybind11 takes None for a null pointer, and makes up memory for an object
// whose constructor has thrown or was never called; both are a TypeError here.
template <class T>
class HandleCaster : public pybind11::detail::type_caster_base<T> {
  public:
    bool load(pybind11::handle source, bool convert) {
        return !source.is_none() && this->template load_impl<HandleCaster>(source, convert);
    }
    void load_value(pybind11::detail::value_and_holder&& loaded) {
        if (!loaded.holder_constructed()) {
            const auto type = pybind11::type::of<T>();
            throw pybind11::type_error(pybind11::str(type.attr("__name__")).template cast<std::string>() +
                                       ".__init__ has not been run");
        }
        pybind11::detail::type_caster_base<T>::load_value(std::move(loaded));
    }
};

// Moves the vector's memory into an array of this shape, without a copy.
template <class T>
pybind11::array_t<T> to_array(std::vector<T>&& values, std::vector<pybind11::ssize_t> shape) {
    auto* held = new std::vector<T>(std::move(values));
    pybind11::capsule owner(held, [](void* pointer) { delete static_cast<std::vector<T>*>(pointer); });
    return pybind11::array_t<T>(std::move(shape), held->data(), owner);
}

template <class T>
pybind11::array_t<T> to_row(std::vector<T>&& values) {
    const auto size = static_cast<pybind11::ssize_t>(values.size());
    return to_array(std::move(values), {size});
}

// Ctrl-C during a kernel: asked from the searching thread, which has released the GIL.
inline bool signal_pending() {
    const pybind11::gil_scoped_acquire gil;
    // Asked again after one was raised, the handler must not run on top of it.
    return PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0;
}

// When searches of this thread have to end, whatever their own limits: they raise DeadlineError then, so that
// no answer cut short is taken for a whole one.
inline thread_local std::chrono::steady_clock::time_point deadline =
    std::chrono::steady_clock::time_point::max();

inline bool is_past_deadline() {
    return deadline != std::chrono::steady_clock::time_point::max() &&
           std::chrono::steady_clock::now() >= deadline;
}

inline StopCondition to_stop_condition(std::optional<double> timeout,
                                       std::optional<std::uint64_t> max_nodes = {}) {
    StopCondition stop = timeout ? StopCondition::in(*timeout) : StopCondition{};
    stop.when = std::min(stop.when, deadline);
    if (max_nodes) stop.max_nodes = *max_nodes;
    stop.interrupted = signal_pending;
    return stop;
}

[[noreturn]] inline void raise_time_is_up() {
    const pybind11::object error = pybind11::module_::import("topoplace.errors").attr("DeadlineError");
    PyErr_SetString(error.ptr(), "the time for this decision is up");
    throw pybind11::error_already_set();
}

inline void raise_pending() {
    if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
    if (is_past_deadline()) raise_time_is_up();
}

// Other threads of Python run while a search lets go of the GIL.
inline constexpr OtherThreads kOtherThreads{
    .let_go = []() -> void* { return PyEval_SaveThread(); },
    .wait = [](void* held) { PyEval_RestoreThread(static_cast<PyThreadState*>(held)); }};

template <class Result, class Search>
Result without_gil(Search&& search) {
    Result result;
    {
        const pybind11::gil_scoped_release release;
        result = search();
    }
    raise_pending();
    return result;
}

}  // namespace topoplace::bindings
