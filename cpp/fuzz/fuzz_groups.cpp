// The group packing against the definition: every way to put the tasks on the leaves, on one small tree.
#include <algorithm>
#include <vector>

#include "fuzz.hpp"
#include "topoplace/group_packing.hpp"

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

bool is_possible(const Case& c, std::size_t group, std::size_t leaf, std::int32_t left,
                 std::vector<Share>& shares) {
    if (group == c.own_tasks.size()) return !groups::verify_packing(c.params(), shares);
    if (left == 0) {
        const std::size_t next = group + 1;
        return is_possible(c, next, 0, next < c.own_tasks.size() ? c.own_tasks[next] : 0, shares);
    }
    if (leaf == c.leaves.size()) return false;
    for (std::int32_t tasks = std::min(left, c.room[std::size_t(c.leaves[leaf])]); tasks >= 0; --tasks) {
        if (tasks > 0) shares.push_back({static_cast<std::int32_t>(group), c.leaves[leaf], tasks});
        const bool found = is_possible(c, group, leaf + 1, left - tasks, shares);
        if (tasks > 0) shares.pop_back();
        if (found) return true;
    }
    return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const Case c = read_case(bytes);
    std::vector<Share> shares;
    auto params = c.params();
    const auto found = groups::pack_groups(params);
    REQUIRE(found.complete);
    REQUIRE(found.found == is_possible(c, 0, 0, c.own_tasks[0], shares));
    REQUIRE(!found.found || !groups::verify_packing(params, found.shares));
    params.balanced = bytes.below(3);
    const auto even = groups::pack_groups(params);
    REQUIRE(even.found == found.found);
    REQUIRE(!even.found || !groups::verify_packing(params, even.shares));
    return 0;
}
