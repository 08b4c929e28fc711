// A good mapping before any search: that of the mapping kernel, for which a light edge is a long way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "match/graphs/pattern.hpp"
#include "match/graphs/target.hpp"

namespace topoplace::match {

// The image of each pattern vertex among `free`; it need not be an embedding. Empty where the target is too
// large, or where there is no time.
std::vector<std::int32_t> first_mapping(const Pattern::Impl& pattern, const Target::Impl& target,
                                        std::span<const std::int32_t> free, std::uint64_t seed,
                                        WorkMeter& meter);

}  // namespace topoplace::match
