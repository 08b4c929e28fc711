// How the problem refuses a number that is out of range.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace topoplace::groups {

[[noreturn]] inline void refuse(const char* name, std::size_t i, std::int64_t value, const char* rule) {
    throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) +
                                ": " + rule);
}

}  // namespace topoplace::groups
