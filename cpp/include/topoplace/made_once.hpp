// A value that is made where it is first asked for, by whichever thread asks first.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "topoplace/mutex.hpp"

namespace topoplace {

template <class T>
class MadeOnce {
  public:
    // The value, made by `make` if there is none; other threads wait. Null where `make` returns none: then
    // the next call makes it.
    template <class Make>
    const T* get(const Make& make) {
        if (is_made()) return &*value_;
        const std::lock_guard lock(mutex_);
        if (!is_made()) {
            value_ = make();
            made_.store(value_.has_value(), std::memory_order_release);
        }
        return value_ ? &*value_ : nullptr;
    }
    bool is_made() const { return made_.load(std::memory_order_acquire); }
    // Once made.
    const T& value() const { return *value_; }

  private:
    Mutex mutex_;
    std::atomic<bool> made_ = false;
    std::optional<T> value_;
};

}  // namespace topoplace
