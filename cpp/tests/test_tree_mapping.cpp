// Tree mapping against every assignment on small trees, and against its verifier on larger ones.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "check.hpp"
#include "oracles/port_cases.hpp"
#include "topoplace/random.hpp"
#include "topoplace/tree_mapping.hpp"

namespace tree_mapping = topoplace::tree_mapping;
using tree_mapping::TreeMapParams;
using tree_mapping::TreeTime;

namespace {

using Ints = std::vector<std::int32_t>;
constexpr double kEqual = 1 + 1e-9;

using Case = oracle::TreeCase;

Case random_tree(topoplace::Random& random, std::int32_t depth, std::int32_t most, std::int32_t room) {
    Case c;
    std::size_t first = 0;
    for (std::int32_t level = 1; level <= depth; ++level) {
        const std::size_t end = c.parent.size();
        for (std::size_t domain = first; domain < end; ++domain) {
            for (std::int32_t i = random.below(most); i >= 0; --i) {
                c.parent.push_back(static_cast<std::int32_t>(domain));
                c.uplink.push_back(random.below(4));
            }
        }
        first = end;
    }
    const std::int32_t classes = 1 + random.below(2);
    for (std::int32_t level = 0; level < depth; ++level) c.own_class.push_back(random.below(classes));
    for (std::size_t leaf = first; leaf < c.parent.size(); ++leaf) {
        c.room.push_back(random.below(room + 1));
        for (std::int32_t i = 0; i < classes; ++i) c.own.push_back(1 + random.below(4));
    }
    return c;
}

void add_items(topoplace::Random& random, Case& c, std::int32_t items, std::int32_t phases) {
    c.items = items;
    for (std::int32_t phase = 0; phase < phases; ++phase) {
        for (std::int32_t left = random.below(items + 1); left > 0; --left) {
            const std::int32_t one = random.below(items), other = random.below(items);
            if (one == other) continue;
            c.from.push_back(one);
            c.to.push_back(other);
            c.gigabytes.push_back(random.below(5));
        }
        c.ends.push_back(static_cast<std::int64_t>(c.from.size()));
    }
}

void add_others(topoplace::Random& random, Case& c) {
    for (std::size_t i = 0; i < c.ends.size() * c.parent.size(); ++i) c.others.push_back(random.below(4));
}

// The time by the definition: for each phase and port, each edge that crosses it.
TreeTime expected_time(const Case& c, const Ints& leaf_of) {
    const auto first = c.parent.size() - c.room.size();
    TreeTime sum;
    std::size_t begin = 0, phase = 0;
    for (const std::int64_t end : c.ends) {
        std::vector<double> up(c.parent.size(), 0.0);
        std::vector<double> own(std::size_t(c.items) * (c.own_class.size() + 1), 0.0);
        for (std::size_t i = begin; i < std::size_t(end); ++i) {
            auto one = static_cast<std::int32_t>(first) + leaf_of[std::size_t(c.from[i])];
            auto other = static_cast<std::int32_t>(first) + leaf_of[std::size_t(c.to[i])];
            if (one == other) continue;
            std::size_t meeting = c.own_class.size();
            for (; one != other; --meeting) {
                up[std::size_t(one)] += c.gigabytes[i] / 2;
                up[std::size_t(other)] += c.gigabytes[i] / 2;
                one = c.parent[std::size_t(one)];
                other = c.parent[std::size_t(other)];
            }
            for (const std::int32_t item : {c.from[i], c.to[i]}) {
                own[std::size_t(item) * (c.own_class.size() + 1) + std::size_t(c.own_class[meeting])] +=
                    c.gigabytes[i] / 2;
            }
        }
        double longest = 0.0;
        for (std::size_t domain = 1; domain < up.size(); ++domain) {
            if (c.uplink[domain] <= 0.0) continue;
            const bool is_shared = up[domain] > 0.0 && !c.others.empty();
            const double beside = is_shared ? c.others[phase * c.parent.size() + domain] : 0.0;
            longest = std::max(longest, (up[domain] + beside) / c.uplink[domain]);
            sum.port_seconds += up[domain] / c.uplink[domain];
        }
        for (std::size_t i = 0; i < own.size(); ++i) {
            const std::size_t item = i / (c.own_class.size() + 1), of = i % (c.own_class.size() + 1);
            if (own[i] > 0.0)
                longest = std::max(longest, own[i] / c.own[of * c.room.size() + std::size_t(leaf_of[item])]);
        }
        sum.seconds += longest;
        begin = std::size_t(end);
        ++phase;
    }
    return sum;
}

// The least time of all assignments within the rooms; infinity if there is none.
double optimum(const Case& c) {
    Ints leaf_of(std::size_t(c.items), 0);
    double best = std::numeric_limits<double>::infinity();
    while (true) {
        Ints used(c.room.size(), 0);
        for (const auto leaf : leaf_of) ++used[std::size_t(leaf)];
        bool fits = true;
        for (std::size_t leaf = 0; leaf < used.size(); ++leaf) fits = fits && used[leaf] <= c.room[leaf];
        if (fits) best = std::min(best, expected_time(c, leaf_of).seconds);
        std::size_t item = 0;
        while (item < leaf_of.size() && std::size_t(++leaf_of[item]) == c.room.size()) leaf_of[item++] = 0;
        if (item == leaf_of.size()) return best;
    }
}

Ints shuffled(topoplace::Random& random, std::int32_t size) {
    Ints order(std::size_t(size), 0);
    std::iota(order.begin(), order.end(), 0);
    for (std::int32_t i = size - 1; i > 0; --i)
        std::swap(order[std::size_t(i)], order[std::size_t(random.below(i + 1))]);
    return order;
}

// Machines of 50 GB/s for each item, in racks with one uplink; 0 for no limit.
Case machines_in_racks(const Ints& racks, std::int32_t room, double uplink) {
    Case c;
    for (std::size_t i = 0; i < racks.size(); ++i) {
        c.parent.push_back(0);
        c.uplink.push_back(uplink);
    }
    for (std::size_t i = 0; i < racks.size(); ++i) {
        for (std::int32_t machine = 0; machine < racks[i]; ++machine) {
            c.parent.push_back(static_cast<std::int32_t>(i) + 1);
            c.uplink.push_back(0.0);
            c.room.push_back(room);
            c.own.push_back(50.0);
        }
    }
    c.own_class = {0, 0};
    return c;
}

void add_edge(Case& c, std::int32_t one, std::int32_t other, double gigabytes) {
    if (one == other) return;
    c.from.push_back(one);
    c.to.push_back(other);
    c.gigabytes.push_back(gigabytes);
}

std::int32_t ancestor(const Case& c, std::int32_t leaf, std::int32_t depth) {
    auto domain = static_cast<std::int32_t>(c.parent.size() - c.room.size()) + leaf;
    for (auto level = std::int32_t(c.own_class.size()); level > depth; --level)
        domain = c.parent[std::size_t(domain)];
    return domain;
}

void refuses(const Case& c, const std::string& what) {
    const auto fault = tree_mapping::check(c.params());
    CHECK(fault && fault->find(what) != std::string::npos);
}

// A root of two leaves, and two items that exchange 2 GB.
Case pair() {
    Case c;
    c.parent = {-1, 0, 0};
    c.room = {1, 1};
    c.uplink = {0, 2, 0};
    c.own_class = {0};
    c.own = {1, 1};
    c.items = 2;
    c.ends = {1};
    c.from = {0};
    c.to = {1};
    c.gigabytes = {2};
    return c;
}

}  // namespace

