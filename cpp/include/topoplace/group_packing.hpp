// Group packing: put the tasks of a job into a tree of domains, such as pods of racks of machines, so that
// each group of tasks is inside one domain of the depth that it requires.
//
// Domains: number 0 is the root, parents have smaller numbers, and all leaves have the same depth. A domain
// takes at most `room` tasks, and no more than its children take together. Groups: number 0 is the job, of
// depth 0; parents have smaller numbers and a smaller depth. A group's own tasks, those in no group inside
// it, may be anywhere in its domain.
//
// Whether a packing exists is decided exactly, unless the search is stopped. Of all packings, one is returned
// in which few domains are used, from the top down. `fewest` says that no packing uses fewer at the first
// depth at which their numbers differ, and of those with as many, the domains have the least room, top down.
// Where that takes too much work to know, each domain uses the fewest of its children, and among as many the
// smallest that suffice; where groups differ, this is not proven of domains below the root's children. With
// `balanced`, the tasks are as even as possible over as many domains of that depth: the most on one are as
// few as possible, then as few domains as possible have so many, and so on among the others. Where groups
// differ, no task can be moved for more even shares, but exchanges of whole groups are not proven useless.
// The search for even shares ends after 2^18 nodes.
//
// The entry point is `pack_groups`; cpp/src/groups/pack.cpp describes its method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::groups {

inline constexpr std::int32_t kMaxDepth = 1000;  // of domains: the search calls itself for each level

struct PackParams {
    std::span<const std::int32_t> parent{};        // of each domain; that of the root is -1
    std::span<const std::int32_t> room{};          // the most tasks of each domain
    std::span<const std::int32_t> group_parent{};  // of each group; that of the job is -1
    std::span<const std::int32_t> group_depth{};   // of the domain that holds the whole group
    std::span<const std::int32_t> own_tasks{};     // of each group: its tasks in no group inside it
    std::int32_t balanced = -1;                    // depth of domains with even shares; or -1
    StopCondition stop{};
};

// Tasks of a group, in no group inside it, on one leaf.
struct Share {
    std::int32_t group = 0;
    std::int32_t leaf = 0;
    std::int32_t tasks = 0;

    bool operator==(const Share&) const = default;
};

struct PackResult {
    bool found = false;
    bool complete = true;         // false: the search was stopped, so a packing may exist all the same
    bool fewest = false;          // true: no packing uses fewer domains, from the top down
    std::vector<Share> shares{};  // by group, then by leaf
    std::uint64_t nodes = 0;      // of the search
};

// The parameter, the index and the value that is out of range.
[[nodiscard]] Fault check(const PackParams& params);

PackResult pack_groups(const PackParams& params);

// Checks a packing of a problem by the definition alone: all tasks of each group, inside one domain of its
// depth, and no domain over its room. With `balanced`, no single task may be moved for more even shares.
Fault verify_packing(const PackParams& params, std::span<const Share> shares);

}  // namespace topoplace::groups
