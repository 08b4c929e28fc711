// What the opaque handles of topoplace.h point to, and which of them are alive.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "failures.hpp"
#include "python_object.hpp"
#include "topoplace.h"

struct topoplace_topology {
    topoplace::c_interface::Ref object;
    std::int32_t num_gpus;
};

struct topoplace_cluster {
    topoplace::c_interface::Ref object;
};

struct topoplace_policy {
    topoplace::c_interface::Ref object;
};

struct topoplace_decision {
    topoplace::c_interface::Ref object;
    topoplace_outcome outcome;
    std::string reason;
    std::vector<std::int32_t> gpus;
    bool optimal;
    std::vector<std::pair<std::string, double>> scores;
};

namespace topoplace::c_interface {

enum class Kind : std::uint8_t { topology, cluster, policy, decision };

constexpr Kind kind_of(const topoplace_topology*) { return Kind::topology; }
constexpr Kind kind_of(const topoplace_cluster*) { return Kind::cluster; }
constexpr Kind kind_of(const topoplace_policy*) { return Kind::policy; }
constexpr Kind kind_of(const topoplace_decision*) { return Kind::decision; }

// The addresses of all handles that callers hold. An address is looked up here before anything is read
// through it.
namespace live {
void add(const void* handle, Kind kind);
bool has(const void* handle, Kind kind);
bool remove(const void* handle, Kind kind);  // false if it is not there
}  // namespace live

// Gives a new handle to the caller.
template <class Handle>
void give(Handle** out, Handle* made) {
    std::unique_ptr<Handle> owned(made);
    live::add(made, kind_of(made));
    *out = owned.release();
}

// Returns what a handle stands for; throws Failure unless the handle is alive and of its kind. The result is
// its own reference: another thread may free the handle as soon as this one lets Python run.
template <class Handle>
Ref object_of(const Handle* handle, const char* name) {
    if (handle == nullptr) throw bad_argument(std::string(name) + " is NULL");
    if (!live::has(handle, kind_of(handle))) {
        throw bad_argument(std::string(name) + " is not a handle, or freed, or of another kind");
    }
    return handle->object;
}

// Frees a handle if it is alive; whatever else it may be is left alone.
template <class Handle>
void freed(Handle* handle) noexcept {
    if (handle == nullptr || !live::remove(handle, kind_of(handle))) return;
    if (Py_IsInitialized() == 0) {  // the process has ended its Python, and the object with it
        handle->object.release();
        delete handle;
        return;
    }
    const Gil gil;
    delete handle;
}

}  // namespace topoplace::c_interface
