// The one conversion from the library's 32-bit numbers of nodes, arcs and rows to an index of a container.
#pragma once

#include <cstddef>
#include <cstdint>

#include "topoplace/assert.hpp"

namespace topoplace {

// The number of a node, arc or row that is not there.
inline constexpr std::int32_t kAbsent = -1;

constexpr std::size_t index(std::int32_t number) {
    TOPOPLACE_ASSERT(number >= 0);
    return static_cast<std::size_t>(number);
}

}  // namespace topoplace
