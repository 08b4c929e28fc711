// How many edges a forest loses at least when its vertices are put into parts of limited size.
#pragma once

#include <cstdint>
#include <vector>

#include "match/graphs/pattern.hpp"

namespace topoplace::match {

// 0 for a pattern with cycles. sizes: of the parts, at least one.
std::int32_t fewest_cuts(const Pattern::Impl& pattern, std::vector<std::int32_t> sizes);

}  // namespace topoplace::match
