// Local search: makes a good embedding better before branch and bound has to prove it. Moves put one pattern
// vertex on an unused target vertex or exchange the images of two; steepest ascent, then a few seeded kicks.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "topoplace/assert.hpp"
#include "topoplace/bitset.hpp"

namespace topoplace::match {

// Scores a complete mapping, images in any fixed order; the smallest number where it is not an embedding.
template <class V>
concept MappingValue = requires(V value, const std::vector<std::int32_t>& image) {
    { value(image) } -> std::same_as<std::int64_t>;
};

template <int W, MappingValue Value>
class Polish {
  public:
    Polish(const Bits<W>& usable, Value value) : value_(std::move(value)) {
        usable.for_each([&](std::int32_t v) { usable_.push_back(v); });
    }

    // Returns the best score found; `image` becomes its mapping.
    // `stopped`: asked within rounds.
    template <std::predicate Stopped>
    std::int64_t run(std::vector<std::int32_t>& image, std::int64_t score, Stopped&& stopped) {
        TOPOPLACE_ASSERT(value_(image) == score && image.size() <= usable_.size());
        std::vector<std::int32_t> trial = image;
        for (int kick = 0; kick <= kKicks && !stopped(); ++kick) {
            const std::int64_t reached = climb(trial, stopped);
            if (reached > score) {
                score = reached;
                image = trial;
            }
            trial = image;
            for (int i = 0; i < kMovesPerKick; ++i) {
                move(trial, draw() % trial.size(), usable_[draw() % usable_.size()]);
            }
        }
        TOPOPLACE_ASSERT(value_(image) == score);
        return score;
    }

  private:
    static constexpr int kKicks = 5;
    static constexpr int kMovesPerKick = 5;

    template <std::predicate Stopped>
    std::int64_t climb(std::vector<std::int32_t>& image, Stopped& stopped) {
        std::int64_t score = value_(image);
        for (bool better = true; better;) {
            better = false;
            std::pair<std::size_t, std::int32_t> best{};
            for (std::size_t i = 0; i < image.size() && !stopped(); ++i) {
                for (const std::int32_t v : usable_) {
                    const std::int32_t held = image[i];
                    if (v == held) continue;
                    move(image, i, v);
                    const std::int64_t reached = value_(image);
                    move(image, i, held);
                    if (reached <= score) continue;
                    score = reached;
                    best = {i, v};
                    better = true;
                }
            }
            if (better) move(image, best.first, best.second);
            TOPOPLACE_ASSERT(value_(image) == score);
        }
        return score;
    }

    // Puts vertex i on v; the vertex that was there, if any, takes over i's image. Its own inverse.
    static void move(std::vector<std::int32_t>& image, std::size_t i, std::int32_t v) {
        for (std::int32_t& other : image) {
            if (other == v) other = image[i];
        }
        image[i] = v;
    }

    // A linear congruential generator, seeded afresh for every search: the same kicks every time. Not
    // `Random`, whose numbers are others: answers under a node limit would change with the kicks.
    std::size_t draw() {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<std::size_t>(state_ >> 33);
    }

    Value value_;
    std::vector<std::int32_t> usable_;
    std::uint64_t state_ = 1;
};

}  // namespace topoplace::match
