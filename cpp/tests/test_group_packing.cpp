// Group packing against brute force on small trees, and against its verifier on larger ones.
#include <algorithm>
#include <bit>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "oracles/packing_cases.hpp"
#include "topoplace/group_packing.hpp"
#include "topoplace/random.hpp"

namespace groups = topoplace::groups;
using groups::PackParams;
using groups::Share;
using packing::any_packing;
using packing::Case;
using packing::Ints;
using packing::leaves_of;
using packing::random_case;

namespace {

bool is_possible(const Case& c) {
    std::vector<Share> shares;
    return any_packing(c, leaves_of(c), [](const auto&) { return true; }, shares);
}

// The tasks on each domain of a depth that has some, the most first.
Ints loads_of(const Case& c, const std::vector<Share>& shares, std::int32_t depth) {
    Ints depths(c.parent.size(), 0), loads(c.parent.size(), 0);
    for (std::size_t i = 1; i < depths.size(); ++i) depths[i] = depths[std::size_t(c.parent[i])] + 1;
    for (const Share& share : shares) {
        std::int32_t domain = share.leaf;
        while (depths[std::size_t(domain)] > depth) domain = c.parent[std::size_t(domain)];
        loads[std::size_t(domain)] += share.tasks;
    }
    std::erase(loads, 0);
    std::sort(loads.begin(), loads.end(), std::greater<>());
    return loads;
}

// The most even loads of all packings on at most as many domains of the depth.
Ints most_even(const Case& c, std::int32_t depth, std::size_t most_domains) {
    Ints best{std::numeric_limits<std::int32_t>::max()};
    std::vector<Share> shares;
    any_packing(
        c, leaves_of(c),
        [&](const std::vector<Share>& found) {
            const Ints loads = loads_of(c, found, depth);
            if (loads.size() <= most_domains) best = std::min(best, loads);
            return false;
        },
        shares);
    return best;
}

// Racks of leaves that groups fill to the last task, all but two of them: no packing is known in hours.
Case nearly_full(std::int32_t racks, std::int32_t leaves, std::int32_t room, bool whole_racks) {
    topoplace::Random random(23);
    Case c;
    c.parent.resize(1 + static_cast<std::size_t>(racks), 0);
    c.room.resize(c.parent.size(), leaves * room);
    c.room[0] = std::numeric_limits<std::int32_t>::max();
    const auto add = [&](std::int32_t around, std::int32_t depth, std::int32_t tasks) {
        c.group_parent.push_back(around);
        c.group_depth.push_back(depth);
        c.own_tasks.push_back(tasks);
    };
    for (std::int32_t rack = 1; rack <= racks; ++rack) {
        const auto around = whole_racks ? static_cast<std::int32_t>(c.group_parent.size()) : 0;
        if (whole_racks) add(0, 1, 0);
        for (std::int32_t leaf = 0; leaf < leaves; ++leaf) {
            c.parent.push_back(rack);
            c.room.push_back(room);
            const std::int32_t one = room / 4 + 1 + random.below(room / 4 - 2);
            const std::int32_t two = room / 4 + 1 + random.below(room / 4 - 2);
            for (const std::int32_t tasks : {one, two, room - one - two}) add(around, 2, tasks);
        }
    }
    ++c.own_tasks.back();
    --c.own_tasks[c.own_tasks.size() - 2];
    return c;
}

// A group in one rack with far more groups inside it than its leaves take.
Case full_inside(std::int32_t number) {
    Case c{{-1, 0}, {number * 50, number * 50}, {-1, 0}, {0, 1}, {0, 0}};
    for (std::int32_t i = 0; i < number; ++i) {
        c.parent.push_back(1);
        c.room.push_back(50);
        for (const std::int32_t tasks : {17 + i % 3, 26 + i % 5}) {
            c.group_parent.push_back(1);
            c.group_depth.push_back(2);
            c.own_tasks.push_back(tasks);
        }
    }
    return c;
}

// Two kinds of groups below a thousand domains, one inside the other: 2^15 states at each depth.
Case deep_chain() {
    Case c;
    for (std::int32_t depth = 1; depth < 999; ++depth) c.parent.push_back(depth - 1);
    c.room.assign(c.parent.size(), 99999);
    for (std::int32_t leaf = 0; leaf < 40; ++leaf) {
        c.parent.push_back(998);
        c.room.push_back(20 + leaf % 7);
    }
    for (std::int32_t group = 0; group < 300; ++group) {
        c.group_parent.push_back(0);
        c.group_depth.push_back(999);
        c.own_tasks.push_back(group % 2 == 0 ? 3 : 2);
    }
    return c;
}

}  // namespace

