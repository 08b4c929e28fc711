// Binds the state of a cluster.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <map>
#include <memory>
#include <optional>

#include "convert.hpp"
#include "register.hpp"
#include "topoplace/cluster_state.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::ClusterState>
    : public topoplace::bindings::HandleCaster<topoplace::ClusterState> {};

namespace topoplace::bindings {
namespace {

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

using Held = py::typing::Dict<py::str, IntTuple>;

py::typing::Tuple<IntTuple, Held> occupants(const ClusterState& state,
                                            const std::vector<std::int32_t>& gpus) {
    std::vector<std::int32_t> free;
    std::map<std::string, std::vector<std::int32_t>> held;
    for (const std::int32_t gpu : gpus) {
        const ClusterState::Job* job = state.owner(known(state, gpu));
        if (job != nullptr) held[job->first].push_back(gpu);
        if (state.is_free(gpu)) free.push_back(gpu);
    }
    Held by_job;
    for (const auto& [job, its] : held) by_job[py::str(job)] = as_tuple(its);
    return py::make_tuple(as_tuple(free), by_job);
}

IntTuple gpus_of(const ClusterState& state, const std::string& job) {
    const ClusterState::Job* found = state.find(job);
    return found == nullptr ? py::tuple() : as_tuple(found->second.gpus);
}

Held allocations(const ClusterState& state) {
    Held result;
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

void register_cluster(py::module_& module) {
    py::class_<ClusterState>(module, "ClusterState", "Which job holds which GPU; see topoplace.Cluster.")
        .def(py::init<std::int32_t>(), py::arg("num_gpus"))
        .def_property_readonly("num_gpus", &ClusterState::num_gpus)
        .def_property_readonly("num_free", &ClusterState::num_free)
        .def("free_gpus", [](const ClusterState& state) { return as_tuple(state.free_gpus()); })
        .def("drained_gpus", [](const ClusterState& state) { return as_tuple(state.drained_gpus()); })
        .def("owner", &owner, py::arg("gpu"), "The job that holds the GPU, or None.")
        .def("occupants", &occupants, py::arg("gpus"),
             "Of these GPUs, the free ones, and those that jobs hold by job, jobs in the order of their ids.")
        .def("gpus_of", &gpus_of, py::arg("job"), "The GPUs of a job in task order; () where it holds none.")
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
