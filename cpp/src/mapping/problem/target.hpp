// A target's distances, and the tree of its halves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "mapping/problem/source.hpp"
#include "topoplace/made_once.hpp"
#include "topoplace/mapping.hpp"

namespace topoplace::mapping {

// A part of the target: the vertices order[begin .. end) of the tree. A single vertex has no halves.
struct Part {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int32_t half[2] = {kAbsent, kAbsent};  // indices of parts

    std::int32_t size() const { return end - begin; }
};

struct Halves {
    std::vector<std::int32_t> order;
    std::vector<Part> parts;  // the first is the whole target; halves come after what they halve
};

class Target::Impl {
  public:
    Impl(std::int32_t size, std::vector<double> distance);

    std::int32_t size() const { return size_; }
    const double* row(std::int32_t u) const {
        TOPOPLACE_ASSERT(u < size_ || size_ == 0);
        return distance_.data() + index(u) * index(size_);
    }
    double distance(std::int32_t u, std::int32_t v) const { return row(u)[index(v)]; }
    double least() const { return least_; }  // between different vertices; 0 where there is one vertex
    double largest() const { return largest_; }
    // Null where `meter` stops before they are made.
    const Halves* halves(WorkMeter& meter) const;
    // Once made.
    const Halves& halves() const {
        TOPOPLACE_ASSERT(halves_.is_made());
        return halves_.value();
    }

  private:
    std::int32_t size_;
    std::vector<double> distance_;
    double least_ = 0;
    double largest_ = 0;
    mutable MadeOnce<Halves> halves_;
};

// None where `meter` stops.
std::optional<Halves> halve(const Target::Impl& target, WorkMeter& meter);

}  // namespace topoplace::mapping
