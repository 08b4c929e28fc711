// Scores by link counts: every count vector of the pattern's size, ranked best first.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "match/scores.hpp"

namespace topoplace::match {

inline constexpr std::int32_t kMaxClasses = 8;

class LinkCountScore::Impl {
  public:
    using Counts = std::array<std::uint16_t, kMaxClasses>;

    Impl(const Target& target, std::span<const std::uint8_t> edge_class, std::int32_t num_classes,
         std::int32_t num_edges, std::span<const double> scores);

    std::int32_t num_edges() const { return num_edges_; }
    std::int32_t num_classes() const { return num_classes_; }
    std::uint8_t edge_class(std::size_t pair) const { return edge_class_[pair]; }
    std::int32_t num_vectors() const { return static_cast<std::int32_t>(vectors_.size()); }

    // Vectors by descending score; equal scores keep the lexicographic order of their counts.
    const Counts& vector(std::int32_t i) const { return vectors_[static_cast<std::size_t>(i)]; }
    // Larger is better; equal scores share a rank.
    Fixed rank(std::int32_t i) const { return ranks_[static_cast<std::size_t>(i)]; }
    // Position of a complete count vector.
    std::int32_t position(const Counts& counts) const;
    double score_of_rank(Fixed rank) const { return score_of_rank_[static_cast<std::size_t>(rank)]; }

    // Row (c * n + v): neighbours of v over edges of class c; and over edges of any other class.
    const BitRows& inside() const { return inside_; }
    const BitRows& outside() const { return outside_; }

  private:
    std::int32_t num_classes_;
    std::int32_t num_edges_;
    std::vector<std::uint8_t> edge_class_;
    BitRows inside_;
    BitRows outside_;
    std::vector<Counts> vectors_;
    std::vector<Fixed> ranks_;
    std::vector<double> score_of_rank_;
    std::vector<std::int32_t> position_;  // by code(counts)

    std::size_t code(const Counts& counts) const;
};

// The branch and bound's view. A completion adds between low[c] and high[c] edges of class c (capacities of
// the class and of its complement), so its count vector is one of those within the box; the best ranked one
// bounds it.
class LinkCounts {
  public:
    struct State {
        LinkCountScore::Impl::Counts counts{};
        std::int32_t first = 0;  // no vector before this one can be reached
    };

    LinkCounts(const Target::Impl& target, const LinkCountScore::Impl& score)
        : target_(target), score_(score) {}

    State root() const { return {}; }
    State extend(State state, std::int32_t v, std::span<const std::int32_t> back,
                 std::span<const std::int32_t> image) const {
        const std::size_t row = target_.index(v, 0);
        for (const std::int32_t i : back) {
            const auto u = static_cast<std::size_t>(image[static_cast<std::size_t>(i)]);
            ++state.counts[score_.edge_class(row + u)];
        }
        while (state.first < score_.num_vectors() && !covers(score_.vector(state.first), state.counts))
            ++state.first;
        return state;
    }
    Fixed promise(const State& state) const {
        return state.first < score_.num_vectors() ? score_.rank(state.first) : kNone;
    }
    Fixed value(const State& state) const { return score_.rank(score_.position(state.counts)); }

    template <int W>
    Fixed bound(State& state, const Partial<W>& partial, Fixed need) const {
        const auto classes = static_cast<std::size_t>(score_.num_classes());
        const auto n = static_cast<std::size_t>(target_.size());
        LinkCountScore::Impl::Counts low{};
        LinkCountScore::Impl::Counts high{};
        for (std::size_t c = 0; c < classes; ++c) {
            const std::int32_t most = capacity(partial, score_.inside(), c * n);
            const std::int32_t others = capacity(partial, score_.outside(), c * n);
            if (most + others < partial.rest()) return kNone;
            low[c] = static_cast<std::uint16_t>(state.counts[c] + partial.rest() - others);
            high[c] = static_cast<std::uint16_t>(state.counts[c] + most);
        }
        for (std::int32_t i = state.first; i < score_.num_vectors() && score_.rank(i) >= need; ++i) {
            if (covers(score_.vector(i), low) && covers(high, score_.vector(i))) {
                state.first = i;
                return score_.rank(i);
            }
        }
        return kNone;
    }

  private:
    bool covers(const LinkCountScore::Impl::Counts& large, const LinkCountScore::Impl::Counts& small) const {
        bool all = true;
        for (std::size_t c = 0; c < static_cast<std::size_t>(score_.num_classes()); ++c)
            all &= large[c] >= small[c];
        return all;
    }

    const Target::Impl& target_;
    const LinkCountScore::Impl& score_;
};

}  // namespace topoplace::match
