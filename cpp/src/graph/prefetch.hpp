// Asks for memory ahead of its use.
#pragma once

#include <cstddef>

namespace topoplace {

inline constexpr std::size_t kCacheLine = 64;  // in bytes

// Has the cache line at an address loaded, which need not be valid.
inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    static_cast<void>(address);
#endif
}

}  // namespace topoplace
