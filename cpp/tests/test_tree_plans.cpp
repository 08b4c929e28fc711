// Plans of filling trees against brute force over sets of domains, and sums of few numbers against all sets.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "oracles/port_cases.hpp"
#include "topoplace/random.hpp"
#include "tree_mapping/least_sum.hpp"
#include "tree_mapping/plans.hpp"

namespace tree_mapping = topoplace::tree_mapping;

namespace {

using Case = oracle::TreeCase;
using Ints = std::vector<std::int32_t>;
using tree_mapping::Plan;

// Domains below one another, each with up to `most` children, and leaves with up to `room` places.
Case random_tree(topoplace::Random& random, std::int32_t depth, std::int32_t most, std::int32_t room) {
    Case c;
    std::size_t first = 0;
    for (std::int32_t level = 0; level < depth; ++level) {
        const std::size_t end = c.parent.size();
        for (std::size_t domain = first; domain < end; ++domain) {
            for (std::int32_t i = random.below(most); i >= 0; --i)
                c.parent.push_back(static_cast<std::int32_t>(domain));
        }
        first = end;
    }
    c.own_class.assign(std::size_t(depth), 0);
    c.uplink.assign(c.parent.size(), 0.0);
    for (std::size_t leaf = first; leaf < c.parent.size(); ++leaf) c.room.push_back(random.below(room + 1));
    c.own.assign(c.room.size(), 1.0);
    return c;
}

std::vector<Plan> plans_of(const Case& c, std::size_t most = 10000) {
    const auto params = c.params();
    const tree_mapping::Problem problem(params);
    topoplace::WorkMeter meter({});
    return tree_mapping::plans_of(problem, most, meter);
}

std::int32_t total_room(const Case& c) { return std::accumulate(c.room.begin(), c.room.end(), 0); }

// The domain of a depth that has a leaf.
std::int32_t above(const Case& c, std::int32_t leaf, std::int32_t depth) {
    auto domain = static_cast<std::int32_t>(c.parent.size() - c.room.size()) + leaf;
    for (auto level = std::int32_t(c.own_class.size()); level > depth; --level)
        domain = c.parent[std::size_t(domain)];
    return domain;
}

std::map<std::int32_t, std::int32_t> rooms_at(const Case& c, std::int32_t depth) {
    std::map<std::int32_t, std::int32_t> rooms;
    for (std::size_t leaf = 0; leaf < c.room.size(); ++leaf)
        rooms[above(c, std::int32_t(leaf), depth)] += c.room[leaf];
    return rooms;
}

std::set<std::int32_t> used_at(const Case& c, const Plan& plan, std::int32_t depth) {
    std::set<std::int32_t> used;
    for (const std::int32_t leaf : plan) used.insert(above(c, leaf, depth));
    return used;
}

// How many domains are needed, and the least room that so many have together.
std::pair<int, std::int64_t> fewest(std::span<const std::int64_t> rooms, std::int64_t enough) {
    std::pair<int, std::int64_t> best{100, 0};
    for (unsigned set = 1; set < 1U << rooms.size(); ++set) {
        std::pair<int, std::int64_t> found{0, 0};
        for (std::size_t i = 0; i < rooms.size(); ++i) {
            if ((set >> i & 1U) == 0) continue;
            ++found.first;
            found.second += rooms[i];
        }
        if (found.second >= enough) best = std::min(best, found);
    }
    return best;
}

// Whether every leaf that is used can take so many at least.
bool can_take_at_least(const Case& c, std::int32_t least) {
    std::vector<std::int32_t> rooms;
    for (const std::int32_t room : c.room) {
        if (room >= least) rooms.push_back(room);
    }
    for (unsigned set = 1; set < 1U << rooms.size(); ++set) {
        std::int32_t room = 0, leaves = 0;
        for (std::size_t i = 0; i < rooms.size(); ++i) {
            if ((set >> i & 1U) == 0) continue;
            room += rooms[i];
            ++leaves;
        }
        if (room >= c.items && leaves * least <= c.items) return true;
    }
    return false;
}

std::map<std::int32_t, std::int32_t> counts_of(const Plan& plan) {
    std::map<std::int32_t, std::int32_t> counts;
    for (const std::int32_t leaf : plan) ++counts[leaf];
    return counts;
}

}  // namespace

TEST(plans_keep_rooms_and_differ) {
    topoplace::Random random(31);
    for (std::int32_t i = 0; i < check::rounds(200); ++i) {
        Case c = random_tree(random, 1 + random.below(3), 5, 9);
        if (total_room(c) == 0) continue;
        c.items = 1 + random.below(total_room(c));
        const std::vector<Plan> plans = plans_of(c);
        CHECK(!plans.empty());
        CHECK(std::set(plans.begin(), plans.end()).size() == plans.size());
        for (const Plan& plan : plans) {
            CHECK(plan.size() == std::size_t(c.items));
            for (const auto& [leaf, count] : counts_of(plan)) CHECK(count <= c.room[std::size_t(leaf)]);
        }
        const std::vector<Plan> few = plans_of(c, 3);
        CHECK(std::equal(few.begin(), few.end(), plans.begin()));
        CHECK(few.size() == std::min<std::size_t>(3, plans.size()));
    }
}

