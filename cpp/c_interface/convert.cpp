// Conversions between C and Python, with checks.
#include "convert.hpp"

#include <cstring>
#include <new>
#include <string>

#include "failures.hpp"

namespace topoplace::c_interface {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxItems = std::size_t{1} << 24;

// The position at which Python's current UnicodeDecodeError found no UTF-8; the error is cleared.
Py_ssize_t bad_byte() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_ssize_t start = 0;
    if (PyUnicodeDecodeError_GetStart(value, &start) != 0) PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return start;
}

}  // namespace

Ref text(const char* value, const char* name) {
    if (value == nullptr) throw bad_argument(std::string(name) + " is NULL");
    const std::size_t length = std::strlen(value);
    if (length > kMaxBytes) throw bad_argument(std::string(name) + " has more than 1 GiB");
    PyObject* decoded = PyUnicode_DecodeUTF8(value, static_cast<Py_ssize_t>(length), "strict");
    if (decoded == nullptr && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError) != 0) {
        throw bad_argument(std::string(name) + " is not UTF-8 at byte " + std::to_string(bad_byte()));
    }
    return Ref::of_call(decoded);
}

Ref text_or_none(const char* value, const char* name) {
    return value == nullptr ? Ref::of_call(Py_NewRef(Py_None)) : text(value, name);
}

Ref bytes(const char* data, std::size_t length, const char* name) {
    if (data == nullptr) throw bad_argument(std::string(name) + " is NULL");
    if (length > kMaxBytes) {
        throw bad_argument("length = " + std::to_string(length) + ": " + name + " must have at most 1 GiB");
    }
    return Ref::of_call(PyBytes_FromStringAndSize(data, static_cast<Py_ssize_t>(length)));
}

Ref integer(std::int64_t value) { return Ref::of_call(PyLong_FromLongLong(value)); }

Ref flag(bool value) { return Ref::of_call(PyBool_FromLong(value ? 1 : 0)); }

Ref integers(const std::int32_t* values, std::size_t count, const char* name) {
    if (count > kMaxItems) throw bad_argument("count = " + std::to_string(count) + ": too many " + name);
    if (values == nullptr && count > 0) throw bad_argument(std::string(name) + " is NULL");
    const Ref made = Ref::of_call(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t i = 0; i < count; ++i) {
        PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), integer(values[i]).release());
    }
    return made;
}

Text copied(const Ref& object, std::size_t* length) {
    const char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_Check(object.get()) != 0) {
        data = PyBytes_AS_STRING(object.get());
        size = PyBytes_GET_SIZE(object.get());
    } else {
        data = PyUnicode_AsUTF8AndSize(object.get(), &size);
        if (data == nullptr) throw PythonError{};
    }
    const std::size_t bytes = static_cast<std::size_t>(size);
    Text copy(static_cast<char*>(std::malloc(bytes + 1)));
    if (!copy) throw std::bad_alloc{};
    std::memcpy(copy.get(), data, bytes + 1);  // both kinds of objects end with a null byte
    if (length != nullptr) *length = bytes;
    return copy;
}

void check_array(const std::int32_t* values, std::size_t capacity, const std::size_t* count) {
    if (count == nullptr) throw bad_argument("count is NULL: there is no place for the result");
    if (values == nullptr && capacity > 0) {
        throw bad_argument("gpus is NULL, and capacity = " + std::to_string(capacity));
    }
}

void write(const Ref& tuple, std::int32_t* values, std::size_t capacity, std::size_t* count) {
    const std::size_t size = static_cast<std::size_t>(PyTuple_GET_SIZE(tuple.get()));
    *count = size;
    if (values == nullptr) return;
    if (size > capacity) {
        throw Failure(TOPOPLACE_BUFFER_TOO_SMALL, "capacity = " + std::to_string(capacity) + ": there are " +
                                                      std::to_string(size) + " GPUs");
    }
    for (std::size_t i = 0; i < size; ++i) {
        values[i] = static_cast<std::int32_t>(
            PyLong_AsLong(PyTuple_GET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i))));
    }
}

}  // namespace topoplace::c_interface
