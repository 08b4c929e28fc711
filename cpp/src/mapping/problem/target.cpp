// Checks a target's distances and keeps them.
#include "mapping/problem/target.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
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

Fault check_entry(std::int32_t u, std::int32_t v, double value) {
    const auto name = [&] { return named("target_distance", u, v, value); };
    if (!std::isfinite(value)) return name() + " is not a finite number";
    if (value < 0) return name() + " is negative";
    if (value > kLargest) return name() + " is more than 1e100";
    if (u == v && value != 0) return name() + " is on the diagonal and not 0";
    return std::nullopt;
}

Fault check_pair(std::int32_t u, std::int32_t v, double value, double mirrored) {
    if (auto fault = check_entry(u, v, value)) return fault;
    if (auto fault = check_entry(v, u, mirrored)) return fault;
    if (value == mirrored) return std::nullopt;
    return named("target_distance", u, v, value) + " but " + named("target_distance", v, u, mirrored);
}

// Rows top .. top + block, columns left .. left + block, up to the diagonal.
Fault check_block(std::int32_t size, std::span<const double> distance, std::int32_t top, std::int32_t left,
                  std::int32_t block) {
    const auto at = [&](std::int32_t u, std::int32_t v) {
        return distance[index(u) * index(size) + index(v)];
    };
    for (std::int32_t u = top; u < std::min(size, top + block); ++u) {
        for (std::int32_t v = left; v < std::min(u, left + block); ++v) {
            const double value = at(u, v);
            if (!(value >= 0 && value == at(v, u) && value <= kLargest))
                return check_pair(v, u, at(v, u), value);
        }
        if (left == top && at(u, u) != 0) return check_entry(u, u, at(u, u));
    }
    return std::nullopt;
}

}  // namespace

Fault Target::check(std::int32_t num_vertices, std::span<const double> distance) {
    if (num_vertices < 0 || distance.size() != std::uint64_t{index(num_vertices)} * index(num_vertices))
        return "target_distance does not have n x n entries";
    constexpr std::int32_t kBlock = 32;  // its mirror image is read from the cache
    for (std::int32_t top = 0; top < num_vertices; top += kBlock) {
        for (std::int32_t left = 0; left < top + kBlock; left += kBlock) {
            if (auto fault = check_block(num_vertices, distance, top, left, kBlock)) return fault;
        }
    }
    return std::nullopt;
}

Target::Target(std::int32_t num_vertices, std::vector<double> distance)
    : impl_(std::make_shared<const Impl>(num_vertices, std::move(distance))) {}

std::int32_t Target::num_vertices() const { return impl_->size(); }

std::span<const double> Target::distance() const {
    return {impl_->row(0), index(impl_->size()) * index(impl_->size())};
}

Target::Impl::Impl(std::int32_t size, std::vector<double> distance)
    : size_(size), distance_(std::move(distance)), least_(std::numeric_limits<double>::infinity()) {
    TOPOPLACE_ASSERT(!Target::check(size, distance_));
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = 0; v < u; ++v) {
            least_ = std::min(least_, row(u)[v]);
            largest_ = std::max(largest_, row(u)[v]);
        }
    }
    if (size < 2) least_ = 0;
}

const Halves* Target::Impl::halves(WorkMeter& meter) const {
    return halves_.get([&] { return halve(*this, meter); });
}

}  // namespace topoplace::mapping
