// Functions of topoplace.h about the library, topologies, policies and clusters.
#include <cstring>

#include "convert.hpp"
#include "handles.hpp"
#include "interpreter.hpp"

using namespace topoplace::c_interface;

namespace {

void give_topology(topoplace_topology** out, Ref made) {
    const Ref count = Ref::of_call(PyObject_GetAttrString(made.get(), "num_gpus"));
    const auto num_gpus = static_cast<std::int32_t>(PyLong_AsLong(count.get()));
    give(out, new topoplace_topology{std::move(made), num_gpus});
}

Ref listed(const topoplace_topology* const* topologies, std::size_t count) {
    if (topologies == nullptr) throw bad_argument("topologies is NULL");
    if (count == 0 || count > (std::size_t{1} << 24)) {
        throw bad_argument("count = " + std::to_string(count) + ": a cluster has 1 to 2**24 topologies");
    }
    std::vector<Ref> found;
    for (std::size_t i = 0; i < count; ++i) {
        found.push_back(object_of(topologies[i], ("topologies[" + std::to_string(i) + "]").c_str()));
    }
    Ref made = Ref::of_call(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t i = 0; i < count; ++i) {
        PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), found[i].release());
    }
    return made;
}

}  // namespace

extern "C" {

// ---- the library
// -----------------------------------------------------------------------------------------------

const char* topoplace_version(void) { return TOPOPLACE_VERSION; }

topoplace_status topoplace_start(const char* python, char** error) {
    if (error != nullptr) *error = nullptr;
    try {
        start(python);
        return TOPOPLACE_OK;
    } catch (...) {
        return described(error);
    }
}

void topoplace_free_text(char* text) { std::free(text); }

// ---- topologies
// ------------------------------------------------------------------------------------------------

topoplace_status topoplace_topology_from_text(const char* text_, size_t length, const char* format,
                                              const char* options, topoplace_topology** topology,
                                              char** error) {
    return given(topology, "topology", error, [&] {
        give_topology(topology, call("topology_from_text", bytes(text_, length, "text"),
                                     text_or_none(format, "format"), text_or_none(options, "options")));
    });
}

topoplace_status topoplace_topology_built_in(const char* name, topoplace_topology** topology, char** error) {
    return given(topology, "topology", error,
                 [&] { give_topology(topology, call("built_in_topology", text(name, "name"))); });
}

int32_t topoplace_topology_num_gpus(const topoplace_topology* topology) {
    return live::has(topology, Kind::topology) ? topology->num_gpus : -1;
}

topoplace_status topoplace_topology_gpu(const topoplace_topology* topology, int32_t gpu, char** name,
                                        char** machine, int32_t* number, char** error) {
    if (name != nullptr) *name = nullptr;
    if (machine != nullptr) *machine = nullptr;
    return answered(error, [&] {
        const Ref found = call("gpu_of", object_of(topology, "topology"), integer(gpu));
        PyObject *gpu_name = nullptr, *machine_name = nullptr;
        int local = 0;
        if (PyArg_ParseTuple(found.get(), "UUi", &gpu_name, &machine_name, &local) == 0) throw PythonError{};
        Text named = copied(Ref::of_call(Py_NewRef(gpu_name)));
        Text on = copied(Ref::of_call(Py_NewRef(machine_name)));
        if (name != nullptr) *name = named.release();
        if (machine != nullptr) *machine = on.release();
        if (number != nullptr) *number = local;
    });
}

topoplace_status topoplace_topology_to_json(const topoplace_topology* topology, char** json, char** error) {
    return given(json, "json", error, [&] {
        const Ref object = object_of(topology, "topology");
        *json = copied(Ref::of_call(PyObject_CallMethod(object.get(), "to_json", nullptr))).release();
    });
}

void topoplace_topology_free(topoplace_topology* topology) { freed(topology); }

// ---- policies
// --------------------------------------------------------------------------------------------------

topoplace_status topoplace_policy_new(const char* name, const char* options, topoplace_policy** policy,
                                      char** error) {
    return given(policy, "policy", error, [&] {
        Ref made = call("new_policy", text_or_none(name, "name"), text_or_none(options, "options"));
        give(policy, new topoplace_policy{std::move(made)});
    });
}

void topoplace_policy_free(topoplace_policy* policy) { freed(policy); }

// ---- clusters
// --------------------------------------------------------------------------------------------------

topoplace_status topoplace_cluster_new(const topoplace_topology* const* topologies, size_t count,
                                       const char* options, topoplace_cluster** cluster, char** error) {
    return given(cluster, "cluster", error, [&] {
        Ref made = call("new_cluster", listed(topologies, count), text_or_none(options, "options"));
        give(cluster, new topoplace_cluster{std::move(made)});
    });
}

topoplace_status topoplace_cluster_topology(const topoplace_cluster* cluster, topoplace_topology** topology,
                                            char** error) {
    return given(topology, "topology", error,
                 [&] { give_topology(topology, call("topology_of", object_of(cluster, "cluster"))); });
}

topoplace_status topoplace_cluster_free_gpus(const topoplace_cluster* cluster, int32_t* gpus, size_t capacity,
                                             size_t* count, char** error) {
    if (count != nullptr) *count = 0;
    return answered(error, [&] {
        check_array(gpus, capacity, count);
        write(call("free_gpus", object_of(cluster, "cluster")), gpus, capacity, count);
    });
}

topoplace_status topoplace_cluster_gpus_of(const topoplace_cluster* cluster, const char* job_id,
                                           int32_t* gpus, size_t capacity, size_t* count, char** error) {
    if (count != nullptr) *count = 0;
    return answered(error, [&] {
        check_array(gpus, capacity, count);
        write(call("gpus_of", object_of(cluster, "cluster"), text(job_id, "job_id")), gpus, capacity, count);
    });
}

topoplace_status topoplace_allocate(topoplace_cluster* cluster, const char* job_id, const int32_t* gpus,
                                    size_t count, const char* job, char** error) {
    return answered(error, [&] {
        call("allocate", object_of(cluster, "cluster"), text(job_id, "job_id"), integers(gpus, count, "gpus"),
             text_or_none(job, "job"));
    });
}

topoplace_status topoplace_set_drained(topoplace_cluster* cluster, int32_t gpu, bool drained, char** error) {
    return answered(error,
                    [&] { call("set_drained", object_of(cluster, "cluster"), integer(gpu), flag(drained)); });
}

topoplace_status topoplace_hold(topoplace_cluster* cluster, int32_t gpu, const char* reason, char** error) {
    return answered(
        error, [&] { call("hold", object_of(cluster, "cluster"), integer(gpu), text(reason, "reason")); });
}

topoplace_status topoplace_unhold(topoplace_cluster* cluster, int32_t gpu, char** error) {
    return answered(error, [&] { call("unhold", object_of(cluster, "cluster"), integer(gpu)); });
}

topoplace_status topoplace_cluster_snapshot(const topoplace_cluster* cluster, char** snapshot, size_t* length,
                                            char** error) {
    if (length != nullptr) *length = 0;
    return given(snapshot, "snapshot", error, [&] {
        if (length == nullptr) throw bad_argument("length is NULL: there is no place for the result");
        *snapshot = copied(call("snapshot", object_of(cluster, "cluster")), length).release();
    });
}

topoplace_status topoplace_cluster_restore(const char* snapshot, size_t length, topoplace_cluster** cluster,
                                           char** error) {
    return given(cluster, "cluster", error, [&] {
        Ref made = call("restored_cluster", bytes(snapshot, length, "snapshot"));
        give(cluster, new topoplace_cluster{std::move(made)});
    });
}

void topoplace_cluster_free(topoplace_cluster* cluster) { freed(cluster); }

}  // extern "C"
