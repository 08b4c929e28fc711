// TOPOPLACE_ASSERT(condition): ends the process where an invariant of the library does not hold.
//
// An assertion states what the library guarantees to itself; what callers pass in is checked by `check`
// instead. CMake's option TOPOPLACE_ASSERTIONS switches assertions on (presets dev, sanitizers and fuzz).
// Elsewhere the condition is compiled but never evaluated, so that it costs nothing and cannot go stale.
#pragma once

#include <cstdio>
#include <cstdlib>

#ifndef TOPOPLACE_ASSERTIONS
#define TOPOPLACE_ASSERTIONS 0
#endif

namespace topoplace {

// For checks that take more than an expression: `if constexpr (kAssertionsOn) ...`.
inline constexpr bool kAssertionsOn = TOPOPLACE_ASSERTIONS != 0;

// Prints `place` (file and line) and the expression to the standard error stream, then aborts.
[[noreturn]] inline void assertion_failed(const char* place, const char* expression) {
    std::fputs(place, stderr);
    std::fputs(": assertion failed: ", stderr);
    std::fputs(expression, stderr);
    std::fputs("\n", stderr);
    std::abort();
}

}  // namespace topoplace

#define TOPOPLACE_TEXT_OF(value) #value
#define TOPOPLACE_EXPANDED_TEXT_OF(value) TOPOPLACE_TEXT_OF(value)

#if TOPOPLACE_ASSERTIONS
#define TOPOPLACE_ASSERT(...)       \
    (static_cast<bool>(__VA_ARGS__) \
         ? static_cast<void>(0)     \
         : ::topoplace::assertion_failed(__FILE__ ":" TOPOPLACE_EXPANDED_TEXT_OF(__LINE__), #__VA_ARGS__))
#else
#define TOPOPLACE_ASSERT(...) static_cast<void>(sizeof(static_cast<bool>(__VA_ARGS__)))
#endif