TEST(agrees_with_every_assignment) {
    topoplace::Random random(19);
    std::int32_t found = 0, optimal = 0;
    for (std::int32_t i = 0; i < check::rounds(1500); ++i) {
        Case c = random_tree(random, random.below(4), 2, 2);
        if (c.room.size() > 6) continue;
        add_items(random, c, random.below(5), random.below(4));
        if (random.below(2) == 0) add_others(random, c);
        const auto result = tree_mapping::map_to_tree(c.params());
        CHECK(result.complete);
        const double best = optimum(c);
        CHECK(result.found == !std::isinf(best));
        if (!result.found) continue;
        const TreeTime time = expected_time(c, result.leaf_of);
        CHECK(std::abs(time.seconds - result.seconds) <= 1e-9 * time.seconds);
        CHECK(std::abs(time.port_seconds - result.port_seconds) <= 1e-9 * time.port_seconds);
        CHECK(!tree_mapping::verify_tree_mapping(c.params(), result.leaf_of, time));
        CHECK(result.bound <= best * kEqual && best <= result.seconds * kEqual);
        CHECK(tree_mapping::tree_bound(c.params()).seconds <= result.bound);
        ++found;
        optimal += result.seconds <= best * kEqual ? 1 : 0;
    }
    CHECK(found > check::rounds(1500) / 4);
    CHECK(optimal > found * 9 / 10);
}

