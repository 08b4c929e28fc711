// Bisection over the distinct weights of a target, for the best bottleneck.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "match/graphs/fixed_point.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {

// What it knows: no embedding over edges of weights[refuted] or more, and one (the witness) over those of
// weights[open], unless that is the end.
class Bracket {
  public:
    // weights: heaviest first. tolerance: relative, how much heavier than weights[open] what is not refuted
    // may be in the end.
    Bracket(std::span<const Fixed> weights, Fixed min_weight, double tolerance)
        : weights_(weights),
          tolerance_(tolerance),
          end_(std::upper_bound(weights.begin(), weights.end(), min_weight, std::greater<>()) -
               weights.begin()),
          open_(end_) {}

    std::span<const Fixed> weights() const { return weights_; }
    Fixed weight(std::ptrdiff_t rank) const { return weights_[static_cast<std::size_t>(rank)]; }
    // Of a weight among them.
    std::ptrdiff_t rank(Fixed weight) const {
        return std::lower_bound(weights_.begin(), weights_.end(), weight, std::greater<>()) -
               weights_.begin();
    }

    std::ptrdiff_t refuted() const { return refuted_; }
    std::ptrdiff_t open() const { return open_; }
    bool is_found() const { return !witness_.empty(); }
    // Nothing is between the two.
    bool is_proven() const { return open_ - refuted_ <= 1; }
    bool is_decided() const {
        return is_proven() ||
               (tolerance_ > 0 && is_found() && weight(refuted_ + 1) <= raised(weight(open_), tolerance_));
    }
    // The heaviest weight that is not refuted.
    Fixed bound() const { return weight(refuted_ + 1); }
    std::vector<std::int32_t>&& take_witness() { return std::move(witness_); }

    void refute(std::ptrdiff_t rank) {
        TOPOPLACE_ASSERT(rank > refuted_ && rank < open_);
        refuted_ = rank;
    }
    void find(std::ptrdiff_t rank, std::vector<std::int32_t> witness) {
        TOPOPLACE_ASSERT(rank > refuted_ && rank < end_ && !witness.empty());
        open_ = rank;
        witness_ = std::move(witness);
    }

  private:
    std::span<const Fixed> weights_;
    double tolerance_;
    std::ptrdiff_t end_;  // of those that are heavy enough
    std::ptrdiff_t refuted_ = -1;
    std::ptrdiff_t open_;
    std::vector<std::int32_t> witness_;
};

}  // namespace topoplace::match
