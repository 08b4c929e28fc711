// Packed regions: sets of vertices, near each other and cheap, where a job could live.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mapping/problem/source.hpp"
#include "mapping/problem/target.hpp"

namespace topoplace::mapping {

using Region = std::vector<std::int32_t>;

// Around each of `free` the nearest of `free`, as many as there are tasks; the most promising `most` of them.
// Where many are free, around some of them only, and the smallest parts of the target's tree that hold enough
// are regions too: as many. None twice; each ascending. The target's halves are made. None where `meter`
// stops.
std::optional<std::vector<Region>> packed_regions(const Source::Impl& source, const Target::Impl& target,
                                                  std::span<const std::int32_t> free,
                                                  std::span<const double> target_cost, std::size_t most,
                                                  WorkMeter& meter);

}  // namespace topoplace::mapping
