// std::mutex, or where a program has one thread, and libraries may leave that out, nothing to wait for.
#pragma once

#include <mutex>

namespace topoplace {

#ifdef __STDCPP_THREADS__
using Mutex = std::mutex;
#else
struct Mutex {
    void lock() {}
    void unlock() {}
};
#endif

}  // namespace topoplace