TEST(keeps_rooms_and_domains_on_larger_trees) {
    topoplace::Random random(20);
    for (std::int32_t i = 0; i < check::rounds(150); ++i) {
        Case c = random_tree(random, 1 + random.below(3), 6, 4);
        const auto total = std::accumulate(c.room.begin(), c.room.end(), 0);
        add_items(random, c, std::min(total, 40), 3);
        if (random.below(2) == 0) add_others(random, c);
        auto result = tree_mapping::map_to_tree(c.params());
        CHECK(result.found);
        CHECK(!tree_mapping::verify_tree_mapping(c.params(), result.leaf_of,
                                                 {result.seconds, result.port_seconds}));
        CHECK(tree_mapping::map_to_tree(c.params()).leaf_of == result.leaf_of);
        c.start = result.leaf_of;
        for (std::int32_t item = 0; item < c.items; ++item)
            c.confined.push_back(random.below(std::int32_t(c.own_class.size()) + 1));
        const auto kept = tree_mapping::map_to_tree(c.params());
        CHECK(kept.found && kept.seconds <= result.seconds * kEqual);
        CHECK(
            !tree_mapping::verify_tree_mapping(c.params(), kept.leaf_of, {kept.seconds, kept.port_seconds}));
        for (std::size_t item = 0; item < c.start.size(); ++item) {
            CHECK(ancestor(c, c.start[item], c.confined[item]) ==
                  ancestor(c, kept.leaf_of[item], c.confined[item]));
        }
    }
}

// Two own ports of a task work side by side: what it exchanges is no bound for one of them alone.
TEST(own_ports_of_two_classes_work_side_by_side) {
    Case c;
    c.parent = {-1, 0, 0, 1, 1, 2};
    c.room = {1, 1, 1};
    c.uplink.assign(6, 0.0);
    c.own_class = {0, 1};
    c.own.assign(6, 1.0);
    c.items = 3;
    c.ends = {2};
    c.from = {0, 0};
    c.to = {1, 2};
    c.gigabytes = {2, 2};
    const auto result = tree_mapping::map_to_tree(c.params());
    CHECK(result.seconds == 1.0 && result.bound == 1.0);
}

// Two of three equal racks are needed; others use the uplink of the first one.
TEST(a_rack_whose_uplink_others_use_is_left_alone) {
    Case c;
    c.parent = {-1, 0, 0, 0, 1, 1, 2, 2, 3, 3};
    c.room.assign(6, 1);
    c.uplink.assign(10, 1.0);
    c.own_class = {0, 0};
    c.own.assign(6, 1.0);
    c.items = 4;
    c.ends = {0, 3};
    c.from = {0, 1, 2};
    c.to = {1, 2, 3};
    c.gigabytes = {2, 2, 2};
    c.others.assign(20, 0.0);
    c.others[11] = 5.0;
    auto params = c.params();
    for (const std::uint64_t moves : {0, 2000}) {
        params.moves = moves;
        const auto result = tree_mapping::map_to_tree(params);
        CHECK(result.seconds == 2.0);
        CHECK(std::ranges::all_of(result.leaf_of, [](std::int32_t leaf) { return leaf > 1; }));
    }
    c.room = {1, 1, 1, 1, 0, 0};  // there is no other one
    const auto result = tree_mapping::map_to_tree(c.params());
    CHECK(result.seconds == 6.0 && result.bound == 6.0);  // all mappings are compared
}

