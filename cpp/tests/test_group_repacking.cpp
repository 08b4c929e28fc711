// Group repacking against brute force on small trees, and against its verifier on larger ones.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "oracles/packing_cases.hpp"
#include "topoplace/group_repacking.hpp"
#include "topoplace/random.hpp"

namespace groups = topoplace::groups;
using groups::RepackParams;
using groups::Share;
using packing::Case;
using packing::Ints;

namespace {

// Most tasks of a packing, as they were before some machines and tasks were lost; not always one in which the
// groups are in one domain, as preferred groups may be anywhere.
std::vector<Share> kept_of(topoplace::Random& random, const Case& c) {
    std::vector<Share> kept;
    const Ints leaves = packing::leaves_of(c);
    for (std::size_t group = 0; group < c.own_tasks.size(); ++group) {
        std::int32_t left = c.own_tasks[group];
        for (const std::int32_t leaf : leaves) {
            if (left == 0 || random.below(2) == 0) continue;
            const std::int32_t tasks = random.below(left + 1);
            if (tasks > 0) kept.push_back({static_cast<std::int32_t>(group), leaf, tasks});
            left -= tasks;
        }
    }
    return kept;
}

std::int64_t moved_by(const std::vector<Share>& shares, const std::vector<Share>& kept) {
    std::int64_t moved = 0;
    for (const Share& share : shares) {
        std::int32_t stay = 0;
        for (const Share& one : kept) {
            if (one.group == share.group && one.leaf == share.leaf) stay = std::min(one.tasks, share.tasks);
        }
        moved += share.tasks - stay;
    }
    return moved;
}

// -1 if there is no packing.
std::int64_t fewest_moves(const Case& c, const std::vector<Share>& kept) {
    std::int64_t best = -1;
    std::vector<Share> shares;
    packing::any_packing(
        c, packing::leaves_of(c),
        [&](const std::vector<Share>& found) {
            const std::int64_t moved = moved_by(found, kept);
            if (best < 0 || moved < best) best = moved;
            return false;
        },
        shares);
    return best;
}

}  // namespace

TEST(equals_brute_force) {
    topoplace::Random random(1);
    std::int32_t possible = 0, impossible = 0;
    for (std::int32_t round = 0; round < check::rounds(2000); ++round) {
        const Case c = packing::random_case(random, 1 + random.below(3), 3, 3, 1 + random.below(5));
        const std::vector<Share> kept = kept_of(random, c);
        const RepackParams params{.problem = c.params(), .kept = kept};
        const auto found = groups::repack_groups(params);
        const std::int64_t fewest = fewest_moves(c, kept);
        CHECK(found.complete);
        CHECK_EQ(found.found, fewest >= 0);
        if (!found.found) {
            ++impossible;
            continue;
        }
        ++possible;
        CHECK_EQ(found.moved, fewest);
        CHECK_EQ(found.bound, fewest);
        CHECK_EQ(groups::verify_repacking(params, found.shares, found.moved).value_or(""), "");
    }
    CHECK(possible > 100 && impossible > 100);
}

TEST(a_healthy_task_steps_aside_for_a_group) {
    // Racks of three machines of one task each: a group of two in rack 1, a task alone beside it. The group
    // loses a task, and the only machine that is free is in rack 2.
    const Ints parent{-1, 0, 0, 1, 1, 1, 2, 2, 2}, room{9, 9, 9, 0, 1, 1, 1, 0, 0};
    const Ints group_parent{-1, 0}, group_depth{0, 1}, own_tasks{1, 2};
    const std::vector<Share> kept{{0, 5, 1}, {1, 4, 1}};
    const Case c{parent, room, group_parent, group_depth, own_tasks};
    const RepackParams params{.problem = c.params(), .kept = kept};
    const auto found = groups::repack_groups(params);
    CHECK_EQ(found.moved, 2);
    CHECK((found.shares == std::vector<Share>{{0, 6, 1}, {1, 4, 1}, {1, 5, 1}}));
}

TEST(many_groups_and_a_lost_machine) {
    // 64 racks of 8 machines of 8 tasks: groups of 8 in a machine, of 64 in a rack; machines 0, 77 and 300
    // are lost.
    Ints parent{-1}, room{1 << 20}, group_parent{-1}, group_depth{0}, own_tasks{0};
    const std::int32_t racks = 64, used = 60;
    for (std::int32_t rack = 0; rack < racks; ++rack) {
        parent.push_back(0);
        room.push_back(1 << 20);
    }
    std::vector<Share> kept;
    for (std::int32_t rack = 0; rack < used; ++rack) {
        group_parent.push_back(0);
        group_depth.push_back(1);
        own_tasks.push_back(0);
    }
    for (std::int32_t machine = 0; machine < racks * 8; ++machine) {
        const bool is_lost = machine == 0 || machine == 77 || machine == 300;
        parent.push_back(1 + machine / 8);
        room.push_back(is_lost ? 0 : 8);
        if (machine / 8 >= used) continue;
        group_parent.push_back(1 + machine / 8);
        group_depth.push_back(2);
        own_tasks.push_back(8);
        if (!is_lost)
            kept.push_back({static_cast<std::int32_t>(own_tasks.size()) - 1, 1 + racks + machine, 8});
    }
    const Case c{parent, room, group_parent, group_depth, own_tasks};
    const RepackParams params{.problem = c.params(), .kept = kept};
    const auto found = groups::repack_groups(params);
    CHECK(found.found && found.complete);
    CHECK_EQ(found.moved, 3 * 64);  // no rack has a free machine, so each group of a rack moves whole
    CHECK_EQ(groups::verify_repacking(params, found.shares, found.moved).value_or(""), "");
}

TEST(random_larger_cases_are_packings_within_the_bound) {
    topoplace::Random random(2);
    for (std::int32_t round = 0; round < check::rounds(60); ++round) {
        const Case c = packing::random_case(random, 2, 8, 9, 64 + random.below(64));
        const std::vector<Share> kept = kept_of(random, c);
        RepackParams params{.problem = c.params(), .kept = kept};
        params.problem.stop.max_nodes = 200;
        const auto found = groups::repack_groups(params);
        if (!found.found) continue;
        CHECK(found.bound <= found.moved);
        CHECK_EQ(groups::verify_repacking(params, found.shares, found.moved).value_or(""), "");
        CHECK(groups::repack_groups(params).shares == found.shares);
    }
}