TEST(agrees_with_brute_force) {
    topoplace::Random random(18);
    std::int32_t found = 0;
    for (std::int32_t i = 0; i < check::rounds(1500); ++i) {
        const Case c = random_case(random, 1 + random.below(3), 3, 4, 1 + random.below(6));
        const auto result = groups::pack_groups(c.params());
        CHECK(result.complete);
        CHECK(result.found == is_possible(c));
        if (result.found) CHECK(!groups::verify_packing(c.params(), result.shares));
        found += result.found ? 1 : 0;
    }
    CHECK(found > check::rounds(1500) / 6 && found < check::rounds(1500) * 5 / 6);
}

TEST(packs_large_trees) {
    topoplace::Random random(19);
    for (std::int32_t i = 0; i < check::rounds(100, 12); ++i) {
        const Case c = random_case(random, 3, 8, 8, 200);
        const auto result = groups::pack_groups(c.params());
        if (result.found) CHECK(!groups::verify_packing(c.params(), result.shares));
    }
}

// Of equal groups, the fewest children of the root: as brute force over the sets of children says.
TEST(uses_the_fewest_children) {
    topoplace::Random random(20);
    for (std::int32_t i = 0; i < check::rounds(300, 12); ++i) {
        Case c = random_case(random, 2, 5, 9, 0);
        const std::int32_t number = 1 + random.below(6);
        for (std::int32_t group = 0; group < number; ++group) {
            c.group_parent.push_back(0);
            c.group_depth.push_back(2);
            c.own_tasks.push_back(3);
        }
        const auto result = groups::pack_groups(c.params());
        const auto racks = std::count(c.parent.begin(), c.parent.end(), 0);
        std::size_t fewest = 99;
        for (std::uint32_t set = 1; set < (1U << racks); ++set) {
            Case part = c;
            for (std::int32_t rack = 0; rack < racks; ++rack) {
                if ((set >> rack & 1U) == 0) part.room[std::size_t(1 + rack)] = 0;
            }
            if (groups::pack_groups(part.params()).found) {
                fewest = std::min(fewest, std::size_t(std::popcount(set)));
            }
        }
        CHECK(result.found == (fewest != 99));
        if (result.found) CHECK(loads_of(c, result.shares, 1).size() == fewest);
    }
}

// Racks of 2 machines of 8: an empty one, and one with 8 left; a job of 8 goes where 8 are left.
TEST(takes_the_fullest_that_suffices) {
    const Case c{{-1, 0, 0, 1, 1, 2, 2}, {99, 99, 99, 8, 8, 0, 8}, {-1}, {0}, {8}};
    CHECK((groups::pack_groups(c.params()).shares == std::vector<Share>{{0, 6, 8}}));
}

TEST(balances_shares) {
    Case c{{-1, 0, 0, 0}, {99, 10, 10, 4}, {-1}, {0}, {13}, 1};
    CHECK((groups::pack_groups(c.params()).shares == std::vector<Share>{{0, 1, 7}, {0, 2, 6}}));
    c.balanced = -1;
    CHECK((groups::pack_groups(c.params()).shares == std::vector<Share>{{0, 1, 9}, {0, 3, 4}}));
    c.balanced = 1;
    CHECK(groups::verify_packing(c.params(), std::vector<Share>{{0, 1, 8}, {0, 2, 5}}));
    const Case even{{-1, 0, 0, 0}, {99, 4, 4, 4}, {-1}, {0}, {10}, 1};
    CHECK((loads_of(even, groups::pack_groups(even.params()).shares, 1) == Ints{4, 3, 3}));
    const Case uneven{{-1, 0, 0, 0}, {99, 10, 10, 2}, {-1}, {0}, {21}, 1};
    CHECK((loads_of(uneven, groups::pack_groups(uneven.params()).shares, 1) == Ints{10, 9, 2}));
}

