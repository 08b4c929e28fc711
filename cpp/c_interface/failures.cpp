// Which status an exception has, and its text.
#include "failures.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "interpreter.hpp"

namespace topoplace::c_interface {
namespace {

struct Named {
    const char* name;
    topoplace_status status;
};

// Classes of topoplace.errors; none is derived from another.
constexpr Named kOwnClasses[] = {
    {"TopologyError", TOPOPLACE_BAD_TOPOLOGY},
    {"JobGraphError", TOPOPLACE_BAD_JOB},
    {"AllocationError", TOPOPLACE_NOT_ALLOCATED},
    {"SnapshotError", TOPOPLACE_BAD_SNAPSHOT},
};

topoplace_status status_of(PyObject* exception) {
    for (const Named& one : kOwnClasses) {
        const Ref known = own_error(one.name);
        if (PyErr_GivenExceptionMatches(exception, known.get()) != 0) return one.status;
    }
    const std::pair<PyObject*, topoplace_status> built_in[] = {
        {PyExc_TimeoutError, TOPOPLACE_TIMEOUT},
        {PyExc_ModuleNotFoundError, TOPOPLACE_MISSING_PACKAGE},
        {PyExc_MemoryError, TOPOPLACE_OUT_OF_MEMORY},
        {PyExc_ValueError, TOPOPLACE_BAD_ARGUMENT},
    };
    for (const auto& [known, status] : built_in) {
        if (PyErr_GivenExceptionMatches(exception, known) != 0) return status;
    }
    return TOPOPLACE_FAILED;
}

// The exception that Python knows of, which it then forgets.
Ref taken() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return Ref::of_call(value);
}

// What str() gives; "" if the object has no text.
std::string text_of(PyObject* object) {
    PyObject* text = PyObject_Str(object);
    PyObject* bytes =
        text == nullptr ? nullptr : PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    const std::string found = bytes == nullptr ? "" : PyBytes_AsString(bytes);
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    return found;
}

std::string with_type(PyObject* exception) {
    const std::string message = text_of(exception), type = Py_TYPE(exception)->tp_name;
    return message.empty() ? type : type + ": " + message;
}

topoplace_status reported(char** error, topoplace_status status, const std::string& message) {
    if (error != nullptr) *error = strdup(message.c_str());
    return status;
}

topoplace_status reported_of_python(char** error) {
    const Ref exception = taken();
    const topoplace_status status = status_of(exception.get());
    return reported(error, status,
                    status == TOPOPLACE_FAILED ? with_type(exception.get()) : text_of(exception.get()));
}

}  // namespace

std::string python_message() { return with_type(taken().get()); }

topoplace_status described(char** error) noexcept {
    try {
        try {
            throw;
        } catch (const Failure& failure) {
            return reported(error, failure.status, failure.what());
        } catch (const PythonError&) {
            return reported_of_python(error);
        } catch (const std::bad_alloc&) {
            return reported(error, TOPOPLACE_OUT_OF_MEMORY, "out of memory");
        } catch (const std::exception& failure) {
            return reported(error, TOPOPLACE_FAILED, failure.what());
        }
    } catch (...) {  // while the text was made
        return TOPOPLACE_OUT_OF_MEMORY;
    }
}

}  // namespace topoplace::c_interface
