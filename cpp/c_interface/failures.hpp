// How a call of the C interface fails: C++ and Python exceptions become a status and a text.
#pragma once
#include <stdexcept>
#include <string>

#include "python_object.hpp"
#include "topoplace.h"

namespace topoplace::c_interface {

// An argument or the process is not as it must be.
struct Failure : std::runtime_error {
    Failure(topoplace_status why, const std::string& message) : std::runtime_error(message), status(why) {}
    topoplace_status status;
};

inline Failure bad_argument(const std::string& message) { return {TOPOPLACE_BAD_ARGUMENT, message}; }

// Returns the status of the exception that is being handled, and sets *error to its text unless `error` is
// null. For a PythonError the calling thread must have the interpreter's lock; Python then knows of no
// exception any more.
topoplace_status described(char** error) noexcept;

// Returns the text of Python's current exception, with its type, and clears it.
std::string python_message();

// Throws Failure unless topoplace_start has succeeded.
void require_started();

// Calls `body` with the interpreter's lock, and returns how it went.
template <class Body>
topoplace_status answered(char** error, Body body) noexcept {
    if (error != nullptr) *error = nullptr;
    try {
        require_started();
        const Gil gil;
        try {
            body();
            return TOPOPLACE_OK;
        } catch (...) {
            return described(error);
        }
    } catch (...) {
        return described(error);
    }
}

// Does the same for a function that gives something, whose place `out` is NULL until it succeeds.
template <class Result, class Body>
topoplace_status given(Result** out, const char* name, char** error, Body body) noexcept {
    if (out != nullptr) *out = nullptr;
    return answered(error, [&] {
        if (out == nullptr)
            throw bad_argument(std::string(name) + " is NULL: there is no place for the result");
        body();
    });
}

}  // namespace topoplace::c_interface
