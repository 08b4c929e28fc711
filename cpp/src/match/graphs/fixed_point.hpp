// A target's weights in fixed point, relative to the heaviest, so that sums compare exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::match {

using Fixed = std::int64_t;

class FixedPoint {
  public:
    // None where `meter` stops.
    static std::optional<FixedPoint> make(const Graph& graph, WorkMeter& meter);

    double heaviest() const { return heaviest_; }
    double lightest() const { return lightest_; }
    // Of an edge of the graph; 1 where weights cannot be compared.
    Fixed of(double weight) const;
    // Of any number: below the lightest edge 1, above the heaviest the largest number.
    Fixed limit(double weight) const;
    double to_double(Fixed weight) const { return static_cast<double>(weight) / scale_; }
    // The smallest number that of() takes to at least this much.
    double least(Fixed weight) const { return (static_cast<double>(weight) - 0.5) / scale_; }
    // Why sums of weights cannot be compared: they span too wide a range.
    [[nodiscard]] Fault check_comparable() const;

  private:
    void set_scale();

    double heaviest_ = 0;
    double lightest_ = std::numeric_limits<double>::infinity();
    bool comparable_ = true;
    double scale_ = 1;
};

// The most that is within a relative tolerance of a score of at least 0; a little less, so that it is within
// it before rounding to fixed point, too.
inline Fixed raised(Fixed score, double tolerance) {
    constexpr Fixed most = std::numeric_limits<Fixed>::max() - 1;
    const double slack = tolerance * (1 - 1e-9) * static_cast<double>(score);
    return slack < static_cast<double>(most - score) ? score + static_cast<Fixed>(slack) : most;
}

// The distinct ones of many weights, heaviest first. They are sorted whenever as many have come as there
// were, so that no sort takes long before the last.
class DistinctWeights {
  public:
    void add(Fixed weight) {
        weights_.push_back(weight);
        if (weights_.size() - sorted_ > std::max(sorted_, kSortedAtLeast)) sort();
    }
    std::vector<Fixed>&& take() {
        sort();
        return std::move(weights_);
    }

  private:
    void sort();

    static constexpr std::size_t kSortedAtLeast = 1U << 12;
    std::vector<Fixed> weights_;
    std::size_t sorted_ = 0;
};

}  // namespace topoplace::match
