// The bound by pieces on the components of a target that stand for machines: those of the lightest level on
// which all of them are small.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/index.hpp"
#include "match/packing/packed_sets.hpp"
#include "match/packing/piece_bound.hpp"
#include "match/packing/piece_values.hpp"
#include "match/packing/tree_cuts.hpp"

namespace topoplace::match {

template <int W>
class MachinePieces {
  public:
    MachinePieces(const Pattern::Impl& pattern, const Target::Impl& target, const Levels& levels,
                  const Bits<W>& usable, WorkMeter& meter)
        : levels_(levels), num_vertices_(index(target.size())) {
        for (; first_crossing_ < levels.count(); ++first_crossing_) {
            std::vector<Bits<W>> parts = parts_of(first_crossing_, usable);
            if (!std::all_of(parts.begin(), parts.end(), is_small)) break;
            machines_ = std::move(parts);
        }
        if (machines_.empty()) return;
        find_crossings(pattern, usable);
        PieceBound::Machines free(machines_.size());
        for (std::size_t i = 0; i < machines_.size(); ++i)
            machines_[i].for_each([&](std::int32_t v) { free[i].push_back(v); });
        bound_ = PieceBound::make(pattern, target, std::move(free), crossings_[first_crossing_], meter);
        if (bound_ && bound_->empty()) bound_.reset();
    }

    // Even the heaviest links join too many vertices, or the pattern falls into too many different pieces, or
    // the meter stopped.
    bool empty() const { return !bound_; }
    // What takes a meter has no value where it stops.
    [[nodiscard]] bool improve(Fixed need, WorkMeter& meter) { return bound_->improve(need, meter); }
    // No embedding has a larger sum.
    Fixed most() const { return bound_->most(); }
    // No embedding over at least `machines` machines has a larger sum; below 0 if there is none.
    std::optional<Fixed> most_over(std::int32_t machines, WorkMeter& meter) {
        return bound_->most_over(machines, meter);
    }
    // The heaviest level that joins machines.
    std::size_t first_crossing() const { return first_crossing_; }
    // No embedding into this set has a larger sum; below 0 where there is none.
    std::optional<Fixed> most_within(const Bits<W>& set, WorkMeter& meter) {
        std::vector<std::size_t> machines;
        for (std::size_t i = 0; i < machines_.size(); ++i) {
            if ((machines_[i] & set).any()) machines.push_back(i);
        }
        return bound_->most_within(machines, crossing_between(machines), meter);
    }

  private:
    static bool is_small(const Bits<W>& part) { return index(part.count()) <= PieceValues::kMostVertices; }

    std::vector<Bits<W>> parts_of(std::size_t level, const Bits<W>& set) const {
        return components(levels_.at_least, level * num_vertices_, set);
    }

    void find_crossings(const Pattern::Impl& pattern, const Bits<W>& usable) {
        crossings_.assign(levels_.count() + 1, {.heaviest = PieceBound::Crossing::kNone, .lost = 0});
        Fixed lost = 0;
        for (std::size_t level = levels_.count(); level-- > first_crossing_;) {
            std::vector<std::int32_t> sizes;
            for (const Bits<W>& part : parts_of(level, usable)) sizes.push_back(part.count());
            const Fixed next = level + 1 < levels_.count() ? levels_.heaviest[level + 1] : 0;
            lost += fewest_cuts(pattern, std::move(sizes)) * (levels_.heaviest[level] - next);
            crossings_[level] = {.heaviest = levels_.heaviest[level], .lost = lost};
        }
    }

    // On the heaviest level that joins some of them.
    const PieceBound::Crossing& crossing_between(std::span<const std::size_t> machines) const {
        Bits<W> all;
        for (const std::size_t machine : machines) all |= machines_[machine];
        std::size_t level = first_crossing_;
        while (level < levels_.count() && parts_of(level, all).size() == machines.size()) ++level;
        return crossings_[level];
    }

    const Levels& levels_;
    const std::size_t num_vertices_;
    std::size_t first_crossing_ = 0;
    std::vector<Bits<W>> machines_;
    std::vector<PieceBound::Crossing> crossings_;  // by level: what is on it or on lighter ones
    std::optional<PieceBound> bound_;
};

}  // namespace topoplace::match
