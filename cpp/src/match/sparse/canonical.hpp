// One canonical best embedding in a sparse target, as in best.cpp: the best score; the lexicographically
// smallest vertex set that reaches it, vertex by vertex; the lexicographically smallest mapping onto that
// set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "match/graphs/pattern.hpp"
#include "match/sparse/edges.hpp"
#include "match/sparse/search.hpp"

namespace topoplace::match::sparse {

class Canonical {
  public:
    // `free` and `required` ascend. Throws Stopped where `meter` stops.
    Canonical(const Pattern::Impl& pattern, const Target::Sparse& target, double least, Worth worth,
              std::span<const std::int32_t> free, std::span<const std::int32_t> required, WorkMeter& meter,
              double tolerance = 0);

    // False where none was found. Above a tolerance of 0 it may be one that is proven to be within it.
    bool best();
    // After best(): breaks ties. False where the search was stopped first.
    bool settle();

    Fixed score() const { return score_; }
    Fixed bound() const { return bound_; }
    std::vector<std::int32_t>&& take_vertices() { return std::move(vertices_); }

  private:
    bool find();
    bool break_ties();
    bool anchored(Search::Goal goal, std::int32_t v, Fixed floor);
    std::vector<std::int32_t> everyone() const;
    std::vector<std::int32_t> near(std::int32_t v) const;

    const Pattern::Impl& pattern_;
    WorkMeter& meter_;
    const Edges edges_;
    Search search_;
    std::vector<std::int32_t> taken_;  // that the search requires
    bool possible_ = true;
    std::vector<std::int32_t> vertices_;
    Fixed score_ = kNoScore;
    Fixed bound_ = kNoScore;
};

}  // namespace topoplace::match::sparse
