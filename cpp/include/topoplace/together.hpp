// Tasks that are in one domain of a level, if they can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace topoplace::decide {

struct Together {
    std::size_t level = 0;
    std::span<const std::int32_t> tasks{};
};

}  // namespace topoplace::decide
