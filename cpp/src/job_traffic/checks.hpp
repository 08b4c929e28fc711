// Checks of arrays, which name what is out of range.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "topoplace/job_traffic.hpp"

namespace topoplace::traffic {

template <class T>
[[noreturn]] void refuse(const char* name, std::size_t i, T value, const char* rule) {
    throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) +
                                ": " + rule);
}

void check_size(const char* name, std::size_t size, std::size_t expected);
// Every value is in low..end - 1.
void check_range(const char* name, std::span<const std::int32_t> values, std::int32_t low, std::size_t end);
// Ascending, up to `count`.
void check_ends(const char* name, std::span<const std::int64_t> ends, std::size_t count);
// The collectives of a job of so many tasks.
void check_job(const JobCollectives& job, std::size_t num_tasks);

}  // namespace topoplace::traffic
