// The interpreter's lock in threads that Python did not start.
#include "python_object.hpp"

namespace topoplace::c_interface {
namespace {

// At the end of a thread, gives back what Python keeps of it.
struct KnownThread {
    bool kept = false;
    ~KnownThread() {
        if (!kept || Py_IsInitialized() == 0) return;
        PyGILState_Ensure();
        PyGILState_Release(PyGILState_LOCKED);    // of this call
        PyGILState_Release(PyGILState_UNLOCKED);  // of the one in Gil()
    }
};

thread_local KnownThread known_thread;

bool is_unknown() { return PyGILState_GetThisThreadState() == nullptr; }

}  // namespace

Gil::Gil() {
    const bool first = is_unknown();
    state_ = PyGILState_Ensure();
    if (first) {
        PyGILState_Ensure();
        known_thread.kept = true;
    }
}

}  // namespace topoplace::c_interface
