// What is said of a number that is out of range.
#pragma once

#include <cstdint>
#include <string>

namespace topoplace::groups {

inline std::string wrong(const char* name, std::size_t i, std::int64_t value, const char* rule) {
    return std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) + ": " + rule;
}

}  // namespace topoplace::groups