// Rings of 8 items, of which each has one in `stride`, and light edges between them.
Case strided_rings(std::int32_t stride, double uplink, std::uint64_t moves) {
    Case c = machines_in_racks({stride}, 8, uplink);
    c.items = 8 * stride;
    for (std::int32_t item = 0; item < c.items; ++item) {
        add_edge(c, item, (item + stride) % c.items, 100);
        add_edge(c, item, (item + 1) % c.items, 1);
    }
    c.ends = {static_cast<std::int64_t>(c.from.size())};
    c.moves = moves;
    return c;
}

// Dense blocks of random items, each as large as a leaf, and few light edges; in `right`, each on its leaf.
Case planted(topoplace::Random& random, const Ints& racks, std::int32_t size, Ints& right) {
    Case c = machines_in_racks(racks, size, 50);
    c.items = static_cast<std::int32_t>(c.room.size()) * size;
    const Ints order = shuffled(random, c.items);
    right.assign(order.size(), 0);
    for (std::int32_t place = 0; place < c.items; ++place) {
        const std::int32_t block = place / size, item = order[std::size_t(place)];
        right[std::size_t(item)] = block;
        const auto other = [&] { return order[std::size_t(block * size + random.below(size))]; };
        add_edge(c, item, order[std::size_t(block * size + (place + 1) % size)], 10);
        for (std::int32_t i = 0; i < 2; ++i) add_edge(c, item, other(), 10);
        if (random.below(2) == 0) add_edge(c, item, random.below(c.items), 0.2);
    }
    c.ends = {static_cast<std::int64_t>(c.from.size())};
    c.moves = 300 * static_cast<std::uint64_t>(c.items);
    return c;
}

std::size_t leaves_used(const Ints& leaf_of) { return std::set(leaf_of.begin(), leaf_of.end()).size(); }

// Orders by numbers or by walks leave each ring on all leaves, and single moves do not mend it.
TEST(strided_rings_are_divided) {
    for (const double uplink : {0.0, 50.0}) {
        for (const std::uint64_t moves : {1000, 20000}) {
            const Case two = strided_rings(2, uplink, moves);
            const auto result = tree_mapping::map_to_tree(two.params());
            for (std::size_t i = 0; i < 16; ++i) CHECK_EQ(result.leaf_of[i], result.leaf_of[i % 2]);
        }
        const Case many = strided_rings(32, uplink, 10000);
        const auto result = tree_mapping::map_to_tree(many.params());
        for (std::size_t i = 0; i < 256; ++i) CHECK_EQ(result.leaf_of[i], result.leaf_of[i % 32]);
        const Case without_moves = strided_rings(32, uplink, 0);
        CHECK(tree_mapping::map_to_tree(without_moves.params()).found);
    }
}

TEST(planted_blocks_are_found) {
    topoplace::Random random(24);
    const std::vector<Ints> fabrics{{2}, {2, 2}, {4, 4}, {3, 5, 1}, {8, 8}, {8, 8, 8, 8}};
    for (std::int32_t i = 0; i < check::rounds(48); ++i) {
        Ints right;
        const Case c = planted(random, fabrics[std::size_t(i) % fabrics.size()], 8, right);
        const auto result = tree_mapping::map_to_tree(c.params());
        CHECK(result.seconds <= expected_time(c, right).seconds * kEqual);
    }
}

// Of rings on whole machines, no machine takes a part only, whatever the racks.
TEST(rings_use_the_fewest_machines) {
    topoplace::Random random(25);
    std::vector<std::pair<Ints, std::int32_t>> cases{
        {{3, 3, 2}, 4}, {{18, 18, 17, 18}, 40}, {{32, 32, 32, 30}, 40}};
    for (std::int32_t i = 0; i < check::rounds(100); ++i) {
        Ints racks;
        for (std::int32_t left = 2 + random.below(5); left > 0; --left) racks.push_back(1 + random.below(20));
        cases.push_back({racks, 1 + random.below(std::accumulate(racks.begin(), racks.end(), 0))});
    }
    for (const auto& [racks, machines] : cases) {
        Case c = machines_in_racks(racks, 8, 50);
        if (const auto kind = random.below(3); kind > 0) {  // uplinks as wide as racks, or none
            for (std::size_t i = 0; i < racks.size(); ++i)
                c.uplink[i + 1] = kind == 1 ? 50.0 * racks[i] : 0.0;
        }
        c.items = 8 * machines;
        for (std::int32_t item = 0; item < c.items; ++item) add_edge(c, item, (item + 1) % c.items, 10);
        c.ends = {static_cast<std::int64_t>(c.from.size())};
        CHECK_EQ(leaves_used(tree_mapping::map_to_tree(c.params()).leaf_of), std::size_t(machines));
    }
}

