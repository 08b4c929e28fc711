// Tree mapping: put items that exchange data on the leaves of a tree of domains, such as groups of tasks on
// machines in racks in pods, so that the ports of the tree take the least time for it.
//
// In a phase, all edges of the phase are used at once, half of each edge's GB in either direction. Two items
// meet in the lowest domain that has both. What they exchange passes the own port of each, of the class that
// serves the depth at which they meet, and the uplinks of the domains that it leaves, below that depth. Items
// on one leaf use no port. The time of a phase is the largest GB / (GB/s) of a port in one direction; the
// time of a mapping is the sum over its phases. Of mappings of equal time, one of few port-seconds is wanted:
// GB / (GB/s), summed over all uplinks in one direction. Of these, one on few leaves is. Of mappings that
// pass as many GB through the uplinks of each depth, one on fewer leaves, or in fewer or fuller domains, is
// wanted even where its uplinks are slower, so that it takes more port-seconds, but no more time.
//
// Other jobs may use the uplinks too. In a phase, what they send through an uplink counts on it as soon as an
// edge of some GB passes it, and not otherwise. It is in no port-seconds, and the bound counts it only where
// all mappings are compared.
//
// The entry point is `map_to_tree`; cpp/src/tree_mapping/search.cpp describes its method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::tree_mapping {

inline constexpr std::int32_t kMaxDepth = 64;  // of leaves, which keep a list of the domains above them

// Domain 0 is the root, parents have smaller numbers, and all leaves have the same depth. Leaves are counted
// from 0 in the order of their domains. Speeds are in 1e-18..1e18.
struct TreeParams {
    std::span<const std::int32_t> parent{};     // of each domain; that of the root is -1
    std::span<const std::int32_t> room{};       // of each leaf: the most items on it
    std::span<const double> uplink{};           // of each domain: GB/s, or 0 for no limit
    std::span<const std::int32_t> own_class{};  // of each depth but that of leaves: the class of own ports
    std::span<const double> own{};              // (classes, leaves) GB/s of an item's own port
};

struct ItemParams {
    std::int32_t num_items = 0;
    std::span<const std::int64_t> phase_ends{};  // the number of edges of each phase and those before it
    std::span<const std::int32_t> from{};        // of each edge
    std::span<const std::int32_t> to{};
    std::span<const double> gigabytes{};       // both directions together
    std::span<const std::int32_t> start{};     // leaf of each item; empty: none is known
    std::span<const std::int32_t> confined{};  // depth of the domain of `start` that each may not leave
    std::span<const double> others{};          // (phases, domains) GB of others on each uplink; empty: none
};

struct TreeMapParams {
    TreeParams tree{};
    ItemParams items{};
    std::uint64_t seed = 0;
    std::uint64_t moves = 1U << 17;  // tried by the search; divisions of the items count as some
    StopCondition stop{};
};

struct TreeMapResult {
    bool found = false;                   // false: more items than room
    std::vector<std::int32_t> leaf_of{};  // of each item
    double seconds = 0.0;
    double port_seconds = 0.0;
    double bound = 0.0;       // no mapping takes less time
    bool complete = true;     // false: the search was stopped early
    std::uint64_t moves = 0;  // tried, and what divisions count
};

struct TreeTime {
    double seconds = 0.0;
    double port_seconds = 0.0;
};

// The parameter, the index and the value that is out of range.
[[nodiscard]] Fault check(const TreeMapParams& params);

// A search that is stopped has one mapping at least.
TreeMapResult map_to_tree(const TreeMapParams& params);

// The time of a mapping of every item to a leaf, by the definition alone.
TreeTime tree_time(const TreeMapParams& params, std::span<const std::int32_t> leaf_of);

struct TreeBound {
    double seconds = 0.0;          // no mapping takes less time
    std::vector<double> phases{};  // or in each phase; several may not be possible at once
};

// What `map_to_tree` gives as its bound, without a mapping; 0 where there are more items than room.
TreeBound tree_bound(const TreeMapParams& params);

// Checks a mapping by the definition alone: a leaf for each item, none over its room, no item outside the
// domain that it may not leave, and these times to within a part in 1e9.
Fault verify_tree_mapping(const TreeMapParams& params, std::span<const std::int32_t> leaf_of,
                          const TreeTime& claimed);

}  // namespace topoplace::tree_mapping
