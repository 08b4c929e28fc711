// The scale: a power of two, so that weights round once and at the same place.
#include "match/graphs/fixed_point.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

constexpr int kBits = 40;
// Within these every weight has a fixed-point value of its own magnitude, and no sum overflows.
constexpr double kLightest = 1e-150;
constexpr double kHeaviest = 1e150;
constexpr double kWidestRange = 1e11;

}  // namespace

std::optional<FixedPoint> FixedPoint::make(const Graph& graph, WorkMeter& meter) {
    FixedPoint points;
    for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
        if (meter.pass_time(8 * graph.weights(v).size())) return std::nullopt;
        for (const double weight : graph.weights(v)) {
            points.heaviest_ = std::max(points.heaviest_, weight);
            points.lightest_ = std::min(points.lightest_, weight);
        }
    }
    points.set_scale();
    return points;
}

void FixedPoint::set_scale() {
    if (heaviest_ == 0) return;
    comparable_ = lightest_ >= kLightest && heaviest_ <= kHeaviest && heaviest_ / lightest_ <= kWidestRange;
    TOPOPLACE_ASSERT(lightest_ > 0 && lightest_ <= heaviest_);
    if (comparable_) scale_ = std::ldexp(1.0, kBits - 1 - std::ilogb(heaviest_));
}

Fixed FixedPoint::of(double weight) const {
    const Fixed fixed = comparable_ ? std::llround(weight * scale_) : 1;
    TOPOPLACE_ASSERT(fixed > 0 && fixed <= Fixed{1} << kBits);
    return fixed;
}

Fixed FixedPoint::limit(double weight) const {
    if (!comparable_ || weight <= lightest_) return 1;
    return weight > heaviest_ ? std::numeric_limits<Fixed>::max() : std::llround(weight * scale_);
}

Fault FixedPoint::check_comparable() const {
    if (comparable_) return std::nullopt;
    // A stream crashes here if another module in the process brings its own C++ library.
    std::array<char, 256> message;
    std::snprintf(message.data(), message.size(),
                  "weights from %g to %g cannot be compared exactly: between %g and %g, "
                  "the heaviest may be %g times the lightest",
                  lightest_, heaviest_, kLightest, kHeaviest, kWidestRange);
    return message.data();
}

void DistinctWeights::sort() {
    const auto fresh = weights_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::sort(fresh, weights_.end(), std::greater<>());
    weights_.erase(std::unique(fresh, weights_.end()), weights_.end());
    std::inplace_merge(weights_.begin(), fresh, weights_.end(), std::greater<>());
    weights_.erase(std::unique(weights_.begin(), weights_.end()), weights_.end());
    sorted_ = weights_.size();
}

}  // namespace topoplace::match
