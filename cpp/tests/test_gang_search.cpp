// Gang search on small clusters against every assignment, and what it has to honour.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "check.hpp"
#include "oracles/gang_clusters.hpp"
#include "topoplace/random.hpp"

namespace decide = topoplace::decide;
namespace ports = topoplace::ports;
namespace traffic = topoplace::traffic;
using decide::GangFound;
using decide::GangSearchParams;
using oracle::AllAssignments;
using oracle::at;
using oracle::Fabric;
using Case = oracle::OfferCase;
using Cluster = oracle::GangCluster;
using oracle::Longs;
using oracle::Numbers;
using oracle::Reals;
using topoplace::Random;
using traffic::Kind;

namespace {

constexpr double kEqual = 1 + 1e-6;

// Offered GPUs, each once, whole units, `most` on a machine, and the time of these.
void is_right(const Case& c, const GangFound& found) {
    CHECK_EQ(found.gpus.size(), c.size());
    std::set<std::int32_t> left;
    for (std::size_t i = 0; i < c.machines.size(); ++i) {
        const Numbers places = c.places(i);
        left.insert(places.begin(), places.end());
    }
    Numbers tasks(at(c.cluster->count), 0);
    for (std::size_t i = 0; i < c.size(); ++i) {
        const std::int32_t gpu = found.gpus[at(c.units[i])];
        CHECK_EQ(left.erase(gpu), 1U);
        CHECK(++tasks[at(c.machine_of(gpu))] <= c.most);
        CHECK_EQ(c.machine_of(gpu), c.machine_of(found.gpus[at(c.units[i - i % at(c.unit)])]));
    }
    const double seconds = c.seconds(found.gpus);
    const bool is_near = found.seconds <= seconds * kEqual && seconds <= found.seconds * kEqual;
    if (!is_near) std::cerr << seconds << " s, not " << found.seconds << '\n';
    CHECK(is_near);
    CHECK(found.least <= seconds * kEqual);
}

// A machine for each task, with whole units, as far as there is room.
Numbers random_start(Random& random, const Case& c) {
    Numbers left, start(c.size(), -1);
    for (const std::int32_t size : c.sizes) left.push_back(std::min(size, c.most) / c.unit);
    for (std::size_t i = 0; i < c.size(); i += at(c.unit)) {
        std::size_t offer = 0;
        do {
            offer = at(random.below(static_cast<std::int32_t>(left.size())));
        } while (left[offer] == 0);
        --left[offer];
        for (std::size_t k = i; k < i + at(c.unit); ++k) start[at(c.units[k])] = c.machines[offer];
    }
    return start;
}

Numbers machines_of(const Case& c, const Numbers& gpus) {
    Numbers found;
    for (const std::int32_t gpu : gpus) found.push_back(c.machine_of(gpu));
    return found;
}

std::int64_t domain_of(const Case& c, std::size_t level, std::int32_t machine) {
    return (*c.cluster->levels)[level].domains[at(machine)];
}

void add_offer(Case& c, std::int32_t machine, std::uint8_t bits, std::int32_t size) {
    c.machines.push_back(machine);
    c.kind_of.push_back(static_cast<std::int32_t>(c.usable.size()));
    c.sizes.push_back(size);
    c.usable.push_back(bits);
    c.free.push_back(bits);
}

// A ring of so many tasks on machines of two GPUs, two in a rack, of which nothing is offered yet.
Case ring_on(std::int32_t machines, std::int32_t tasks) {
    Case c;
    c.cluster = std::make_shared<const Cluster>(oracle::equal_machines(machines, 2), 1);
    c.units.resize(at(tasks));
    std::iota(c.units.begin(), c.units.end(), 0);
    c.job.add(Kind::kRing, c.units, 1.0);
    c.job.end_phase();
    c.add_edges();
    return c;
}

}  // namespace

TEST(agrees_with_every_assignment) {
    Random random(71);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < check::rounds(1000); ++i) {
        const Case c = oracle::random_case(random);
        const GangSearchParams params = c.params();
        CHECK(!decide::check(params));
        const GangFound found = decide::search_gang(params);
        CHECK_EQ(found.found, c.room() >= params.units.count());
        if (!found.found) continue;
        is_right(c, found);
        const AllAssignments all(c);
        CHECK(found.seconds <= all.best_of_whole * (1 + params.slack));
        CHECK(found.least <= (c.machine_groups ? all.best_of_whole : all.best) * kEqual);
        ++count;
    }
    CHECK(count > check::rounds(1000) / 2);
}

