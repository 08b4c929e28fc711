// Scores by link counts: every count vector of the pattern's size, ranked best first.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "graph/index.hpp"
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
    const Counts& vector(std::int32_t i) const { return vectors_[index(i)]; }
    // Larger is better; equal scores share a rank.
    Fixed rank(std::int32_t i) const { return ranks_[index(i)]; }
    // Position of a complete count vector.
    std::int32_t position(const Counts& counts) const;
    // Of the best scores that are at most this one.
    Fixed rank_up_to(double score) const {
        const auto above = std::upper_bound(score_of_rank_.begin(), score_of_rank_.end(), score);
        return above - score_of_rank_.begin() - 1;
    }
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

    void sort_edges(const Target::Impl& target);
    std::vector<std::int32_t> rank_vectors(std::span<const double> scores);
    // rows: all count vectors; order: theirs, best first.
    void tabulate(std::span<const std::int32_t> rows, const std::vector<std::int32_t>& order);
    std::size_t code(const Counts& counts) const;
};

// The branch and bound's view. Of class c a completion has between low[c] and high[c] edges (capacities of
// the class and of its complement), so its count vector lies in that box; the best ranked vector there bounds
// its score.
class LinkCounts {
  public:
    static constexpr bool kFollowsWeights = false;  // classes may tell edges of one weight apart

    using Counts = LinkCountScore::Impl::Counts;
    using Tally = Counts;
    struct State {
        Counts counts{};  // covered so far
        Counts low{};
        Counts high{};
        std::int32_t first = 0;  // no vector before this one can be reached
    };

    LinkCounts(const Target::Impl& target, const LinkCountScore::Impl& score)
        : target_(target), score_(score) {}

    template <int W>
    State root(const Pattern::Impl& pattern, const Bits<W>& usable) const {
        State state;
        const std::int32_t edges = score_.num_edges();
        for (std::size_t c = 0; c < classes(); ++c) {
            state.high[c] =
                static_cast<std::uint16_t>(ceiling(pattern, score_.inside(), first_row(c), usable));
            state.low[c] =
                static_cast<std::uint16_t>(edges - ceiling(pattern, score_.outside(), first_row(c), usable));
        }
        return state;
    }
    Outlook outlook(State next, std::int32_t v, std::span<const std::int32_t> back,
                    std::span<const std::int32_t> image, std::int32_t) const {
        extend(next, v, back, image);
        return {promise(next), 0};
    }
    void extend(State& state, std::int32_t v, std::span<const std::int32_t> back,
                std::span<const std::int32_t> image) const {
        for (const std::int32_t i : back) {
            ++state.counts[score_.edge_class(target_.pair_of(v, image[index(i)]))];
        }
        raise(state.low, state.counts);
        advance(state);
    }
    std::size_t num_groups() const { return classes(); }
    template <int W>
    Bits<W> group(std::size_t c, std::int32_t u) const {
        return score_.inside().get<W>(first_row(c) + index(u));
    }
    Outlook group_outlook(State next, std::size_t c, std::int32_t) const {
        ++next.counts[c];
        raise(next.low, next.counts);
        advance(next);
        return {promise(next), 0};
    }
    template <int W>
    Fixed twin_key(std::int32_t v, const Bits<W>&) const {
        return v;
    }
    template <int W>
    bool are_twins(std::int32_t, std::int32_t, const Bits<W>&) const {
        return false;
    }
    template <int W>
    Fixed potential(std::int32_t, const Bits<W>&, std::int32_t) const {
        return 0;
    }
    Tally tally(const State& state) const { return state.counts; }
    void add(Tally& tally, std::int32_t u, std::int32_t v) const {
        ++tally[score_.edge_class(target_.pair_of(u, v))];
    }
    Fixed total(const Tally& tally) const { return score_.rank(score_.position(tally)); }
    Fixed within(Fixed rank, double tolerance) const {
        const double score = score_.score_of_rank(rank);
        return std::max(rank, score_.rank_up_to(score + tolerance * std::abs(score)));
    }

    template <int W>
    Fixed bound(State& state, const Partial<W>& partial, Fixed need) const {
        const std::int32_t rest = partial.rest();
        for (std::size_t c = 0; c < classes(); ++c) {
            const std::int32_t most = state.counts[c] + capacity(partial, score_.inside(), first_row(c));
            const std::int32_t least =
                state.counts[c] + rest - capacity(partial, score_.outside(), first_row(c));
            if (most < least) return kNoScore;
            TOPOPLACE_ASSERT(least >= 0 && state.low[c] <= score_.num_edges());
            state.high[c] = static_cast<std::uint16_t>(std::min<std::int32_t>(state.high[c], most));
            state.low[c] = static_cast<std::uint16_t>(std::max<std::int32_t>(state.low[c], least));
            advance(state);
            if (promise(state) < need) return kNoScore;
        }
        return promise(state);
    }

  private:
    Fixed promise(const State& state) const {
        return state.first < score_.num_vectors() ? score_.rank(state.first) : kNoScore;
    }
    std::size_t classes() const { return index(score_.num_classes()); }
    std::size_t first_row(std::size_t c) const { return c * index(target_.size()); }

    void raise(Counts& low, const Counts& counts) const {
        for (std::size_t c = 0; c < classes(); ++c) {
            TOPOPLACE_ASSERT(counts[c] <= score_.num_edges());
            low[c] = std::max(low[c], counts[c]);
        }
    }
    // To the best ranked vector in the box.
    void advance(State& state) const {
        TOPOPLACE_ASSERT(state.first >= 0 && state.first <= score_.num_vectors());
        while (state.first < score_.num_vectors() && !inside(state, score_.vector(state.first)))
            ++state.first;
    }
    bool inside(const State& state, const Counts& vector) const {
        bool within = true;
        for (std::size_t c = 0; c < classes(); ++c) {
            within &= state.low[c] <= vector[c] && vector[c] <= state.high[c];
        }
        return within;
    }

    const Target::Impl& target_;
    const LinkCountScore::Impl& score_;
};

static_assert(Score<LinkCounts>);

}  // namespace topoplace::match
