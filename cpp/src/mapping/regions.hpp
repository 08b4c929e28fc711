// Packed regions: sets of vertices, near each other and cheap, where a job could live.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mapping/source.hpp"
#include "mapping/target.hpp"

namespace topoplace::mapping {

using Region = std::vector<std::int32_t>;

struct PackedRegion {
    double score = 0;  // an estimate of what the mapping costs there
    Region vertices;   // of the target, as many as there are tasks; ascending
};

// Around each of `free`, or around some of each part of the tree that just fits where there are many: the
// nearest of `free`. The most promising first, none twice, at most `most`.
std::vector<PackedRegion> packed_regions(const Source::Impl& source, const Target::Impl& target,
                                         std::span<const std::int32_t> free,
                                         std::span<const double> target_cost, std::size_t most);

}  // namespace topoplace::mapping
