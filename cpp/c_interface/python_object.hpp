// Objects of Python in C++: references that count, and the interpreter's lock (GIL).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace topoplace::c_interface {

// Holds the interpreter's lock, in any thread, as long as it lives. What Python keeps of a thread is made for
// its first lock and lasts as long as the thread: to make it for each call takes longer than most calls.
class Gil {
  public:
    Gil();
    ~Gil() { PyGILState_Release(state_); }
    Gil(const Gil&) = delete;
    Gil& operator=(const Gil&) = delete;

  private:
    PyGILState_STATE state_;
};

// A call to Python failed; the interpreter knows the exception.
struct PythonError {};

// Owns a reference to an object; made, copied and destroyed only by a thread that has the lock.
class Ref {
  public:
    Ref() = default;
    // Takes over the result of a call, which is null if the call failed.
    static Ref of_call(PyObject* result) {
        if (result == nullptr) throw PythonError{};
        Ref made;
        made.object_ = result;
        return made;
    }
    Ref(const Ref& other) : object_(Py_XNewRef(other.object_)) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() { Py_XDECREF(object_); }

    PyObject* get() const { return object_; }
    PyObject* release() { return std::exchange(object_, nullptr); }

  private:
    PyObject* object_ = nullptr;
};

}  // namespace topoplace::c_interface
