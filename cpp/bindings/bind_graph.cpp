// Binds the graph that all kernels share.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "graph_handle.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

// Null where Ctrl-C ends it.
template <class Make>
std::unique_ptr<GraphHandle> handle_of(Make&& make) {
    return without_gil<std::unique_ptr<GraphHandle>>([&] {
        Fault fault;
        auto graph = make(to_stop_condition({}), fault);
        require(fault);
        return graph ? std::make_unique<GraphHandle>(std::move(*graph)) : nullptr;
    });
}

std::unique_ptr<GraphHandle> make_graph(std::int32_t num_vertices, const Array<std::int32_t>& ends,
                                        const Array<double>& weights) {
    check_shape(ends, "edges", {-1, 2});
    check_shape(weights, "weights", {ends.shape(0)});
    return handle_of([&](const StopCondition& stop, Fault& fault) {
        std::vector<Edge> edges;
        edges.reserve(static_cast<std::size_t>(weights.size()));
        for (py::ssize_t i = 0; i < weights.size(); ++i)
            edges.push_back({ends.data()[2 * i], ends.data()[2 * i + 1], weights.data()[i]});
        return Graph::of_edges(num_vertices, edges, stop, fault);
    });
}

std::unique_ptr<GraphHandle> make_graph_of_matrix(const Array<double>& matrix) {
    check_shape(matrix, "weights", {-1, matrix.ndim() == 2 ? matrix.shape(0) : 0});
    return handle_of([&](const StopCondition& stop, Fault& fault) {
        return Graph::of_matrix(static_cast<std::int32_t>(matrix.shape(0)), as_span(matrix), stop, fault);
    });
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
    return without_gil<std::optional<double>>([&]() -> std::optional<double> {
        const match::Pattern* pattern = graph.pattern(stop);
        return pattern == nullptr ? std::nullopt : pattern->num_automorphisms(stop);
    });
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
