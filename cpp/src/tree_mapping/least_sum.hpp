// Which of some numbers have the least sum that is enough.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace topoplace::tree_mapping {

// The places of `count` of the values whose sum is the least of at least `enough` and below `below`,
// ascending; of equal sums one of early places. Values are above 0. Empty if there is none, or if to know
// takes too much work.
std::vector<std::size_t> least_sum(std::span<const std::int64_t> values, std::size_t count,
                                   std::int64_t enough, std::int64_t below);

}  // namespace topoplace::tree_mapping
