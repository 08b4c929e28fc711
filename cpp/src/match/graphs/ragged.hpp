// Rows of different lengths in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/index.hpp"

namespace topoplace::match {

template <class T>
class Ragged {
  public:
    void push(T value) { values_.push_back(value); }
    void push_row(std::span<const T> row) {
        values_.insert(values_.end(), row.begin(), row.end());
        close_row();
    }
    void close_row() { ends_.push_back(values_.size()); }
    // Searches call it within their innermost loops, in files where compilers stop inlining halfway.
    [[gnu::always_inline]] std::span<const T> operator[](std::int32_t row) const {
        const auto i = index(row);
        TOPOPLACE_ASSERT(i < ends_.size());
        const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
        TOPOPLACE_ASSERT(begin <= ends_[i] && ends_[i] <= values_.size());
        return std::span<const T>(values_).subspan(begin, ends_[i] - begin);
    }

  private:
    std::vector<T> values_;
    std::vector<std::size_t> ends_;
};

}  // namespace topoplace::match