// Of racks of equal time, also where the uplinks of larger ones are faster.
TEST(rings_take_the_fewest_and_fullest_racks) {
    const std::vector<std::pair<Ints, std::int32_t>> cases{{{3, 2, 2}, 4}, {{19, 10, 10}, 20}};
    for (const auto& [racks, machines] : cases) {
        for (const bool is_wider : {false, true}) {
            Case c = machines_in_racks(racks, 8, 50);
            for (std::size_t i = 0; i < racks.size() && is_wider; ++i) c.uplink[i + 1] = 50.0 * racks[i];
            c.items = 8 * machines;
            for (std::int32_t item = 0; item < c.items; ++item) add_edge(c, item, (item + 1) % c.items, 10);
            c.ends = {static_cast<std::int64_t>(c.from.size())};
            const auto result = tree_mapping::map_to_tree(c.params());
            CHECK_EQ(leaves_used(result.leaf_of), std::size_t(machines));
            CHECK(std::ranges::all_of(result.leaf_of, [&](auto leaf) { return leaf >= racks[0]; }));
        }
    }
}

// The tightest pod has no rack for all items; another one has.
TEST(a_rack_that_has_all_is_found_in_any_pod) {
    Case c;
    c.parent = {-1, 0, 0, 1, 1, 2};
    for (const std::int32_t rack : {3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5})
        c.parent.push_back(rack);
    c.uplink.assign(c.parent.size(), 50.0);
    c.room.assign(18, 1);
    c.own_class = {0, 0, 1};
    c.own.assign(18, 50.0);
    c.own.insert(c.own.end(), 18, 900.0);
    c.items = 5;
    for (std::int32_t item = 0; item < 5; ++item) add_edge(c, item, (item + 1) % 5, 10);
    c.ends = {5};
    c.moves = 0;
    for (std::size_t i = 6; i < c.uplink.size(); ++i) c.uplink[i] = 0.0;
    CHECK(std::abs(tree_mapping::map_to_tree(c.params()).seconds - 10.0 / 900) < 1e-12);
}

TEST(few_items_on_many_leaves) {
    topoplace::Random random(21);
    Case c;
    for (std::int32_t rack = 0; rack < 300; ++rack) c.parent.push_back(0);
    for (std::int32_t leaf = 0; leaf < 3000; ++leaf) c.parent.push_back(1 + leaf / 10);
    c.uplink.assign(c.parent.size(), 2.0);
    c.room.assign(3000, 1);
    c.own_class = {0, 0};
    c.own.assign(3000, 1.0);
    add_items(random, c, 8, 2);
    add_others(random, c);
    auto params = c.params();
    params.moves = 20000;  // more than sums are kept for
    const auto result = tree_mapping::map_to_tree(params);
    CHECK(!tree_mapping::verify_tree_mapping(c.params(), result.leaf_of, expected_time(c, result.leaf_of)));
}

TEST(nothing_to_do) {
    Case c;  // a root that is a leaf
    c.room = {0};
    c.ends = {0, 0};
    const auto empty = tree_mapping::map_to_tree(c.params());
    CHECK(empty.found && empty.leaf_of.empty() && empty.seconds == 0.0 && empty.bound == 0.0);
    c.items = 1;
    CHECK(!tree_mapping::map_to_tree(c.params()).found);
    c.room = {1};
    CHECK(tree_mapping::map_to_tree(c.params()).leaf_of == Ints{0});
    const Case two = pair();
    auto params = two.params();
    params.moves = 0;
    CHECK(tree_mapping::map_to_tree(params).seconds == 1.0);
    params.moves = std::numeric_limits<std::uint64_t>::max();
    params.stop = topoplace::StopCondition::in(0);
    CHECK(tree_mapping::map_to_tree(params).seconds == 1.0);
}