TEST(the_same_arguments_give_the_same_gpus) {
    Random random(72);
    for (std::int32_t i = 0; i < check::rounds(100); ++i) {
        const Case c = oracle::random_case(random, 16, 12);
        const GangFound one = decide::search_gang(c.params()), other = decide::search_gang(c.params());
        CHECK(one.gpus == other.gpus && one.seconds == other.seconds && one.least == other.least);
        if (one.found) is_right(c, one);
    }
}

TEST(a_stopped_search_has_gpus) {
    Random random(73);
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        const Case c = oracle::random_case(random, 16, 12);
        GangSearchParams params = c.params();
        if (i % 2 == 0) decide::search_gang(params);  // what it keeps, the stopped search uses
        params.stop.when = {};
        const GangFound found = decide::search_gang(params);
        CHECK_EQ(found.found, c.room() >= params.units.count());
        if (found.found) is_right(c, found);
    }
}

TEST(a_search_from_machines_keeps_what_it_has_to) {
    Random random(74);
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        Case c = oracle::random_case(random);
        if (c.room() < c.params().units.count()) continue;
        c.start = random_start(random, c);
        GangSearchParams params = c.params();
        is_right(c, decide::search_gang(params));
        params.may_leave = false;
        params.is_balanced = i % 2 == 0;
        const std::size_t level = at(random.below(static_cast<std::int32_t>(params.levels->size())));
        for (std::size_t k = 0; k < c.size(); k += at(c.unit))
            params.together.push_back({level, params.units.tasks.subspan(k, at(c.unit))});
        const GangFound found = decide::search_gang(params);
        CHECK(found.found);
        if (!found.found) continue;
        is_right(c, found);
        Numbers machines = machines_of(c, found.gpus), before = c.start;
        for (std::size_t task = 0; task < c.size(); ++task)
            CHECK_EQ(domain_of(c, level, machines[task]), domain_of(c, level, before[task]));
        std::ranges::sort(machines);
        std::ranges::sort(before);
        if (params.is_balanced) CHECK(machines == before);
    }
}

TEST(a_start_that_no_machine_has_room_for_is_none) {
    Case c = ring_on(3, 3);
    add_offer(c, 0, 3, 2);
    add_offer(c, 1, 3, 2);
    const auto is_found = [&](const Numbers& start, bool is_balanced) {
        c.start = start;
        GangSearchParams params = c.params();
        params.may_leave = false;
        params.is_balanced = is_balanced;
        return decide::search_gang(params).found;
    };
    for (const bool is_balanced : {false, true}) {
        CHECK(is_found({0, 1, 0}, is_balanced));
        CHECK(!is_found({0, 0, 0}, is_balanced));
        CHECK(!is_found({0, 1, 2}, is_balanced));
    }
}

TEST(one_domain_has_all_tasks) {
    Random random(75);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        const Case c = oracle::random_case(random);
        GangSearchParams params = c.params();
        const std::size_t level = at(random.below(static_cast<std::int32_t>(params.levels->size())));
        params.whole = {level};
        std::map<std::int64_t, std::int32_t> room;
        for (std::size_t k = 0; k < c.machines.size(); ++k)
            room[domain_of(c, level, c.machines[k])] += std::min(c.sizes[k], c.most) / c.unit;
        const bool has_room =
            std::ranges::any_of(room, [&](const auto& one) { return one.second >= params.units.count(); });
        const GangFound found = decide::search_gang(params);
        CHECK_EQ(found.found, has_room);
        if (!found.found) continue;
        is_right(c, found);
        for (const std::int32_t machine : machines_of(c, found.gpus))
            CHECK_EQ(domain_of(c, level, machine), domain_of(c, level, c.machine_of(found.gpus[0])));
        ++count;
    }
    CHECK(count > check::rounds(400) / 4);
}

