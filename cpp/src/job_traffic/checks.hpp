// Checks of arrays, which name what is out of range.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "topoplace/job_traffic.hpp"

namespace topoplace::traffic {

template <class T>
std::string wrong(const char* name, std::size_t i, T value, const char* rule) {
    return std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) + ": " + rule;
}

[[nodiscard]] Fault check_size(const char* name, std::size_t size, std::size_t expected);
// Every value is in low..end - 1.
[[nodiscard]] Fault check_range(const char* name, std::span<const std::int32_t> values, std::int32_t low,
                                std::size_t end);
// Each number below `count` at most once.
[[nodiscard]] Fault check_once(const char* name, std::span<const std::int32_t> numbers, std::size_t count);
// Ascending, up to `count`.
[[nodiscard]] Fault check_ends(const char* name, std::span<const std::int64_t> ends, std::size_t count);
// (e, 3) two of these tasks, the lower one first, and GB between them.
[[nodiscard]] Fault check_edges(std::span<const double> edges, std::size_t tasks);

}  // namespace topoplace::traffic