TEST(a_stopped_search_has_a_mapping) {
    topoplace::Random random(22);
    Case c = random_tree(random, 3, 12, 4);
    add_items(random, c, 60, 3);
    auto params = c.params();
    params.moves = std::numeric_limits<std::uint64_t>::max();
    params.stop.max_nodes = 1000;
    const auto result = tree_mapping::map_to_tree(params);
    CHECK(result.found && !result.complete);
    CHECK(!tree_mapping::verify_tree_mapping(params, result.leaf_of, {result.seconds, result.port_seconds}));
}

// Of many items, one mapping at least, and a bound that is true, wherever the preparation stops.
TEST(a_stopped_preparation_has_a_mapping) {
    topoplace::Random random(23);
    Case c = random_tree(random, 2, 30, 8);
    c.items = std::min(700, std::accumulate(c.room.begin(), c.room.end(), 0));
    for (std::int32_t i = 0; i < c.items; ++i) {
        for (std::int32_t j = 0; j < i; ++j) {
            c.from.push_back(i);
            c.to.push_back(j);
            c.gigabytes.push_back(1 + (i + j) % 3);
        }
    }
    c.ends = {static_cast<std::int64_t>(c.from.size()) / 2, static_cast<std::int64_t>(c.from.size())};
    const double bound = tree_mapping::tree_bound(c.params()).seconds;
    auto params = c.params();
    for (const double seconds : {0.0, 1e-3, 4e-3, 1e-2}) {
        params.stop = topoplace::StopCondition::in(seconds);
        params.moves = std::numeric_limits<std::uint64_t>::max();
        const auto result = tree_mapping::map_to_tree(params);
        CHECK(result.found && !result.complete);
        CHECK(result.bound <= bound && bound <= result.seconds * kEqual);
        CHECK(!tree_mapping::verify_tree_mapping(params, result.leaf_of, expected_time(c, result.leaf_of)));
        const TreeTime time = expected_time(c, result.leaf_of);
        CHECK(std::abs(time.seconds - result.seconds) <= 1e-9 * time.seconds);
    }
}

TEST(huge_and_tiny_numbers) {
    Case c = pair();
    c.gigabytes = {1e18};
    c.own = {1e-18, 1e18};
    c.uplink = {0, 1e-18, 1e18};
    const auto result = tree_mapping::map_to_tree(c.params());
    CHECK(std::abs(result.seconds / 5e35 - 1) < 1e-9 && result.bound <= result.seconds * kEqual);
    c.items = std::numeric_limits<std::int32_t>::max();
    CHECK(!tree_mapping::map_to_tree(c.params()).found);
    c.room.assign(2, std::numeric_limits<std::int32_t>::max());
    refuses(c, "num_items[0] = 2147483647: more than 2^28");
}

TEST(wrong_mappings_are_not_verified) {
    const Case c = pair();
    const auto fault = [&](const Ints& leaf_of, TreeTime time) {
        return tree_mapping::verify_tree_mapping(c.params(), leaf_of, time).value_or("");
    };
    const TreeTime right{1.0, 0.5};
    CHECK(fault({0, 1}, right).empty());
    CHECK(fault({0}, right) == "leaf_of has 1 entries");
    CHECK(fault({0, 2}, right) == "leaf_of[1] = 2 is no leaf");
    CHECK(fault({0, 0}, right) == "leaf 0 is over its room");
    CHECK(fault({0, 1}, {0.9, 0.5}).starts_with("takes 1.0"));
    CHECK(!fault({0, 1}, {std::nan(""), 0.5}).empty());
    CHECK(!fault({0, 1}, {std::numeric_limits<double>::infinity(), 0.5}).empty());
    CHECK(!fault({0, 1}, {1.0, 0.6}).empty());
    Case confined = c;
    confined.start = {0, 1};
    confined.confined = {1, 1};
    CHECK(tree_mapping::verify_tree_mapping(confined.params(), Ints{1, 0}, right) ==
          "item 0 left its domain");
}

