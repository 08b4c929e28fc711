// Binds the graph that all kernels share.
#include "graph_handle.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace topoplace::bindings {

void register_graph(py::module_& module) {
    py::class_<GraphHandle>(module, "Graph", "An undirected, simple, weighted graph.")
        .def(py::init<std::int32_t, const Array<std::int32_t>&, const Array<double>&>(),
             py::call_guard<py::gil_scoped_release>(), py::arg("num_vertices"), py::arg("edges").noconvert(),
             py::arg("weights").noconvert())
        .def_property_readonly(
            "num_vertices", [](const GraphHandle& g) { return g.graph().num_vertices(); },
            "The number of vertices.")
        .def_property_readonly(
            "num_edges", [](const GraphHandle& g) { return g.graph().num_edges(); }, "The number of edges.")
        .def_property_readonly(
            "num_automorphisms",
            [](const GraphHandle& g) {
                const py::gil_scoped_release release;
                return g.pattern().num_automorphisms();
            },
            "The number of permutations of the vertices that keep every edge, whatever its weight; exact up "
            "to "
            "2**53.");
}

}  // namespace topoplace::bindings
