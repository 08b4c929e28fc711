// Gang mapping: put each task of a job on a vertex of a collective network, so that what the job exchanges
// takes the least time (job_traffic.hpp), and of mappings of equal time one of few port-seconds, then of few
// leaves.
//
// Vertices are the places of leaves of a tree of domains, such as the free GPUs of machines. Items are tasks
// that are together on one leaf; the search moves them whole, and single tasks within a leaf. If there are
// few assignments of tasks to places, all of them are compared.
//
// Other jobs may send flows through the same ports: each counts on a hop that this job uses, up to the GB of
// its largest flow there.
//
// The entry point is `map_gang`; cpp/src/gang_mapping/search.cpp describes its method.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "topoplace/job_traffic.hpp"
#include "topoplace/tree_mapping.hpp"

namespace topoplace::gang_mapping {

struct GangParams {
    const traffic::CollectiveNetwork* network = nullptr;
    traffic::JobCollectives job{};
    // The tree and the items, as `map_to_tree` takes them: what items exchange decides where searches start.
    tree_mapping::TreeMapParams items{};
    std::span<const std::int32_t> tasks{};      // (items, t) of each item
    std::span<const std::int64_t> leaf_ends{};  // places of each leaf, enough for its room, and those before
    std::span<const std::int32_t> places{};     // vertices, the places of a leaf in any order
    const ports::FlowCounts* others = nullptr;  // flows of other jobs
    double least_seconds = 0.0;                 // no mapping takes less time
    std::uint64_t work = std::uint64_t{1} << 22;  // hops that may be loaded
    // Of these, by steps: the search ends unless they lead to a faster mapping; then twice as many follow.
    std::uint64_t first_hops = std::numeric_limits<std::uint64_t>::max();
};

struct GangResult {
    bool found = false;                     // false: more items than room
    std::vector<std::int32_t> vertex_of{};  // of each task
    // Beside the others; infinity where two tasks have no path. Both are infinite where the search was
    // stopped before it knew them.
    double seconds = 0.0;
    double port_seconds = 0.0;
    bool complete = true;    // false: the search was stopped early
    std::uint64_t work = 0;  // hops that were loaded
};

// The parameter, the index and the value that is out of range.
[[nodiscard]] Fault check(const GangParams& params);

// A search that is stopped has one mapping at least, and knows its times unless that takes more than 2^20
// hops.
GangResult map_gang(const GangParams& params);

// Checks a mapping by the definition alone: every task on a place of its own, those of an item on one leaf
// that it may use, no leaf over its room, and these times to within a part in 1e9. Two infinite times claim
// nothing.
Fault verify_gang(const GangParams& params, std::span<const std::int32_t> vertex_of, double seconds,
                  double port_seconds);

}  // namespace topoplace::gang_mapping
