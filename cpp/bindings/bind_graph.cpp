// Binds the graph that all kernels share.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "graph_handle.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

// Ctrl-C ends it.
std::unique_ptr<GraphHandle> make_graph(std::int32_t num_vertices, const Array<std::int32_t>& ends,
                                        const Array<double>& weights) {
    return without_gil_until_stopped<std::unique_ptr<GraphHandle>>(
        [&] { return std::make_unique<GraphHandle>(num_vertices, ends, weights, to_stop_condition({})); });
}

// The same.
std::unique_ptr<GraphHandle> make_graph_of_matrix(const Array<double>& matrix) {
    return without_gil_until_stopped<std::unique_ptr<GraphHandle>>(
        [&] { return std::make_unique<GraphHandle>(matrix, to_stop_condition({})); });
}

// Nothing where there is too little time.
std::optional<double> automorphisms(const GraphHandle& graph, std::optional<double> timeout) {
    constexpr std::int32_t kMostVertices = match::kMaxPatternVertices;
    if (graph.graph().num_vertices() > kMostVertices) {
        throw std::invalid_argument("the graph has " + std::to_string(graph.graph().num_vertices()) +
                                    " vertices; the automorphisms of at most " +
                                    std::to_string(kMostVertices) + " can be counted");
    }
    const StopCondition stop = to_stop_condition(timeout);
    return without_gil_until_stopped<std::optional<double>>(
        [&] { return graph.pattern(stop).num_automorphisms(stop); });
}

}  // namespace

void register_graph(py::module_& module) {
    py::class_<GraphHandle>(module, "Graph", "An undirected, simple, weighted graph.")
        .def(py::init(&make_graph), py::arg("num_vertices"), py::arg("edges").noconvert(),
             py::arg("weights").noconvert())
        .def(py::init(&make_graph_of_matrix), py::arg("weights").noconvert())
        .def_property_readonly(
            "num_vertices", [](const GraphHandle& g) { return g.graph().num_vertices(); },
            "The number of vertices.")
        .def_property_readonly(
            "num_edges", [](const GraphHandle& g) { return g.graph().num_edges(); }, "The number of edges.")
        .def_property_readonly(
            "num_automorphisms", [](const GraphHandle& g) { return automorphisms(g, {}).value_or(0); },
            "The number of permutations of the vertices that keep every edge, whatever its weight; exact up "
            "to "
            "2**53. ValueError above 4,096 vertices.")
        .def("automorphisms_within", &automorphisms, py::arg("timeout"),
             "The same, or None where `timeout` seconds are too short.");
}

}  // namespace topoplace::bindings
