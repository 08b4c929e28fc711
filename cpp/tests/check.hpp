// The whole C++ test framework. A test file holds TEST(name) { ... } blocks; cpp/tests/main.cpp runs them
// all. A failed CHECK reports and goes on, so that one run shows every broken expectation.
#pragma once
#include <cstdint>
#include <iostream>
#include <vector>

namespace check {

struct Case {
    const char* name;
    void (*run)();
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

// AddressSanitizer makes a search ten times slower: it sees a part of the random cases, always the same.
inline constexpr std::int32_t rounds(std::int32_t all, [[maybe_unused]] std::int32_t one_of = 4) {
#ifdef __SANITIZE_ADDRESS__
    return (all + one_of - 1) / one_of;
#else
    return all;
#endif
}

inline int failures = 0;

inline bool add(const char* name, void (*run)()) {
    cases().push_back({name, run});
    return true;
}

inline std::ostream& fail(const char* file, int line) {
    ++failures;
    return std::cerr << file << ':' << line << ": ";
}

}  // namespace check

#define TEST(name)                                                 \
    static void name();                                            \
    static const bool name##_is_known = ::check::add(#name, name); \
    static void name()
#define CHECK(condition) \
    ((condition) ? void() : void(::check::fail(__FILE__, __LINE__) << "not true: " #condition "\n"))
#define CHECK_EQ(actual, expected)                                                                           \
    do {                                                                                                     \
        const auto& actual_ = (actual);                                                                      \
        const auto& expected_ = (expected);                                                                  \
        if (!(actual_ == expected_))                                                                         \
            ::check::fail(__FILE__, __LINE__) << #actual " is " << actual_ << ", not " << expected_ << '\n'; \
    } while (false)
