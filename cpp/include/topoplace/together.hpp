// Tasks that are in one domain of a level, if they can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "topoplace/fault.hpp"

namespace topoplace::decide {

struct Together {
    std::size_t level = 0;
    std::span<const std::int32_t> tasks{};
};

// The first thing of groups of these tasks that is out of range.
[[nodiscard]] Fault check_groups(std::span<const Together> groups, std::size_t levels,
                                 std::int32_t num_tasks);

}  // namespace topoplace::decide
