// The group packing and repacking against the definition: every way to put the tasks on the leaves, on one
// small tree.
#include <algorithm>
#include <vector>

#include "fuzz.hpp"
#include "topoplace/group_packing.hpp"
#include "topoplace/group_repacking.hpp"

namespace {

namespace groups = topoplace::groups;
using groups::Share;
using Ints = std::vector<std::int32_t>;

struct Case {
    Ints parent{-1};
    Ints room{99};
    Ints group_parent{-1};
    Ints group_depth{0};
    Ints own_tasks{0};
    Ints leaves{};

    groups::PackParams params() const {
        return {.parent = parent,
                .room = room,
                .group_parent = group_parent,
                .group_depth = group_depth,
                .own_tasks = own_tasks};
    }
};

// Up to three racks of up to three machines of up to three GPUs, and up to six tasks.
Case read_case(fuzz::Bytes& bytes) {
    Case c;
    const std::int32_t racks = 1 + bytes.below(3);
    for (std::int32_t rack = 0; rack < racks; ++rack) {
        c.parent.push_back(0);
        c.room.push_back(bytes.below(4) == 0 ? bytes.below(6) : 99);
    }
    for (std::int32_t rack = 0; rack < racks; ++rack) {
        for (std::int32_t machine = bytes.below(3); machine >= 0; --machine) {
            c.leaves.push_back(static_cast<std::int32_t>(c.parent.size()));
            c.parent.push_back(1 + rack);
            c.room.push_back(bytes.below(4));
        }
    }
    c.own_tasks[0] = bytes.below(3);
    for (std::int32_t left = 6 - c.own_tasks[0]; left > 0;) {
        const std::int32_t around = bytes.below(static_cast<std::int32_t>(c.own_tasks.size()));
        const std::int32_t own = 1 + bytes.below(left);
        left -= own;
        const std::int32_t depth = c.group_depth[std::size_t(around)];
        if (depth == 2 || bytes.below(3) == 0) continue;
        c.group_parent.push_back(around);
        c.group_depth.push_back(depth + 1 + bytes.below(2 - depth));
        c.own_tasks.push_back(own);
    }
    return c;
}

std::int32_t moved_by(const std::vector<Share>& shares, const std::vector<Share>& kept) {
    std::int32_t moved = 0;
    for (const Share& share : shares) {
        moved += share.tasks;
        for (const Share& one : kept) {
            if (one.group == share.group && one.leaf == share.leaf) moved -= std::min(one.tasks, share.tasks);
        }
    }
    return moved;
}

constexpr std::int32_t kImpossible = 99;

// The fewest moves of all packings.
std::int32_t fewest_moves(const Case& c, const std::vector<Share>& kept, std::size_t group, std::size_t leaf,
                          std::int32_t left, std::vector<Share>& shares) {
    if (group == c.own_tasks.size())
        return groups::verify_packing(c.params(), shares) ? kImpossible : moved_by(shares, kept);
    if (left == 0) {
        const std::size_t next = group + 1;
        return fewest_moves(c, kept, next, 0, next < c.own_tasks.size() ? c.own_tasks[next] : 0, shares);
    }
    std::int32_t fewest = kImpossible;
    if (leaf == c.leaves.size()) return fewest;
    for (std::int32_t tasks = std::min(left, c.room[std::size_t(c.leaves[leaf])]); tasks >= 0; --tasks) {
        if (tasks > 0) shares.push_back({static_cast<std::int32_t>(group), c.leaves[leaf], tasks});
        fewest = std::min(fewest, fewest_moves(c, kept, group, leaf + 1, left - tasks, shares));
        if (tasks > 0) shares.pop_back();
    }
    return fewest;
}

// Where some of the tasks are, whatever their groups require.
std::vector<Share> read_kept(fuzz::Bytes& bytes, const Case& c) {
    std::vector<Share> kept;
    for (std::size_t group = 0; group < c.own_tasks.size(); ++group) {
        std::int32_t left = c.own_tasks[group];
        for (const std::int32_t leaf : c.leaves) {
            const std::int32_t tasks = left == 0 ? 0 : bytes.below(left + 1);
            if (tasks > 0) kept.push_back({static_cast<std::int32_t>(group), leaf, tasks});
            left -= tasks;
        }
    }
    return kept;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const Case c = read_case(bytes);
    std::vector<Share> shares;
    auto params = c.params();
    const std::int32_t balanced = bytes.below(3);
    const std::vector<Share> kept = read_kept(bytes, c);
    const std::int32_t fewest = fewest_moves(c, kept, 0, 0, c.own_tasks[0], shares);
    const groups::RepackParams again{.problem = params, .kept = kept};
    const auto repaired = groups::repack_groups(again);
    REQUIRE(repaired.complete);
    REQUIRE(repaired.found == (fewest != kImpossible));
    REQUIRE(!repaired.found || (repaired.moved == fewest && repaired.bound == fewest));
    REQUIRE(!repaired.found || !groups::verify_repacking(again, repaired.shares, fewest));
    const auto found = groups::pack_groups(params);
    REQUIRE(found.complete);
    REQUIRE(found.found == (fewest != kImpossible));
    REQUIRE(!found.found || !groups::verify_packing(params, found.shares));
    params.balanced = balanced;
    const auto even = groups::pack_groups(params);
    REQUIRE(even.found == found.found);
    REQUIRE(!even.found || !groups::verify_packing(params, even.shares));
    return 0;
}