// What a search keeps of a machine, one that is stopped at once takes in place of its own order of tasks.
TEST(a_stopped_search_has_the_time_of_what_is_kept) {
    Random random(76);
    for (std::int32_t i = 0; i < check::rounds(200); ++i) {
        Case c;
        c.cluster = std::make_shared<const Cluster>(oracle::random_fabric(random, 2, 4), 1);
        const auto size = static_cast<std::int32_t>(c.cluster->gpus_of(0).size());
        add_offer(c, 0, static_cast<std::uint8_t>((1 << size) - 1), size);
        c.units = oracle::permutation(random, size);
        c.job = oracle::random_job(random, size);
        c.add_edges();
        GangSearchParams params = c.params();
        decide::search_gang(params);
        params.stop.when = {};
        is_right(c, decide::search_gang(params));
    }
}

// Racks that have room only for two tasks on one machine come before the one that has it for one on each.
TEST(domains_without_room_are_not_tried) {
    Case c = ring_on(40, 2);
    for (std::int32_t machine = 0; machine < 38; machine += 2) add_offer(c, machine, 3, 2);
    add_offer(c, 38, 1, 1);
    add_offer(c, 39, 2, 1);
    c.most = 1;
    GangSearchParams params = c.params();
    params.whole = {0};
    const GangFound found = decide::search_gang(params);
    CHECK(found.found);
    if (found.found) is_right(c, found);
}

TEST(without_offers_there_is_no_room) {
    Case c = ring_on(2, 3);
    c.usable = {1};
    CHECK(!decide::check(c.params()));
    CHECK(!decide::search_gang(c.params()).found);
}

