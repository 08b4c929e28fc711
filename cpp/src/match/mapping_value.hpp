// The score of a complete mapping, and of those one exchange away from it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "match/graphs/ragged.hpp"
#include "match/scores.hpp"

namespace topoplace::match {

// Images come in the order of a plan.
template <int W, Score S>
class MappingValue {
  public:
    MappingValue(const Plan& plan, const BitRows& adjacency, const S& score, const Bits<W>& required)
        : plan_(plan), adjacency_(adjacency), score_(score), required_(required) {}

    // Before after(): who is next to whom.
    void prepare() {
        const auto size = static_cast<std::int32_t>(plan_.order.size());
        std::vector<std::vector<std::int32_t>> near(index(size));
        for (std::int32_t d = 0; d < size; ++d) {
            for (const std::int32_t i : plan_.back[d]) {
                near[index(d)].push_back(i);
                near[index(i)].push_back(d);
            }
        }
        for (const auto& row : near) near_.push_row(row);
    }

    // kNoScore where it is no embedding.
    Fixed of(std::span<const std::int32_t> image) const {
        Bits<W> used;
        typename S::Tally tally{};
        for (std::int32_t d = 0; d < std::ssize(image); ++d) {
            const std::int32_t v = image[index(d)];
            TOPOPLACE_ASSERT(!used.test(v));
            used.set(v);
            for (const std::int32_t i : plan_.back[d]) {
                const std::int32_t u = image[index(i)];
                if (!adjacency_.test(index(v), u)) return kNoScore;
                score_.add(tally, v, u);
            }
        }
        return (required_ - used).any() ? kNoScore : score_.total(tally);
    }

    // After vertex i has gone to v, and the one there, `holder` (kAbsent: none), to i's image. now: the score
    // before. The image is changed and changed back where there is no shorter way.
    Fixed after(std::vector<std::int32_t>& image, Fixed now, std::int32_t i, std::int32_t v,
                std::int32_t holder) const {
        if constexpr (requires { score_.weight(v, v); }) {
            if (now != kNoScore) return after_change(image, now, i, v, holder);
        }
        const std::int32_t held = std::exchange(image[index(i)], v);
        if (holder != kAbsent) image[index(holder)] = held;
        const Fixed value = of(image);
        image[index(i)] = held;
        if (holder != kAbsent) image[index(holder)] = v;
        return value;
    }

  private:
    Fixed after_change(std::span<const std::int32_t> image, Fixed now, std::int32_t i, std::int32_t v,
                       std::int32_t holder) const {
        const std::int32_t held = image[index(i)];
        if (holder == kAbsent && required_.test(held)) return kNoScore;
        if (!add_change(now, image, i, held, v, holder)) return kNoScore;
        if (holder != kAbsent && !add_change(now, image, holder, v, held, i)) return kNoScore;
        return now;
    }
    // The edges of vertex i but the one to `other`; false where one is missing.
    bool add_change(Fixed& sum, std::span<const std::int32_t> image, std::int32_t i, std::int32_t from,
                    std::int32_t to, std::int32_t other) const {
        for (const std::int32_t j : near_[i]) {
            if (j == other) continue;
            const std::int32_t u = image[index(j)];
            if (!adjacency_.test(index(to), u)) return false;
            sum += score_.weight(to, u) - score_.weight(from, u);
        }
        return true;
    }

    const Plan& plan_;
    const BitRows& adjacency_;
    const S& score_;
    const Bits<W>& required_;
    Ragged<std::int32_t> near_;  // by depth
};

}  // namespace topoplace::match
