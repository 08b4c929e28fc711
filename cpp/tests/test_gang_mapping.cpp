// Gang mapping against every placement of small gangs, planted groups, and its verifier.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "check.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/gang_mapping.hpp"
#include "topoplace/random.hpp"

namespace gang_mapping = topoplace::gang_mapping;
namespace traffic = topoplace::traffic;
using gang_mapping::GangParams;
using gang_mapping::GangResult;
using oracle::GangCase;
using oracle::Numbers;
using traffic::Kind;

namespace {

constexpr double kEqual = 1 + 1e-9;

std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

bool is_right(const GangParams& params, const GangResult& found) {
    const auto fault = gang_mapping::verify_gang(params, found.vertex_of, found.seconds, found.port_seconds);
    if (fault) std::cerr << *fault << ", not " << found.seconds << ", " << found.port_seconds << '\n';
    return !fault;
}

// Free vertices of each machine, and the tree over them.
void set_places(GangCase& c, const Numbers& taken) {
    for (std::size_t leaf = 0; leaf < c.fabric.rack_of.size(); ++leaf) {
        for (std::int32_t v = 0; v < c.fabric.network.n; ++v) {
            const bool is_here = at(c.fabric.machine[at(v)]) == leaf;
            if (is_here && std::ranges::find(taken, v) == taken.end()) c.places.push_back(v);
        }
        c.leaf_ends.push_back(static_cast<std::int64_t>(c.places.size()));
    }
}

// Groups of random tasks with heavy rings, each as large as a machine, and a light ring of all.
GangCase planted(topoplace::Random& random, std::int32_t machines, std::int32_t size, std::int32_t groups) {
    GangCase c;
    c.fabric = oracle::equal_machines(machines, size);
    c.tasks = Numbers(at(groups * size));
    for (std::size_t i = 0; i < c.tasks.size(); ++i) c.tasks[i] = static_cast<std::int32_t>(i);
    const Numbers order = oracle::permutation(random, groups * size);
    for (std::int32_t group = 0; group < groups; ++group) {
        c.job.add(Kind::kRing, Numbers(order.begin() + group * size, order.begin() + (group + 1) * size),
                  100);
    }
    c.job.end_phase();
    c.job.add(Kind::kReduce, c.tasks, 1.0);
    c.job.end_phase();
    Numbers taken;
    for (std::int32_t machine = groups; machine < machines; ++machine) {
        for (std::int32_t i = 0; i < machine % size; ++i) taken.push_back(machine * size + i);
    }
    set_places(c, taken);
    c.make_tree(1);
    return c;
}

// Two machines of two vertices in one rack, and three tasks in one ring.
GangCase three() {
    GangCase c;
    c.fabric = oracle::equal_machines(2, 2);
    c.tasks = {0, 1, 2};
    c.job.add(Kind::kRing, {0, 1, 2}, 1.0);
    c.job.end_phase();
    set_places(c, {});
    c.make_tree(1);
    return c;
}

void refuses(const topoplace::Fault& fault, const std::string& what) {
    const bool says = fault.value_or("").find(what) != std::string::npos;
    if (!says) std::cerr << fault.value_or("nothing") << " does not say " << what << '\n';
    CHECK(says);
}

}  // namespace

TEST(agrees_with_every_placement) {
    topoplace::Random random(61);
    std::int32_t found = 0, optimal = 0, fewest = 0, large = 0, large_optimal = 0;
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        const auto fabric = oracle::random_fabric(random, 1 + random.below(5), 1 + random.below(4));
        const bool is_large = i % 10 == 0;
        const GangCase c = oracle::random_gang(random, fabric, is_large ? 9 : 7, is_large ? 6 : 4);
        auto params = c.params();
        params.work = 1 << 20;
        const GangResult result = gang_mapping::map_gang(params);
        const oracle::AllPlacements all(c);
        CHECK(result.found == (all.count > 0));
        CHECK(result.complete);
        if (!result.found) continue;
        CHECK(is_right(params, result));
        CHECK(all.best.seconds <= result.seconds * kEqual);
        const bool is_optimal = result.seconds <= all.best.seconds * kEqual;
        (is_large ? large : found) += 1;
        (is_large ? large_optimal : optimal) += is_optimal ? 1 : 0;
        fewest += !is_large && is_optimal && result.port_seconds <= all.best.port_seconds * kEqual ? 1 : 0;
    }
    CHECK(found > check::rounds(400) / 3);
    CHECK_EQ(optimal, found);
    CHECK_EQ(fewest, found);
    CHECK(large_optimal * 10 >= large * 9);
}