TEST(a_search_names_what_is_out_of_range) {
    Case c = ring_on(2, 3);
    add_offer(c, 0, 3, 2);
    add_offer(c, 1, 3, 2);
    const Cluster other(oracle::equal_machines(3, 2), 1), same(oracle::equal_machines(2, 2), 1);
    const ports::FlowCounts flows(*same.fabric.ports);
    const Numbers start{0, 1}, beyond{0, 3}, twice{0, 1, 1}, outside{0, 1, 2}, sizes{2, 3};
    const std::vector<std::uint8_t> free{3};
    Reals edges = c.edges;
    const auto fault_of = [&](auto change) {
        GangSearchParams params = c.params();
        change(params);
        return decide::check(params).value_or("");
    };
    CHECK_EQ(fault_of([](auto&) {}), "");
    CHECK_EQ(fault_of([](auto& p) { p.topology = nullptr; }), "a topology is missing");
    CHECK_EQ(fault_of([](auto& p) { p.levels = nullptr; }), "a topology is missing");
    CHECK_EQ(fault_of([&](auto& p) { p.levels = other.levels.get(); }), "levels are those of other machines");
    CHECK(fault_of([&](auto& p) { p.offers.sizes = sizes; }).starts_with("sizes[1] = 3: "));
    CHECK_EQ(fault_of([&](auto& p) { p.free = free; }), "free has 1 entries, not 2");
    CHECK_EQ(fault_of([](auto& p) { p.most = 0; }), "most[0] = 0: below 1");
    CHECK_EQ(fault_of([](auto& p) { p.units.size = 2; }), "units of 2 of 3 tasks");
    CHECK_EQ(fault_of([&](auto& p) { p.units.tasks = twice; }), "units[2] = 1: not each task once");
    CHECK_EQ(fault_of([](auto& p) { p.job.gigabytes = {}; }), "gigabytes has 0 entries, not 1");
    CHECK_EQ(fault_of([&](auto& p) { p.start = start; }), "start has 2 entries, not 3");
    CHECK_EQ(fault_of([&](auto& p) { p.start = outside; }), "start[2] = 2: out of range");
    CHECK_EQ(fault_of([&](auto& p) { p.others = &flows; }), "others are flows of another network");
    CHECK_EQ(fault_of([&](auto& p) { p.together = {{2, start}}; }), "level[0] = 2: not a level");
    CHECK_EQ(fault_of([](auto& p) { p.together = {{1, {}}}; }), "together has a group without tasks");
    CHECK_EQ(fault_of([&](auto& p) { p.together = {{1, beyond}}; }), "together[1] = 3: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.whole = {1, 2}; }), "whole[1] = 2: not a level");
    CHECK(fault_of([](auto& p) { p.slack = 0.0; }).starts_with("slack = 0.000000: "));
    CHECK_EQ(fault_of([](auto& p) { p.share = -1.0; }), "share[0] = -1.000000: not in 0..1e9");
    const auto fault_of_edges = [&](std::size_t i, double value) {
        edges = c.edges;
        edges[i] = value;
        return fault_of([&](auto& p) { p.edges = edges; });
    };
    CHECK_EQ(fault_of([](auto& p) { p.edges = p.edges.first(4); }), "edges is not in rows of three");
    for (const double value : {-1.0, 1.0, 0.5, std::nan("")})
        CHECK(fault_of_edges(0, value).ends_with(": not two tasks in order"));
    CHECK(fault_of_edges(4, 3.0).starts_with("edges[3] = 0.000000: "));
    CHECK_EQ(fault_of_edges(2, -1.0), "edges[2] = -1.000000: not in 0..1e18");
}

TEST(levels_name_what_is_out_of_range) {
    const Fabric fabric = oracle::equal_machines(2, 2);
    const std::int64_t ports = fabric.ports->num_ports();
    const Longs codes{0, 1};
    Longs uplinks;
    Reals uplink{1.0, 1.0};
    const auto fault_of = [&](const decide::GangLevelParams& params) {
        return decide::check(params, 2, *fabric.ports).value_or("");
    };
    const auto fault_of_uplinks = [&](const Longs& rows) {
        uplinks = rows;
        return fault_of({codes, codes, {}, uplinks, false});
    };
    CHECK_EQ(fault_of({codes, codes, uplink, {}, false}), "");
    CHECK_EQ(fault_of({{}, codes, {}, {}, false}), "codes has 0 entries, not 2");
    CHECK_EQ(fault_of({codes, {}, {}, {}, false}), "domains has 0 entries, not 2");
    CHECK_EQ(fault_of({codes, codes, std::span(uplink).first(1), {}, false}), "uplink has 1 entries, not 2");
    for (const double speed : {-1.0, 1e-19, 1e19, std::nan("")}) {
        uplink[1] = speed;
        CHECK(fault_of({codes, codes, uplink, {}, false}).starts_with("uplink[1] = "));
    }
    CHECK_EQ(fault_of_uplinks({0, 0, 1, ports - 1}), "");
    CHECK_EQ(fault_of_uplinks({0}), "uplinks is not in rows of two");
    CHECK_EQ(fault_of_uplinks({0, 0, 2, 0}), "uplinks[2] = 2: not a machine, ascending");
    CHECK_EQ(fault_of_uplinks({1, 0, 0, 0}), "uplinks[2] = 0: not a machine, ascending");
    CHECK_EQ(fault_of_uplinks({0, ports}), "uplinks[1] = " + std::to_string(ports) + ": not a port");
}

TEST(a_topology_names_what_is_out_of_range) {
    const Cluster cluster(oracle::equal_machines(2, 2), 1), less(oracle::equal_machines(1, 2), 1),
        other(oracle::equal_machines(4, 1), 1);
    const Reals speeds{1.0, 1.0}, few{1.0}, none{1.0, 0.0};
    const auto fault_of = [&](const Cluster& of, const Reals& adapters, const Reals& nvlinks) {
        return decide::GangTopology::check({cluster.limits.get(), of.fabric.made.get(), adapters, nvlinks})
            .value_or("");
    };
    CHECK_EQ(fault_of(cluster, speeds, speeds), "");
    CHECK_EQ(fault_of(cluster, few, speeds), "adapter_speed has 1 entries, not 2");
    CHECK_EQ(fault_of(cluster, speeds, few), "nvlink_speed has 1 entries, not 2");
    CHECK_EQ(fault_of(cluster, none, speeds), "adapter_speed[1] = 0.000000: not in 1e-18..1e18");
    CHECK_EQ(fault_of(less, speeds, speeds), "network has 2 entries, not 4");
    CHECK_EQ(fault_of(other, speeds, speeds), "gpus[1] = 0: the network has it on another machine");
}
