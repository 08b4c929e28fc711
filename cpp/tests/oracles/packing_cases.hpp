// Random trees of domains with groups of tasks, and every way to pack them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "topoplace/group_packing.hpp"
#include "topoplace/random.hpp"

namespace packing {

using topoplace::groups::PackParams;
using topoplace::groups::Share;
using Ints = std::vector<std::int32_t>;

struct Case {
    Ints parent{-1};
    Ints room{100};
    Ints group_parent{-1};
    Ints group_depth{0};
    Ints own_tasks{0};
    std::int32_t balanced = -1;

    PackParams params() const {
        return {.parent = parent,
                .room = room,
                .group_parent = group_parent,
                .group_depth = group_depth,
                .own_tasks = own_tasks,
                .balanced = balanced};
    }
};

inline void add_level(topoplace::Random& random, Case& c, std::size_t first, std::int32_t most,
                      std::int32_t room, bool is_leaf) {
    const std::size_t end = c.parent.size();
    for (std::size_t domain = first; domain < end; ++domain) {
        const std::int32_t children = 1 + random.below(most);
        for (std::int32_t i = 0; i < children; ++i) {
            c.parent.push_back(static_cast<std::int32_t>(domain));
            c.room.push_back(is_leaf || random.below(4) == 0 ? random.below(room + 1) : 100);
        }
    }
}

inline void add_groups(topoplace::Random& random, Case& c, std::int32_t depth, std::int32_t tasks) {
    while (tasks > 0) {
        const auto parent = random.below(static_cast<std::int32_t>(c.group_parent.size()));
        const std::int32_t least = c.group_depth[std::size_t(parent)];
        const std::int32_t own = 1 + random.below(std::min(tasks, 3));
        tasks -= own;
        if (least == depth || random.below(4) == 0) {
            c.own_tasks[std::size_t(parent)] += own;
            continue;
        }
        c.group_parent.push_back(parent);
        c.group_depth.push_back(least + 1 + random.below(depth - least));
        c.own_tasks.push_back(own);
    }
}

inline Case random_case(topoplace::Random& random, std::int32_t depth, std::int32_t most, std::int32_t room,
                        std::int32_t tasks) {
    Case c;
    std::size_t first = 0;
    for (std::int32_t level = 1; level <= depth; ++level) {
        const std::size_t next = c.parent.size();
        add_level(random, c, first, most, room, level == depth);
        first = next;
    }
    add_groups(random, c, depth, tasks);
    return c;
}

inline std::vector<std::int32_t> leaves_of(const Case& c) {
    std::vector<std::int32_t> leaves;
    for (std::size_t i = 0; i < c.parent.size(); ++i) {
        const auto domain = static_cast<std::int32_t>(i);
        if (std::find(c.parent.begin(), c.parent.end(), domain) == c.parent.end()) leaves.push_back(domain);
    }
    return leaves;
}

// Calls `seen` with every packing: every way to put the tasks, group after group, on the leaves; the tasks of
// a group are alike. Ends when it returns true, and returns true then.
template <typename Seen>
bool any_packing(const Case& c, const Ints& leaves, const Seen& seen, std::vector<Share>& shares,
                 std::size_t group = 0, std::size_t leaf = 0, std::int32_t left = -1) {
    if (group == c.own_tasks.size()) {
        auto params = c.params();
        params.balanced = -1;
        return !topoplace::groups::verify_packing(params, shares) && seen(shares);
    }
    if (left < 0) left = c.own_tasks[group];
    if (left == 0) return any_packing(c, leaves, seen, shares, group + 1);
    if (leaf == leaves.size()) return false;
    for (std::int32_t tasks = std::min(left, c.room[std::size_t(leaves[leaf])]); tasks >= 0; --tasks) {
        if (tasks > 0) shares.push_back({static_cast<std::int32_t>(group), leaves[leaf], tasks});
        const bool found = any_packing(c, leaves, seen, shares, group, leaf + 1, left - tasks);
        if (tasks > 0) shares.pop_back();
        if (found) return true;
    }
    return false;
}

}  // namespace packing
