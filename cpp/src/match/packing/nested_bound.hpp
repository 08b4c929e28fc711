// A bound on sums from the nested components of a target's levels, and vertices on which a mapping may come
// near it.
//
// An edge counts on its own level and on all lighter ones, so that a sum is, over the levels, the drop in
// weight to the next level times the number of pattern edges on this level or a heavier one. These edges lie
// inside the level's components, and those are made of the components of heavier levels. Along this tree the
// pattern's vertices are divided for the largest sum that sizes, degrees and the densest sets of as many
// pattern vertices allow. In parts of a few vertices, such as machines, every set of them is looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "match/graphs/pattern.hpp"
#include "match/graphs/target.hpp"

namespace topoplace::match {

class NestedBound {
  public:
    // Beyond this, it takes too long.
    static constexpr std::size_t kMostVertices = 1024;
    // Parts of which every set of vertices is looked at.
    static constexpr std::size_t kSmall = 8;

    // free: at least as many vertices as the pattern has. ceilings: by level, how many of the pattern's edges
    // can be on it or a heavier one. None where `meter` stops.
    static std::optional<NestedBound> make(const Pattern::Impl& pattern, const Target::Impl& target,
                                           const Levels& levels, std::span<const std::int32_t> free,
                                           std::span<const std::int32_t> ceilings, WorkMeter& meter);

    // No embedding has a larger sum.
    Fixed most() const;
    // No embedding into these vertices, in ascending order, has a larger sum; below 0 where they are too few.
    Fixed most_within(std::span<const std::int32_t> vertices);
    // As many vertices as the pattern has: those the bound is made of.
    std::span<const std::int32_t> chosen() const;
    // All vertices of the small parts that these are in.
    std::span<const std::int32_t> machines() const;

    class Impl;

  private:
    explicit NestedBound(std::shared_ptr<Impl> impl);

    std::shared_ptr<Impl> impl_;
};

}  // namespace topoplace::match
