// Numbers to be taken with the least first. Where they come in rising order, as they mostly do, a plain list
// serves; the first that does not turns it into a heap, which a sorted list is already.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <vector>

#include "topoplace/assert.hpp"

namespace topoplace::flow {

class RisingQueue {
  public:
    explicit RisingQueue(std::pmr::memory_resource* memory) : numbers_(memory) {}

    void reserve(std::size_t count) { numbers_.reserve(count); }
    bool empty() const { return first_ == numbers_.size(); }

    void push(std::int32_t number) {
        if (empty()) {
            numbers_.clear();
            first_ = 0;
            rises_ = true;
        } else if (rises_ && number < numbers_.back()) {
            numbers_.erase(numbers_.begin(), numbers_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
            rises_ = false;
        }
        numbers_.push_back(number);
        if (!rises_) std::push_heap(numbers_.begin(), numbers_.end(), std::greater<>());
    }

    std::int32_t pop() {
        TOPOPLACE_ASSERT(!empty());
        if (rises_) return numbers_[first_++];
        std::pop_heap(numbers_.begin(), numbers_.end(), std::greater<>());
        const std::int32_t least = numbers_.back();
        numbers_.pop_back();
        return least;
    }

  private:
    std::pmr::vector<std::int32_t> numbers_;
    std::size_t first_ = 0;  // of a list that rises
    bool rises_ = true;
};

}  // namespace topoplace::flow
