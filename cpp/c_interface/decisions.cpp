// Functions of topoplace.h that decide about jobs, and what they answer.
#include "convert.hpp"
#include "handles.hpp"
#include "interpreter.hpp"

using namespace topoplace::c_interface;

namespace {

std::vector<std::int32_t> numbers(PyObject* tuple) {
    std::vector<std::int32_t> found;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        found.push_back(static_cast<std::int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(tuple, i))));
    }
    return found;
}

std::vector<std::pair<std::string, double>> scores(PyObject* tuple) {
    std::vector<std::pair<std::string, double>> found;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        const char* name = nullptr;
        double value = 0.0;
        if (PyArg_ParseTuple(PyTuple_GET_ITEM(tuple, i), "sd", &name, &value) == 0) throw PythonError{};
        found.emplace_back(name, value);
    }
    return found;
}

void give_decision(topoplace_decision** out, const Ref& parts) {
    int outcome = 0, optimal = 0;
    const char* reason = nullptr;
    PyObject *gpus = nullptr, *scored = nullptr, *object = nullptr;
    if (PyArg_ParseTuple(parts.get(), "isO!pO!O", &outcome, &reason, &PyTuple_Type, &gpus, &optimal,
                         &PyTuple_Type, &scored, &object) == 0) {
        throw PythonError{};
    }
    give(out, new topoplace_decision{Ref::of_call(Py_NewRef(object)), static_cast<topoplace_outcome>(outcome),
                                     reason, numbers(gpus), optimal != 0, scores(scored)});
}

const topoplace_decision* found(const topoplace_decision* decision) {
    return live::has(decision, Kind::decision) ? decision : nullptr;
}

}  // namespace

extern "C" {

topoplace_status topoplace_place(topoplace_cluster* cluster, topoplace_policy* policy, const char* job_id,
                                 const char* job, topoplace_decision** decision, char** error) {
    return given(decision, "decision", error, [&] {
        give_decision(decision, call("place", object_of(cluster, "cluster"), object_of(policy, "policy"),
                                     text(job_id, "job_id"), text(job, "job")));
    });
}

topoplace_status topoplace_explain(const topoplace_cluster* cluster, topoplace_policy* policy,
                                   const char* job, int32_t top, topoplace_decision** decision,
                                   char** error) {
    return given(decision, "decision", error, [&] {
        give_decision(decision, call("explain", object_of(cluster, "cluster"), object_of(policy, "policy"),
                                     text(job, "job"), integer(top)));
    });
}

topoplace_status topoplace_release(topoplace_cluster* cluster, const char* job_id, char** error) {
    return answered(error, [&] { call("release", object_of(cluster, "cluster"), text(job_id, "job_id")); });
}

topoplace_outcome topoplace_decision_outcome(const topoplace_decision* decision) {
    const topoplace_decision* known = found(decision);
    return known != nullptr ? known->outcome : TOPOPLACE_INVALID;
}

const char* topoplace_decision_reason(const topoplace_decision* decision) {
    const topoplace_decision* known = found(decision);
    return known != nullptr ? known->reason.c_str() : nullptr;
}

const int32_t* topoplace_decision_gpus(const topoplace_decision* decision, size_t* count) {
    const topoplace_decision* known = found(decision);
    const bool placed = known != nullptr && !known->gpus.empty();
    if (count != nullptr) *count = placed ? known->gpus.size() : 0;
    return placed ? known->gpus.data() : nullptr;
}

bool topoplace_decision_is_optimal(const topoplace_decision* decision) {
    const topoplace_decision* known = found(decision);
    return known != nullptr && known->optimal;
}

bool topoplace_decision_score(const topoplace_decision* decision, const char* name, double* value) {
    const topoplace_decision* known = found(decision);
    if (known == nullptr || name == nullptr || value == nullptr) return false;
    for (const auto& [scored, worth] : known->scores) {
        if (scored != name) continue;
        *value = worth;
        return true;
    }
    return false;
}

topoplace_status topoplace_decision_to_json(const topoplace_decision* decision, char** json, char** error) {
    return given(json, "json", error, [&] {
        const Ref object = object_of(decision, "decision");
        *json = copied(Ref::of_call(PyObject_CallMethod(object.get(), "to_json", nullptr))).release();
    });
}

void topoplace_decision_free(topoplace_decision* decision) { freed(decision); }

}  // extern "C"