// Of two levels, with leaves of one place each.
TEST(the_fewest_and_fullest_domains_are_taken) {
    topoplace::Random random(32);
    std::vector<std::pair<Ints, std::int32_t>> cases{{{19, 10, 10}, 20}, {{3, 2, 2}, 4}};
    for (std::int32_t i = 0; i < check::rounds(300); ++i) {
        Ints sizes;
        for (std::int32_t left = 1 + random.below(10); left > 0; --left)
            sizes.push_back(1 + random.below(30));
        const std::int32_t all = std::accumulate(sizes.begin(), sizes.end(), 0);
        cases.push_back({sizes, 1 + random.below(all)});
    }
    for (const auto& [sizes, items] : cases) {
        Case c;
        c.parent.insert(c.parent.end(), sizes.size(), 0);
        for (std::size_t i = 0; i < sizes.size(); ++i)
            c.parent.insert(c.parent.end(), std::size_t(sizes[i]), static_cast<std::int32_t>(i) + 1);
        c.room.assign(c.parent.size() - sizes.size() - 1, 1);
        c.uplink.assign(c.parent.size(), 0.0);
        c.own_class = {0, 0};
        c.own.assign(c.room.size(), 1.0);
        c.items = items;
        const auto used = used_at(c, plans_of(c, 1).front(), 1);
        std::int64_t room = 0;
        for (const std::int32_t domain : used) room += sizes[std::size_t(domain) - 1];
        const std::vector<std::int64_t> rooms(sizes.begin(), sizes.end());
        CHECK((std::pair(static_cast<int>(used.size()), room)) == fewest(rooms, items));
    }
}

TEST(the_tightest_domain_of_each_depth_that_has_all_comes_first) {
    topoplace::Random random(33);
    for (std::int32_t i = 0; i < check::rounds(200); ++i) {
        Case c = random_tree(random, 2 + random.below(2), 4, 6);
        if (total_room(c) == 0) continue;
        c.items = 1 + random.below(std::min(12, total_room(c)));
        const std::vector<Plan> plans = plans_of(c);
        bool is_first = true;
        for (auto depth = std::int32_t(c.own_class.size()); depth > 0; --depth) {
            std::int32_t least = 0;
            for (const auto& [_, room] : rooms_at(c, depth)) {
                if (room >= c.items && (least == 0 || room < least)) least = room;
            }
            if (least == 0) continue;
            const auto rooms = rooms_at(c, depth);
            const auto is_there = [&](const Plan& plan) {
                const auto used = used_at(c, plan, depth);
                return used.size() == 1 && rooms.at(*used.begin()) == least;
            };
            CHECK(std::ranges::any_of(plans, is_there));
            if (is_first) CHECK(is_there(plans.front()));
            is_first = false;
        }
    }
}

TEST(leaves_take_at_least_so_many_if_they_can) {
    topoplace::Random random(34);
    for (std::int32_t i = 0; i < check::rounds(300); ++i) {
        Case c = random_tree(random, 1 + random.below(2), 3, 8);
        if (c.room.size() > 10 || total_room(c) == 0) continue;
        c.items = 1 + random.below(total_room(c));
        const std::vector<Plan> plans = plans_of(c);
        const std::int32_t most = *std::ranges::max_element(c.room);
        for (std::int32_t least = 1; least <= std::min(8, most); ++least) {
            const auto keeps = [&](const Plan& plan) {
                const auto counts = counts_of(plan);
                return std::ranges::all_of(counts, [&](const auto& one) { return one.second >= least; });
            };
            CHECK(std::ranges::any_of(plans, keeps) == can_take_at_least(c, least));
        }
    }
}

TEST(what_the_last_leaf_lacks_comes_from_those_before) {
    Case c;
    c.parent.assign(6, 0);
    c.parent[0] = -1;
    c.uplink.assign(6, 0.0);
    c.room.assign(5, 6);
    c.own_class = {0};
    c.own.assign(5, 1.0);
    c.items = 14;
    std::set<Ints> counts;
    for (const Plan& plan : plans_of(c)) {
        Ints sorted;
        for (const auto& [_, count] : counts_of(plan)) sorted.push_back(count);
        std::ranges::sort(sorted);
        counts.insert(sorted);
    }
    CHECK(counts.contains({2, 6, 6}) && counts.contains({4, 4, 6}) && counts.contains({4, 5, 5}));
}

TEST(least_sums_agree_with_all_sets) {
    topoplace::Random random(35);
    for (std::int32_t i = 0; i < check::rounds(2000); ++i) {
        std::vector<std::int64_t> values;
        const std::int64_t unit = 1 + random.below(8);
        for (std::int32_t left = 1 + random.below(10); left > 0; --left)
            values.push_back(unit * (1 + random.below(40)));
        const auto count = std::size_t(1 + random.below(std::int32_t(values.size())));
        const std::int64_t enough = 1 + random.below(300), below = enough + random.below(100);
        std::int64_t least = below;
        for (unsigned set = 0; set < 1U << values.size(); ++set) {
            if (std::size_t(std::popcount(set)) != count) continue;
            std::int64_t sum = 0;
            for (std::size_t one = 0; one < values.size(); ++one)
                sum += (set >> one & 1U) != 0 ? values[one] : 0;
            if (sum >= enough) least = std::min(least, sum);
        }
        const auto places = tree_mapping::least_sum(values, count, enough, below);
        CHECK(places.empty() == (least == below));
        if (places.empty()) continue;
        std::int64_t sum = 0;
        for (const std::size_t place : places) sum += values[place];
        CHECK_EQ(sum, least);
        CHECK_EQ(std::set(places.begin(), places.end()).size(), count);
    }
    const std::vector<std::int64_t> many(400, std::int64_t{1} << 40);
    CHECK_EQ(tree_mapping::least_sum(many, 150, 150LL << 40, 151LL << 40).size(), std::size_t{150});
    std::vector<std::int64_t> odd(3000);
    for (std::size_t i = 0; i < odd.size(); ++i) odd[i] = (std::int64_t{1} << 40) + std::int64_t(i);
    CHECK(tree_mapping::least_sum(odd, 1500, 1500LL << 40, 1501LL << 40).empty());  // too much work
}
