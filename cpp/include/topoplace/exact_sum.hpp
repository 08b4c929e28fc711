// The sum of numbers as if it were rounded once, whatever their order: as math.fsum of Python.
#pragma once

#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace topoplace {

// Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997: the partial sums do not overlap.
inline double exact_sum(std::span<const double> values) {
    std::vector<double> partials;
    for (double value : values) {
        if (!std::isfinite(value)) return value;  // no value is below 0
        std::size_t kept = 0;
        for (double other : partials) {
            if (std::abs(value) < std::abs(other)) std::swap(value, other);
            const double high = value + other, low = other - (high - value);
            if (low != 0.0) partials[kept++] = low;
            value = high;
        }
        partials.resize(kept);
        partials.push_back(value);
    }
    double high = 0.0, low = 0.0;
    std::size_t left = partials.size();
    while (left > 0 && low == 0.0) {
        const double next = partials[--left], before = high;
        high = before + next;
        low = next - (high - before);
    }
    // Half of the last place counts by the sign of what follows.
    if (left > 0 && ((low < 0.0 && partials[left - 1] < 0.0) || (low > 0.0 && partials[left - 1] > 0.0))) {
        const double twice = 2.0 * low, rounded = high + twice;
        if (twice == rounded - high) high = rounded;
    }
    return high;
}

}  // namespace topoplace
