#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <memory>
#include <optional>

#include "register.hpp"
#include "topoplace/cluster_state.hpp"

namespace topoplace::bindings {

namespace {

namespace py = pybind11;

using IntTuple = py::typing::Tuple<int, py::ellipsis>;

IntTuple as_tuple(const std::vector<std::int32_t>& values) {
    py::tuple result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) result[i] = values[i];
    return result;
}

std::int32_t known(const ClusterState& state, std::int32_t gpu) {
    if (!state.knows(gpu)) throw py::index_error("gpu = " + std::to_string(gpu));
    return gpu;
}

std::optional<std::string> owner(const ClusterState& state, std::int32_t gpu) {
    const ClusterState::Job* job = state.owner(known(state, gpu));
    return job == nullptr ? std::nullopt : std::optional(job->first);
}

bool drain(ClusterState& state, std::int32_t gpu) { return state.drain(known(state, gpu)); }
bool undrain(ClusterState& state, std::int32_t gpu) { return state.undrain(known(state, gpu)); }

py::typing::Dict<py::str, IntTuple> allocations(const ClusterState& state) {
    py::typing::Dict<py::str, IntTuple> result;
    for (const ClusterState::Job* job : state.jobs())
        result[py::str(job->first)] = as_tuple(job->second.gpus);
    return result;
}

ClusterState restore(const py::bytes& snapshot, std::int32_t num_gpus) {
    return ClusterState::restore(std::string_view(snapshot), num_gpus);
}

std::pair<std::string_view, std::int32_t> allocate(ClusterState& state, const std::string& job,
                                                   const std::vector<std::int32_t>& gpus) {
    const AllocationResult result = state.allocate(job, gpus);
    return {name(result.status), result.position};
}

}  // namespace

void register_place(py::module_& module) {
    py::class_<ClusterState>(module, "ClusterState", "Which job holds which GPU; see topoplace.Cluster.")
        .def(py::init<std::int32_t>(), py::arg("num_gpus"))
        .def_property_readonly("num_gpus", &ClusterState::num_gpus)
        .def_property_readonly("num_free", &ClusterState::num_free)
        .def("free_gpus", [](const ClusterState& state) { return as_tuple(state.free_gpus()); })
        .def("drained_gpus", [](const ClusterState& state) { return as_tuple(state.drained_gpus()); })
        .def("owner", &owner, py::arg("gpu"), "The job that holds the GPU, or None.")
        .def("allocations", &allocations, "GPUs in task order by job, in the order of allocation.")
        .def("allocate", &allocate, py::arg("job"), py::arg("gpus"),
             "(status, position of the first GPU refused or -1); the state changes only where the status is "
             "ok.")
        .def(
            "release",
            [](ClusterState& state, const std::string& job) { return name(state.release(job).status); },
            py::arg("job"))
        .def("drain", &drain, py::arg("gpu"))
        .def("undrain", &undrain, py::arg("gpu"))
        .def("begin", &ClusterState::begin, "Opens a transaction and returns its mark.")
        .def("commit", &ClusterState::commit)
        .def("rollback", &ClusterState::rollback, py::arg("mark"), "Undoes what happened since the mark.")
        .def("snapshot", [](const ClusterState& state) { return py::bytes(state.snapshot()); })
        .def_static("restore", &restore, py::arg("snapshot"), py::arg("num_gpus"),
                    "ValueError for bytes that are no snapshot of a cluster of that size.")
        .def("copy", [](const ClusterState& state) { return std::make_unique<ClusterState>(state); });
}

}  // namespace topoplace::bindings
