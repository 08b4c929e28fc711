// Simulated annealing: makes a good embedding better where local search ends and branch and bound has proved
// hard. It makes the same moves as `Polish`, one at a time and at random, and takes those that lose less than
// a random multiple of the temperature, which falls.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "match/mapping_value.hpp"
#include "topoplace/assert.hpp"
#include "topoplace/bitset.hpp"

namespace topoplace::match {

template <int W, Score S>
class Anneal {
  public:
    // heaviest: of all edges.
    Anneal(const Bits<W>& usable, const MappingValue<W, S>& value, Fixed heaviest, std::uint64_t seed)
        : state_(seed),
          value_(value),
          heaviest_(static_cast<double>(heaviest)),
          holder_(static_cast<std::size_t>(Bits<W>::kBits), kAbsent) {
        usable.for_each([&](std::int32_t v) { usable_.push_back(v); });
        double sum = 0;  // the mean of the i-th smallest of many exponential random numbers
        for (std::size_t i = 0; i < losses_.size(); ++i) {
            sum += 1.0 / static_cast<double>(losses_.size() - i);
            losses_[i] = sum;
        }
    }

    // Returns the best score found; `image` becomes its mapping. hottest: in weights of the heaviest edge.
    // moves: between two temperatures, of which there are 64. `stopped`: asked at each of them.
    template <std::predicate Stopped>
    Fixed run(std::vector<std::int32_t>& image, Fixed score, double hottest, std::uint64_t moves,
              Stopped&& stopped) {
        TOPOPLACE_ASSERT(value_.of(image) == score);
        std::vector<std::int32_t> now = image;
        score = cool(now, score, heaviest_ * hottest, moves, image, stopped);
        TOPOPLACE_ASSERT(value_.of(image) == score);
        return score;
    }

  private:
    static constexpr int kTemperatures = 64;
    static constexpr double kColder = 0.9307;  // 0.01 in the end

    template <std::predicate Stopped>
    Fixed cool(std::vector<std::int32_t>& now, Fixed best, double temperature, std::uint64_t moves,
               std::vector<std::int32_t>& image, Stopped& stopped) {
        std::fill(holder_.begin(), holder_.end(), kAbsent);
        for (std::size_t i = 0; i < now.size(); ++i) holder_[index(now[i])] = static_cast<std::int32_t>(i);
        Fixed score = value_.of(now);
        for (int i = 0; i < kTemperatures && !stopped(); ++i) {
            for (std::uint64_t move = 0; move < moves; ++move) {
                score = try_move(now, score, temperature);
                if (score <= best) continue;
                best = score;
                image = now;
            }
            temperature *= kColder;
        }
        return best;
    }

    Fixed try_move(std::vector<std::int32_t>& now, Fixed score, double temperature) {
        const auto i = static_cast<std::int32_t>(draw() % now.size());
        const std::int32_t v = usable_[draw() % usable_.size()];
        const std::int32_t held = now[index(i)];
        if (held == v) return score;
        const std::int32_t other = holder_[index(v)];
        const Fixed reached = value_.after(now, score, i, v, other);
        if (reached == kNoScore) return score;
        const double loss = static_cast<double>(score - reached);
        if (loss > 0 && loss > temperature * losses_[draw() % losses_.size()]) return score;
        now[index(i)] = v;
        holder_[index(v)] = i;
        holder_[index(held)] = other;
        if (other != kAbsent) now[index(other)] = held;
        return reached;
    }

    std::size_t draw() {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<std::size_t>(state_ >> 33);
    }

    std::uint64_t state_;
    const MappingValue<W, S>& value_;
    const double heaviest_;
    std::vector<std::int32_t> usable_;
    std::vector<std::int32_t> holder_;  // of each target vertex in the current mapping
    std::array<double, 256> losses_{};  // in temperatures
};

}  // namespace topoplace::match
