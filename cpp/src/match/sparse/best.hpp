// The best embedding in a sparse target.
#pragma once

#include <cstdint>
#include <span>

#include "match/graphs/pattern.hpp"
#include "match/sparse/target.hpp"

namespace topoplace::match::sparse {

BestResult best_subgraph(const Pattern::Impl& pattern, const Target::Sparse& target,
                         std::span<const std::int32_t> free, Objective objective, const BestParams& params);

}  // namespace topoplace::match::sparse
