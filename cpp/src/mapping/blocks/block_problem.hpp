// A distribution problem as the searches take it, and what no distribution can go below.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "mapping/problem/source.hpp"
#include "topoplace/distribution.hpp"

namespace topoplace::mapping {

using BlockOf = std::vector<std::int32_t>;  // by task

struct BlockProblem {
    BlockProblem(const Source::Impl& source, const DistributeParams& params);

    std::int32_t size() const { return static_cast<std::int32_t>(room.size()); }
    const double* row(std::int32_t block) const { return distance.data() + index(block) * room.size(); }
    double cost(const BlockOf& block_of) const;
    // Every task in a block, and no block over its room.
    bool fits(const BlockOf& block_of) const;

    const Source::Impl& source;
    std::span<const std::int32_t> room;
    std::span<const double> distance;
    std::int64_t total_room = 0;
    double tolerance = 0;  // costs closer than this are equal
};

// No distribution costs less. Of edges, as many are longer than a distance as have to cross between the
// groups of blocks no farther apart: at least one for each group beyond the first that is needed, or one for
// each group if no single edge joins two parts of the graph; and those beyond the room of the largest group
// at each task. None where `meter` stops.
std::optional<double> lower_bound(const BlockProblem& problem, WorkMeter& meter);

}  // namespace topoplace::mapping
