// The set of live handles, for all threads.
#include "handles.hpp"

#include <mutex>
#include <unordered_map>

namespace topoplace::c_interface::live {
namespace {

struct Handles {
    std::mutex mutex;
    std::unordered_map<const void*, Kind> kinds;
};

Handles& all() {
    static Handles& handles =
        *new Handles;  // never destroyed: threads may still free handles while the process ends
    return handles;
}

}  // namespace

void add(const void* handle, Kind kind) {
    const std::scoped_lock lock(all().mutex);
    all().kinds.emplace(handle, kind);
}

bool has(const void* handle, Kind kind) {
    const std::scoped_lock lock(all().mutex);
    const auto found = all().kinds.find(handle);
    return found != all().kinds.end() && found->second == kind;
}

bool remove(const void* handle, Kind kind) {
    const std::scoped_lock lock(all().mutex);
    const auto found = all().kinds.find(handle);
    if (found == all().kinds.end() || found->second != kind) return false;
    all().kinds.erase(found);
    return true;
}

}  // namespace topoplace::c_interface::live
