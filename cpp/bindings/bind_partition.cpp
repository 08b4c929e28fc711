// Binds bipartition.
#include <pybind11/stl.h>

#include "graph_handle.hpp"
#include "register.hpp"
#include "topoplace/partition.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using Sides = py::array_t<std::int8_t>;

// BipartitionResult as Python sees it.
struct BipartitionAnswer {
    std::string status;
    Sides side;
    double cut;
    bool optimal;
    bool complete;
    double start_cut;
    std::uint64_t passes;
    std::uint64_t moves;
    std::uint64_t rollbacks;
    std::uint64_t nodes;
};

const char* to_name(partition::BipartitionStatus status) {
    switch (status) {
        case partition::BipartitionStatus::optimal:
            return "optimal";
        case partition::BipartitionStatus::feasible:
            return "feasible";
        case partition::BipartitionStatus::infeasible:
            return "infeasible";
        case partition::BipartitionStatus::not_found:
            return "not_found";
    }
    return "not_found";
}

partition::BipartitionParams to_params(const GraphHandle& graph, double fraction, double imbalance,
                                       const std::optional<Array<std::int64_t>>& vertex_weights,
                                       const std::optional<Array<std::int8_t>>& fixed) {
    const py::ssize_t n = graph.graph().num_vertices();
    partition::BipartitionParams params;
    params.fraction = fraction;
    params.imbalance = imbalance;
    if (vertex_weights) {
        check_shape(*vertex_weights, "vertex_weights", {n});
        params.vertex_weights = as_span(*vertex_weights);
    }
    if (fixed) {
        check_shape(*fixed, "fixed", {n});
        params.fixed = as_span(*fixed);
    }
    return params;
}

BipartitionAnswer bipartition(const GraphHandle& graph, double fraction, double imbalance,
                              const std::optional<Array<std::int64_t>>& vertex_weights,
                              const std::optional<Array<std::int8_t>>& fixed, std::int32_t starts,
                              std::int32_t cycles, std::uint64_t seed, std::int32_t exact_up_to,
                              std::optional<double> timeout) {
    auto params = to_params(graph, fraction, imbalance, vertex_weights, fixed);
    params.starts = starts;
    params.cycles = cycles;
    params.seed = seed;
    params.exact_up_to = exact_up_to;
    params.stop = to_stop_condition(timeout);
    auto result = without_gil<partition::BipartitionResult>([&] {
        require(partition::check(graph.graph(), params));
        return partition::bipartition(graph.graph(), params);
    });
    return {.status = to_name(result.status),
            .side = to_row(std::move(result.side)),
            .cut = result.cut,
            .optimal = result.status == partition::BipartitionStatus::optimal,
            .complete = result.complete,
            .start_cut = result.start_cut,
            .passes = result.passes,
            .moves = result.moves,
            .rollbacks = result.rollbacks,
            .nodes = result.nodes};
}

Fault verify_bipartition(const GraphHandle& graph, const Array<std::int8_t>& side, double cut,
                         double fraction, double imbalance,
                         const std::optional<Array<std::int64_t>>& vertex_weights,
                         const std::optional<Array<std::int8_t>>& fixed) {
    check_shape(side, "side", {-1});
    return partition::verify_bipartition(
        graph.graph(), to_params(graph, fraction, imbalance, vertex_weights, fixed), as_span(side), cut);
}

}  // namespace

void register_partition(py::module_& module) {
    py::class_<BipartitionAnswer>(module, "BipartitionAnswer", "The answer of `bipartition`.")
        .def_readonly("status", &BipartitionAnswer::status, "optimal, feasible, infeasible or not_found.")
        .def_readonly("side", &BipartitionAnswer::side)
        .def_readonly("cut", &BipartitionAnswer::cut)
        .def_readonly("optimal", &BipartitionAnswer::optimal)
        .def_readonly("complete", &BipartitionAnswer::complete)
        .def_readonly("start_cut", &BipartitionAnswer::start_cut)
        .def_readonly("passes", &BipartitionAnswer::passes)
        .def_readonly("moves", &BipartitionAnswer::moves)
        .def_readonly("rollbacks", &BipartitionAnswer::rollbacks)
        .def_readonly("nodes", &BipartitionAnswer::nodes);
    module.def("bipartition", &bipartition, py::arg("graph"), py::arg("fraction"), py::arg("imbalance"),
               py::arg("vertex_weights").noconvert(), py::arg("fixed").noconvert(), py::arg("starts"),
               py::arg("cycles"), py::arg("seed"), py::arg("exact_up_to"), py::arg("timeout"));
    module.def("verify_bipartition", &verify_bipartition, py::call_guard<py::gil_scoped_release>(),
               py::arg("graph"), py::arg("side").noconvert(), py::arg("cut"), py::arg("fraction"),
               py::arg("imbalance"), py::arg("vertex_weights").noconvert(), py::arg("fixed").noconvert(),
               "None where the bipartition is right, else the reason why it is not.");
}

}  // namespace topoplace::bindings