TEST(a_search_from_a_mapping_is_not_worse_and_keeps_domains) {
    topoplace::Random random(62);
    std::int32_t faster = 0;
    for (std::int32_t i = 0; i < check::rounds(150); ++i) {
        GangCase c = oracle::random_gang(random, oracle::random_fabric(random, 6, 4), 24, 16);
        auto params = c.params();
        const GangResult free = gang_mapping::map_gang(params);
        if (!free.found) continue;
        CHECK(is_right(params, free));
        Numbers left = c.tree.room;
        for (std::int32_t item = 0; item < c.tree.items; ++item) {
            auto leaf = random.below(static_cast<std::int32_t>(left.size()));
            while (left[at(leaf)] == 0) leaf = (leaf + 1) % static_cast<std::int32_t>(left.size());
            --left[at(leaf)];
            c.tree.start.push_back(leaf);
            c.tree.confined.push_back(random.below(3));
        }
        params = c.params();
        params.work = 0;
        const GangResult first = gang_mapping::map_gang(params);
        const GangResult more = gang_mapping::map_gang(c.params());
        CHECK(is_right(params, first) && is_right(c.params(), more));
        CHECK(more.seconds <= first.seconds * kEqual);
        const bool is_faster = std::isinf(more.seconds) || more.seconds * kEqual < first.seconds;
        CHECK(is_faster || more.port_seconds <= first.port_seconds * kEqual);
        faster += more.seconds < first.seconds ? 1 : 0;
    }
    CHECK(faster > 5);
}

TEST(planted_groups_are_on_one_machine_each) {
    topoplace::Random random(63);
    for (std::int32_t i = 0; i < check::rounds(24); ++i) {
        const std::int32_t size = i % 2 == 0 ? 4 : 8, groups = 4 + random.below(5);
        const GangCase c = planted(random, groups + 3, size, groups);
        auto params = c.params();
        params.work = 1 << 18;
        const GangResult result = gang_mapping::map_gang(params);
        CHECK(is_right(params, result));
        std::set<std::pair<std::int32_t, std::int32_t>> pairs;  // group and machine
        for (std::size_t k = 0; k < result.vertex_of.size(); ++k) {
            const auto task = at(c.job.tasks[k]);
            pairs.insert({static_cast<std::int32_t>(k) / size, result.vertex_of[task] / size});
        }
        CHECK_EQ(pairs.size(), at(groups));
    }
}

TEST(the_same_arguments_give_the_same_answer) {
    topoplace::Random random(64);
    for (std::int32_t i = 0; i < check::rounds(40); ++i) {
        const GangCase c = oracle::random_gang(random, oracle::random_fabric(random, 8, 4), 30, 24);
        auto params = c.params();
        params.items.seed = static_cast<std::uint64_t>(i);
        const GangResult one = gang_mapping::map_gang(params), other = gang_mapping::map_gang(params);
        CHECK(one.vertex_of == other.vertex_of && one.work == other.work);
        CHECK(one.seconds == other.seconds && one.port_seconds == other.port_seconds);
    }
}

TEST(a_stopped_search_has_a_mapping) {
    topoplace::Random random(65);
    for (std::int32_t i = 0; i < check::rounds(40); ++i) {
        const GangCase c = oracle::random_gang(random, oracle::random_fabric(random, 12, 4), 40, 32);
        auto params = c.params();
        params.work = std::numeric_limits<std::uint64_t>::max();
        params.items.stop = topoplace::StopCondition::in(0);
        const GangResult at_once = gang_mapping::map_gang(params);
        if (!at_once.found) continue;
        CHECK(is_right(params, at_once));
        params.items.stop = {};
        params.items.stop.max_nodes = 64;
        const GangResult later = gang_mapping::map_gang(params);
        CHECK(is_right(params, later));
    }
}

// All pairs of 2,000 tasks: where the search stops while it prepares, there is a mapping, and perhaps no
// time.
TEST(a_stopped_preparation_has_a_mapping) {
    GangCase c;
    c.fabric = oracle::equal_machines(300, 8);
    for (std::int32_t i = 0; i < 2000; ++i) c.tasks.push_back(i);
    c.job.add(Kind::kPairs, c.tasks, 1.0);
    c.job.end_phase();
    set_places(c, {});
    c.make_tree(1);
    for (std::int32_t i = 0; i < 2000; ++i) {
        for (std::int32_t j = i + 2; j < 2000; ++j) {
            c.tree.from.push_back(i);
            c.tree.to.push_back(j);
            c.tree.gigabytes.push_back(1.0);
        }
    }
    c.tree.ends = {static_cast<std::int64_t>(c.tree.from.size())};
    auto params = c.params();
    for (const double seconds : {0.0, 1e-2, 1e-1}) {
        params.items.stop = topoplace::StopCondition::in(seconds);
        const GangResult result = gang_mapping::map_gang(params);
        CHECK(result.found && !result.complete);
        CHECK(is_right(params, result));
    }
}

