// The sum of numbers as if it were rounded once, whatever their order: as math.fsum of Python.
#pragma once

#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace topoplace {

// Partial sums that do not overlap, by ascending size (Shewchuk, Adaptive Precision Floating-Point
// Arithmetic, 1997).
class ExactSum {
  public:
    void add(double value) {
        std::size_t kept = 0;
        for (double other : partials_) {
            if (std::abs(value) < std::abs(other)) std::swap(value, other);
            const double high = value + other, low = other - (high - value);
            if (low != 0.0) partials_[kept++] = low;
            value = high;
        }
        partials_.resize(kept);
        partials_.push_back(value);
    }

    double rounded() const {
        double high = 0.0, low = 0.0;
        std::size_t left = partials_.size();
        while (left > 0 && low == 0.0) {
            const double next = partials_[--left], before = high;
            high = before + next;
            low = next - (high - before);
        }
        // Half of the last place counts by the sign of what follows.
        const bool goes_on = left > 0 && low * partials_[left - 1] > 0.0;
        const double twice = 2.0 * low, other = high + twice;
        return goes_on && twice == other - high ? other : high;
    }

  private:
    std::vector<double> partials_{};
};

// The numbers are 0 or above.
inline double exact_sum(std::span<const double> values) {
    ExactSum sum;
    for (const double value : values) {
        if (!std::isfinite(value)) return value;
        sum.add(value);
    }
    return sum.rounded();
}

}  // namespace topoplace
