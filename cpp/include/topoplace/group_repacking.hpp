// Group repacking: give all tasks of a packed job a place again, and move as few as possible.
//
// The problem is that of group packing (group_packing.hpp): a tree of domains, and groups of tasks that are
// each inside one domain of their depth. `kept` says where tasks are that still have a place; the others of
// `own_tasks` have lost theirs. `room` counts for all tasks of the job, wherever they are now. A task moves
// if it is on another leaf than before, or had lost its place. Tasks that have a place may have to move, too:
// so that another one fits into its group's domain, or with their whole group.
//
// Of repackings with as few moves, one is returned with few tasks on leaves that the job did not use. The
// answer is proven unless the search is stopped; `bound` is proven in any case.
//
// The entry point is `repack_groups`; cpp/src/groups/repack.cpp describes its method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/group_packing.hpp"

namespace topoplace::groups {

struct RepackParams {
    PackParams problem{};           // but for `balanced`, which must be -1
    std::span<const Share> kept{};  // each (group, leaf) at most once
};

struct RepackResult {
    bool found = false;
    bool complete = true;         // false: the search was stopped, so fewer moves, or a packing, may exist
    std::vector<Share> shares{};  // of all tasks, by group, then by leaf
    std::int64_t moved = 0;
    std::int64_t bound = 0;   // no repacking moves fewer
    std::uint64_t nodes = 0;  // of the search: minimum-cost flows
};

// The parameter, the index and the value that is out of range.
[[nodiscard]] Fault check(const RepackParams& params);

RepackResult repack_groups(const RepackParams& params);

// Checks a repacking by the definition alone: a packing of the problem that moves this many tasks.
Fault verify_repacking(const RepackParams& params, std::span<const Share> shares, std::int64_t moved);

}  // namespace topoplace::groups
