// Registers the parts of the extension; each has its own bind_*.cpp.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "convert.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using Names = py::typing::Tuple<py::str, py::ellipsis>;

// Of the results that cross the border as tuples.
py::typing::Dict<py::str, Names> result_fields() {
    py::dict fields;
    fields["best_subgraph"] = py::make_tuple("vertices", "score", "bound", "optimal", "complete", "nodes");
    fields["best_remainder"] = py::make_tuple("vertices", "remainder", "score", "optimal", "nodes");
    fields["map_graph"] =
        py::make_tuple("target_of", "cost", "bound", "optimal", "complete", "descents", "exchanges", "nodes");
    return fields;
}

void set_deadline(std::optional<double> seconds) {
    using Clock = std::chrono::steady_clock;
    deadline = Clock::time_point::max();
    if (seconds && *seconds < 1e9)
        deadline = Clock::now() +
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
}

}  // namespace
}  // namespace topoplace::bindings

PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
    module.doc() = "Native core of topoplace: graphs and kernels. Use it through topoplace, not directly.";
    module.def("result_fields", &topoplace::bindings::result_fields);
    module.def(
        "set_deadline", &topoplace::bindings::set_deadline, pybind11::arg("seconds"),
        "Ends the searches of this thread by DeadlineError after these seconds from now; None: never.");
    topoplace::bindings::register_graph(module);
    topoplace::bindings::register_match(module);
    topoplace::bindings::register_partition(module);
    topoplace::bindings::register_ports(module);
    topoplace::bindings::register_collective(module);
    topoplace::bindings::register_job_traffic(module);
    topoplace::bindings::register_cluster(module);
    topoplace::bindings::register_machines(module);
    topoplace::bindings::register_decide(module);
    topoplace::bindings::register_tree_mapping(module);
    topoplace::bindings::register_gang_mapping(module);
    topoplace::bindings::register_gang_room(module);
    topoplace::bindings::register_gang_bounds(module);
    topoplace::bindings::register_gang_search(module);
    topoplace::bindings::register_least_time(module);
    topoplace::bindings::register_mapping(module);
    topoplace::bindings::register_groups(module);
    topoplace::bindings::register_task_groups(module);
    topoplace::bindings::register_divisions(module);
    topoplace::bindings::register_flow(module);
    topoplace::bindings::register_flow_network(module);
    topoplace::bindings::register_capacity(module);
    topoplace::bindings::register_fragmentation(module);
}