TEST(refuses_bad_input) {
    const auto changed = [](auto change) {
        Case c = pair();
        change(c);
        return c;
    };
    const double none = std::nan("");
    refuses(changed([](Case& c) { c.parent.clear(); }), "parent[0] is not -1");
    refuses(changed([](Case& c) { c.parent[0] = 0; }), "parent[0] is not -1");
    refuses(changed([](Case& c) { c.parent[1] = 2; }), "parent[1] = 2: not below the domain's number");
    refuses(changed([](Case& c) { c.parent[2] = 2; }), "parent[2] = 2: not below the domain's number");
    refuses(changed([](Case& c) { c.parent[2] = 1, c.parent.push_back(0); }), "leaves have different depths");
    refuses(changed([](Case& c) {
                c.parent.resize(67);
                std::iota(c.parent.begin(), c.parent.end(), -1);
            }),
            "parent[65] = 64: the tree is deeper than 64 domains");
    refuses(changed([](Case& c) { c.room[1] = -1; }), "room[1] = -1: out of range");
    refuses(changed([](Case& c) { c.room.pop_back(); }), "room has 1 entries, not 2");
    refuses(changed([&](Case& c) { c.uplink[2] = none; }), "uplink[2] = nan: not in 1e-18..1e18");
    refuses(changed([](Case& c) { c.uplink.pop_back(); }), "uplink has 2 entries, not 3");
    refuses(changed([](Case& c) { c.own_class[0] = 1; }), "own_class[0] = 1: out of range");
    refuses(changed([](Case& c) { c.own_class[0] = INT32_MAX; }), "own_class[0] = 2147483647: out of range");
    refuses(changed([](Case& c) { c.own_class.clear(); }), "own_class has 0 entries, not 1");
    refuses(changed([](Case& c) { c.own.pop_back(); }), "own has 1 entries, not 0");
    refuses(changed([](Case& c) { c.own[1] = 0; }), "own[1] = 0.000000: not in 1e-18..1e18");
    refuses(changed([](Case& c) { c.own[1] = 1e-300; }), "own[1] = 0.000000: not in 1e-18..1e18");
    refuses(changed([](Case& c) { c.items = -1; }), "num_items[0] = -1: below 0");
    refuses(changed([](Case& c) { c.items = 1; }), "end of exchanges[0] = 1: out of range");
    refuses(changed([](Case& c) { c.to.clear(); }), "end of exchanges has 0 entries, not 1");
    refuses(changed([](Case& c) { c.to[0] = 0; }), "end of exchanges[0] = 0: joins an item with itself");
    refuses(changed([&](Case& c) { c.gigabytes[0] = none; }), "gigabytes[0] = nan: not in 0..1e18");
    refuses(changed([](Case& c) { c.gigabytes[0] = -1; }), "gigabytes[0] = -1");
    refuses(changed([](Case& c) { c.ends = {1, 0}; }), "phase_ends[1] = 0: descends");
    refuses(changed([](Case& c) { c.ends = {-1}; }), "phase_ends[0] = -1: descends");
    refuses(changed([](Case& c) { c.ends = {}; }), "phase_ends ends at 0 of 1 edges");
    refuses(changed([](Case& c) { c.start = {0}; }), "start has 1 entries, not 2");
    refuses(changed([](Case& c) { c.start = {0, 2}; }), "start[1] = 2: out of range");
    refuses(changed([](Case& c) { c.start = {0, 0}; }), "start[1] = 0: has no room for so many");
    refuses(changed([](Case& c) { c.confined = {0, 0}; }), "confined needs start");
    refuses(changed([](Case& c) { c.others = {0, 0}; }), "others has 2 entries, not 3");
    refuses(changed([&](Case& c) { c.others = {0, 0, none}; }), "others[2] = nan: not in 0..1e18");
    refuses(changed([](Case& c) { c.start = {0, 1}, c.confined = {0, 2}; }), "confined[1] = 2: out of range");
}
