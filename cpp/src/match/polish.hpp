// Local search: makes a good embedding better before branch and bound has to prove it. Moves put one pattern
// vertex on an unused target vertex or exchange the images of two; steepest ascent, then a few seeded kicks.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "match/mapping_value.hpp"
#include "topoplace/assert.hpp"
#include "topoplace/bitset.hpp"

namespace topoplace::match {

template <int W, Score S>
class Polish {
  public:
    Polish(const Bits<W>& usable, const MappingValue<W, S>& value)
        : value_(value), holder_(static_cast<std::size_t>(Bits<W>::kBits), kAbsent) {
        usable.for_each([&](std::int32_t v) { usable_.push_back(v); });
    }

    // Returns the best score found; `image` becomes its mapping.
    // `stopped`: asked within rounds.
    template <std::predicate Stopped>
    Fixed run(std::vector<std::int32_t>& image, Fixed score, Stopped&& stopped) {
        TOPOPLACE_ASSERT(value_.of(image) == score && image.size() <= usable_.size());
        std::vector<std::int32_t> trial;
        for (int kick = 0; kick <= kKicks && !stopped(); ++kick) {
            trial = image;
            std::fill(holder_.begin(), holder_.end(), kAbsent);
            for (std::size_t i = 0; i < trial.size(); ++i)
                holder_[index(trial[i])] = static_cast<std::int32_t>(i);
            for (int i = 0; kick > 0 && i < kMovesPerKick; ++i) {
                const auto vertex = static_cast<std::int32_t>(draw() % trial.size());
                move(trial, vertex, usable_[draw() % usable_.size()]);
            }
            const Fixed reached = climb(trial, stopped);
            if (reached <= score) continue;
            score = reached;
            image = trial;
        }
        TOPOPLACE_ASSERT(value_.of(image) == score);
        return score;
    }

  private:
    static constexpr int kKicks = 5;
    static constexpr int kMovesPerKick = 5;

    template <std::predicate Stopped>
    Fixed climb(std::vector<std::int32_t>& image, Stopped& stopped) {
        Fixed score = value_.of(image);
        for (bool better = true; better;) {
            better = false;
            const Fixed now = score;
            std::pair<std::int32_t, std::int32_t> best{};
            for (std::int32_t i = 0; i < std::ssize(image) && !stopped(); ++i) {
                for (const std::int32_t v : usable_) {
                    if (v == image[index(i)]) continue;
                    const Fixed reached = value_.after(image, now, i, v, holder_[index(v)]);
                    if (reached <= score) continue;
                    score = reached;
                    best = {i, v};
                    better = true;
                }
            }
            if (better) move(image, best.first, best.second);
            TOPOPLACE_ASSERT(value_.of(image) == score);
        }
        return score;
    }

    // Puts vertex i on v; the vertex that was there, if any, takes over i's image. Its own inverse.
    void move(std::vector<std::int32_t>& image, std::int32_t i, std::int32_t v) {
        const std::int32_t held = image[index(i)];
        if (held == v) return;
        const std::int32_t other = std::exchange(holder_[index(v)], i);
        holder_[index(held)] = other;
        image[index(i)] = v;
        if (other != kAbsent) image[index(other)] = held;
    }

    // A linear congruential generator, seeded afresh for every search: the same kicks every time. Not
    // `Random`, whose numbers are others: answers under a node limit would change with the kicks.
    std::size_t draw() {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<std::size_t>(state_ >> 33);
    }

    const MappingValue<W, S>& value_;
    std::vector<std::int32_t> usable_;
    std::vector<std::int32_t> holder_;  // of each target vertex in the current mapping
    std::uint64_t state_ = 1;
};

}  // namespace topoplace::match