TEST(balances_as_brute_force) {
    topoplace::Random random(22);
    std::int32_t several = 0;
    for (std::int32_t i = 0; i < check::rounds(1500, 12); ++i) {
        Case c = random_case(random, 1 + random.below(2), 4, 4, 3 + random.below(5));
        const auto plain = groups::pack_groups(c.params());
        c.balanced = 1;
        const auto even = groups::pack_groups(c.params());
        CHECK(even.found == plain.found);
        if (!plain.found) continue;
        CHECK(!groups::verify_packing(c.params(), even.shares));
        const std::size_t used = loads_of(c, plain.shares, 1).size();
        CHECK((loads_of(c, even.shares, 1) == most_even(c, 1, used)));
        several += used > 1 ? 1 : 0;
    }
    CHECK(several > check::rounds(1500, 12) / 20);
}

static void refuses(const Case& c, const std::string& what) {
    CHECK_EQ(groups::check(c.params()).value_or(""), what);
}

TEST(refuses_bad_input) {
    const Case good{{-1, 0, 0}, {9, 1, 2}, {-1, 0}, {0, 1}, {1, 2}};
    CHECK(groups::pack_groups(good.params()).found);
    Case c = good;
    c.parent[2] = 2;
    refuses(c, "parent[2] = 2: must be a smaller number");
    c = good;
    c.parent = {-1, 0, 1, 0};
    c.room.push_back(1);
    refuses(c, "parent[3] = 0: all leaves must have the same depth");
    c.parent.assign(1, -1);
    for (std::int32_t i = 0; i < 100000; ++i) c.parent.push_back(i);
    c.room.assign(c.parent.size(), 9);
    refuses(c, "parent[1001] = 1000: the tree is deeper than 1000 domains");
    c = good;
    c.room[1] = -1;
    refuses(c, "room[1] = -1: must not be negative");
    c = good;
    c.group_depth[1] = 2;
    refuses(c, "group_depth[1] = 2: must be more than the parent's and at most the leaves'");
    c = good;
    c.group_parent[1] = 1;
    refuses(c, "group_parent[1] = 1: must be a smaller number");
    c = good;
    c.own_tasks[0] = -1;
    refuses(c, "own_tasks[0] = -1: must not be negative");
    c = good;
    c.balanced = 2;
    refuses(c, "balanced = 2: must be the depth of domains");
}

TEST(stops_in_time) {
    topoplace::Random random(21);
    Case c = random_case(random, 2, 12, 40, 0);
    for (std::int32_t group = 0; group < 60; ++group) {
        c.group_parent.push_back(0);
        c.group_depth.push_back(2);
        c.own_tasks.push_back(5 + group % 17);
    }
    auto params = c.params();
    params.stop.max_nodes = 50;
    const auto result = groups::pack_groups(params);
    CHECK(result.nodes <= 50);
}

// Without a look at the clock between nodes, each takes 0.2 to 30 seconds.
TEST(ends_soon_after_its_deadline) {
    const std::vector<Case> cases{nearly_full(1, 14, 128, false), nearly_full(50, 20, 5000, true),
                                  nearly_full(50, 20, 1000, false), full_inside(15000), deep_chain()};
    for (const Case& c : cases) {
        for (const std::int32_t balanced : {-1, 1}) {
            auto params = c.params();
            params.balanced = balanced;
            params.stop = topoplace::StopCondition::in(0.02);
            const std::clock_t begin = std::clock();
            const auto result = groups::pack_groups(params);
            const double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
            CHECK(!result.found && !result.complete);
            CHECK(seconds < 2);
        }
    }
}