TEST(nothing_to_do) {
    GangCase c = three();
    c.tasks.clear();
    c.job = {};
    c.job.end_phase();
    c.tree = {};
    c.make_tree(1);
    c.tree.items = 0;
    const GangResult none = gang_mapping::map_gang(c.params());
    CHECK(none.found && none.vertex_of.empty() && none.seconds == 0.0 && none.complete);
    GangCase many = three();
    many.tree.room = {1, 1};
    CHECK(!gang_mapping::map_gang(many.params()).found);
}

// Two tasks without a path take for ever, whatever else is slow.
TEST(what_has_no_path_takes_for_ever) {
    GangCase c = three();
    std::ranges::fill(c.fabric.network.domain, -1);
    c.fabric.make();
    const GangResult result = gang_mapping::map_gang(c.params());
    CHECK(result.found && std::isinf(result.seconds) && result.port_seconds == 0.0);
    CHECK(is_right(c.params(), result));
    GangCase slow = three();
    slow.job.gigabytes = {1e18};
    const GangResult found = gang_mapping::map_gang(slow.params());
    CHECK(std::isfinite(found.seconds) && found.seconds >= 1e17);
    CHECK(is_right(slow.params(), found));
}

TEST(wrong_mappings_are_not_verified) {
    GangCase c = three();
    const GangResult right = gang_mapping::map_gang(c.params());
    const auto fault = [&](const Numbers& vertex_of, double more = 0.0, double more_of_ports = 0.0) {
        return gang_mapping::verify_gang(c.params(), vertex_of, right.seconds + more,
                                         right.port_seconds + more_of_ports)
            .value_or("");
    };
    CHECK_EQ(fault(right.vertex_of), "");
    CHECK_EQ(fault({0, 1}), "vertex_of has 2 entries");
    CHECK_EQ(fault({0, 1, 1}), "no free place for task 2");
    CHECK_EQ(fault({0, 1, 4}), "no free place for task 2");
    CHECK(fault(right.vertex_of, 1e-6).starts_with("takes "));
    CHECK(fault(right.vertex_of, std::nan("")).starts_with("takes "));
    CHECK(fault(right.vertex_of, 0.0, 1e-6).ends_with(" port-seconds"));
    const double unknown = std::numeric_limits<double>::infinity();
    CHECK(!fault(right.vertex_of, unknown).empty());
    CHECK_EQ(fault(right.vertex_of, unknown, unknown), "");
    c.tree.room = {1, 2};
    CHECK_EQ(fault({0, 1, 2}), "too little room on leaf 0");
    c.tree.room = {2, 2};
    c.tree.start = {0, 0, 1};
    c.tree.confined = {2, 0, 0};
    CHECK_EQ(fault({2, 0, 1}), "outside its domain is item 0");
    GangCase pairs = three();
    pairs.tasks = {0, 1, 2, 3};
    pairs.tree.items = 2;
    pairs.tree.room = {1, 1};
    pairs.tree.from = pairs.tree.to = {};
    pairs.tree.gigabytes = {};
    pairs.tree.ends = {0};
    CHECK_EQ(gang_mapping::verify_gang(pairs.params(), Numbers{0, 2, 1, 3}, 0, 0).value_or(""),
             "two leaves for item 0");
}

TEST(refuses_bad_input) {
    const auto refused = [](auto change, const std::string& what) {
        GangCase c = three();
        change(c);
        refuses(gang_mapping::check(c.params()), what);
    };
    refused([](GangCase& c) { c.fabric.made.reset(); }, "network is missing");
    refused([](GangCase& c) { c.tasks = {0, 1}; }, "tasks has 2 entries, not equally many for 3 items");
    refused([](GangCase& c) { c.tasks = {}; }, "tasks has 0 entries");
    refused([](GangCase& c) { c.tasks[2] = 3; }, "tasks[2] = 3: out of range");
    refused([](GangCase& c) { c.tasks[2] = 0; }, "tasks[2] = 0: listed twice");
    refused([](GangCase& c) { c.job.tasks[1] = 3; }, "tasks[1] = 3: out of range");
    refused([](GangCase& c) { c.job.kinds[0] = 9; }, "kinds[0] = 9: there is no such kind");
    refused([](GangCase& c) { c.leaf_ends = {2}; }, "leaf_ends has 1 entries, not 2");
    refused([](GangCase& c) { c.leaf_ends = {2, 1}; }, "leaf_ends[1] = 1: descends");
    refused([](GangCase& c) { c.leaf_ends = {2, 5}; }, "leaf_ends ends at 5 of 4");
    refused([](GangCase& c) { c.places[3] = 4; }, "places[3] = 4: out of range");
    refused([](GangCase& c) { c.places[3] = 0; }, "places[3] = 0: listed twice");
    refused([](GangCase& c) { c.tree.room[1] = 3; }, "room[1] = 3: more items than its places have");
    refused([](GangCase& c) { c.tree.start = {0, 0, 0}; }, "start[2] = 0: has no room for so many");
}
