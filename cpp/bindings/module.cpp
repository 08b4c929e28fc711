// Registers the parts of the extension; each part lives in a bind_*.cpp of its own.
#include "register.hpp"

namespace py = pybind11;

PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
    module.doc() = "Native core of topoplace: graphs and kernels. Use it through topoplace, not directly.";
    module.attr("RESULT_FIELDS") = py::dict(
        py::arg("best_subgraph") =
            py::make_tuple("vertices", "score", "bound", "optimal", "complete", "nodes"),
        py::arg("best_remainder") = py::make_tuple("vertices", "remainder", "score", "optimal", "nodes"),
        py::arg("map_graph") = py::make_tuple("target_of", "cost", "bound", "optimal", "complete", "descents",
                                              "exchanges", "nodes"));
    topoplace::bindings::register_graph(module);
    topoplace::bindings::register_match(module);
    topoplace::bindings::register_partition(module);
    topoplace::bindings::register_mapping(module);
    topoplace::bindings::register_flow(module);
    topoplace::bindings::register_flow_network(module);
    topoplace::bindings::register_capacity(module);
    topoplace::bindings::register_cluster(module);
}
