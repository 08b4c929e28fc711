// Checks a target's distances and keeps them.
#include "mapping/problem/target.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "graph/index.hpp"

namespace topoplace::mapping {
namespace {

constexpr double kLargest = 1e100;  // so that sums stay finite

std::string named(const char* name, std::int32_t u, std::int32_t v, double value) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", value);
    return std::string(name) + "[" + std::to_string(u) + ", " + std::to_string(v) + "] = " + number;
}

void check_entry(std::int32_t u, std::int32_t v, double value) {
    const auto name = [&] { return named("target_distance", u, v, value); };
    if (!std::isfinite(value)) throw std::invalid_argument(name() + " is not a finite number");
    if (value < 0) throw std::invalid_argument(name() + " is negative");
    if (value > kLargest) throw std::invalid_argument(name() + " is more than 1e100");
    if (u == v && value != 0) throw std::invalid_argument(name() + " is on the diagonal and not 0");
}

void check_pair(std::int32_t u, std::int32_t v, double value, double mirrored) {
    check_entry(u, v, value);
    check_entry(v, u, mirrored);
    if (value != mirrored) {
        throw std::invalid_argument(named("target_distance", u, v, value) + " but " +
                                    named("target_distance", v, u, mirrored));
    }
}

}  // namespace

Target::Target(std::int32_t num_vertices, std::vector<double> distance)
    : impl_(std::make_shared<const Impl>(num_vertices, std::move(distance))) {}

std::int32_t Target::num_vertices() const { return impl_->size(); }

std::span<const double> Target::distance() const {
    return {impl_->row(0), index(impl_->size()) * index(impl_->size())};
}

Target::Impl::Impl(std::int32_t size, std::vector<double> distance)
    : size_(size), distance_(std::move(distance)), least_(std::numeric_limits<double>::infinity()) {
    if (size < 0 || distance_.size() != index(size) * index(size))
        throw std::invalid_argument("target_distance does not have n x n entries");
    constexpr std::int32_t kBlock = 32;  // its mirror image is read from the cache
    for (std::int32_t top = 0; top < size; top += kBlock) {
        for (std::int32_t left = 0; left < top + kBlock; left += kBlock) check_block(top, left, kBlock);
    }
    if (size < 2) least_ = 0;
    TOPOPLACE_ASSERT(least_ >= 0 && least_ <= largest_ && largest_ <= kLargest);
}

// Rows top .. top + block, columns left .. left + block, up to the diagonal.
void Target::Impl::check_block(std::int32_t top, std::int32_t left, std::int32_t block) {
    for (std::int32_t u = top; u < std::min(size_, top + block); ++u) {
        const double* values = row(u);
        for (std::int32_t v = left; v < std::min(u, left + block); ++v) {
            const double value = values[v];
            if (!(value >= 0 && value == row(v)[u] && value <= kLargest)) check_pair(v, u, row(v)[u], value);
            least_ = std::min(least_, value);
            largest_ = std::max(largest_, value);
        }
        if (left == top && values[u] != 0) check_entry(u, u, values[u]);
    }
}

const Halves* Target::Impl::halves(WorkMeter& meter) const {
    return halves_.get([&] { return halve(*this, meter); });
}

}  // namespace topoplace::mapping
