// Arguments of C as objects of Python, and back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "python_object.hpp"

namespace topoplace::c_interface {

struct Free {
    void operator()(char* text) const { std::free(text); }
};
using Text = std::unique_ptr<char, Free>;

// Every function throws Failure, naming the argument, or PythonError.
Ref text(const char* value, const char* name);
Ref text_or_none(const char* value, const char* name);  // None for null
Ref bytes(const char* data, std::size_t length, const char* name);
Ref integer(std::int64_t value);
Ref flag(bool value);
Ref integers(const std::int32_t* values, std::size_t count, const char* name);

// A copy of a str or bytes for the caller, with a null byte at its end; sets *length unless it is null.
Text copied(const Ref& object, std::size_t* length = nullptr);

// Copies a tuple of ints to the caller's array, whose arguments are checked by `check_array` before the call.
void write(const Ref& tuple, std::int32_t* values, std::size_t capacity, std::size_t* count);
void check_array(const std::int32_t* values, std::size_t capacity, const std::size_t* count);

}  // namespace topoplace::c_interface
