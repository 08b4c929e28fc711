// The last changes of something, for readers that catch up now and then.
//
// The log forgets its older half when it is full. A reader that was away for longer learns that, and reads
// everything again. Its memory is taken at the start, so that adding never fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace topoplace {

class ChangeLog {
  public:
    explicit ChangeLog(std::size_t capacity) : capacity_(capacity) { changes_.reserve(capacity); }

    void add(std::int32_t what) noexcept {
        if (changes_.size() >= capacity_) {
            const std::size_t half = changes_.size() / 2 + 1;
            changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(half));
            forgotten_ += half;
        }
        changes_.push_back(what);
    }

    // The position after the last change.
    std::uint64_t end() const { return forgotten_ + changes_.size(); }

    // What changed since `position`, oldest first; nothing where some of it is forgotten.
    std::optional<std::span<const std::int32_t>> since(std::uint64_t position) const {
        if (position < forgotten_) return std::nullopt;
        return std::span(changes_).subspan(static_cast<std::size_t>(position - forgotten_));
    }

  private:
    std::size_t capacity_;
    std::vector<std::int32_t> changes_;
    std::uint64_t forgotten_ = 0;
};

}  // namespace topoplace
