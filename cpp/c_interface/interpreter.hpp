// The process's Python, and what the C interface calls in it.
#pragma once
#include "python_object.hpp"

namespace topoplace::c_interface {

// Starts Python unless it runs, and imports topoplace; see topoplace_start. Throws Failure.
void start(const char* python);

// Returns a class of topoplace.errors by name; the calling thread has the interpreter's lock, as in all that
// follows.
Ref own_error(const char* name);

// Returns an attribute of the module topoplace.c_interface.
Ref attribute(const char* name);

// Calls a function of that module; throws PythonError.
template <class... Arguments>
Ref call(const char* name, const Arguments&... arguments) {
    const Ref function = attribute(name);
    return Ref::of_call(PyObject_CallFunctionObjArgs(function.get(), arguments.get()..., nullptr));
}

}  // namespace topoplace::c_interface
