// What machines offer to a gang, beside what the definitions say.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "check.hpp"
#include "topoplace/gang_room.hpp"
#include "topoplace/gang_tree.hpp"
#include "topoplace/random.hpp"

namespace {

namespace decide = topoplace::decide;
using namespace decide;

struct Case {
    std::vector<std::int64_t> ends{};
    std::vector<std::int32_t> gpus{}, domain{}, adapter{};
    std::vector<double> way_out{}, gb_per_s{};
    std::vector<std::int32_t> machines{}, kind_of{}, sizes{};
    std::vector<std::uint8_t> usable{};
    std::vector<std::vector<std::int64_t>> codes{};

    GangMachinesParams params() const { return {ends, gpus, domain, adapter, way_out, gb_per_s}; }
    MachineOffers offers() const { return {machines, kind_of, sizes, usable, 1}; }
    LevelCodes levels() const { return {codes.begin(), codes.end()}; }
    std::int32_t begin(std::int32_t machine) const {
        return machine == 0 ? 0 : static_cast<std::int32_t>(ends[static_cast<std::size_t>(machine) - 1]);
    }
    std::vector<std::int32_t> usable_of(std::size_t offer) const {
        std::vector<std::int32_t> found;
        for (std::int32_t i = 0; i < 8; ++i) {
            if (usable[static_cast<std::size_t>(kind_of[offer])] >> i & 1)
                found.push_back(begin(machines[offer]) + i);
        }
        return found;
    }
};

// Up to 12 machines of 4 GPUs, in levels of any numbers.
Case random_case(topoplace::Random& random) {
    Case c;
    const std::int32_t count = 1 + random.below(12);
    for (std::int32_t machine = 0; machine < count; ++machine) {
        c.ends.push_back(4 * (machine + 1));
        for (std::int32_t i = 0; i < 4; ++i) {
            c.gpus.push_back(4 * machine + i);
            c.domain.push_back(machine / 2 * 3);
            c.adapter.push_back(random.below(4) == 0 ? -1 : 3 * machine + random.below(3));
            c.way_out.push_back(c.adapter.back() < 0 ? 0.0 : 10.0 * (1 + random.below(3)));
        }
        if (random.below(4) != 0) c.machines.push_back(machine);
    }
    for (std::int32_t port = 0; port < 3 * count; ++port) c.gb_per_s.push_back(10.0 * (1 + random.below(4)));
    if (c.machines.empty()) c.machines.push_back(0);
    for (std::size_t i = c.machines.size(); i > 1; --i)
        std::swap(c.machines[i - 1],
                  c.machines[static_cast<std::size_t>(random.below(static_cast<std::int32_t>(i)))]);
    for (std::int32_t kind = 0; kind < 3; ++kind)
        c.usable.push_back(static_cast<std::uint8_t>(1 + random.below(15)));
    for (std::size_t i = 0; i < c.machines.size(); ++i) {
        c.kind_of.push_back(random.below(3));
        c.sizes.push_back(random.below(static_cast<std::int32_t>(c.usable_of(i).size()) + 1));
    }
    for (std::int32_t level = random.below(3); level > 0; --level) {
        auto& codes = c.codes.emplace_back();
        for (std::int32_t machine = 0; machine < count; ++machine) codes.push_back(random.below(3 * level));
    }
    return c;
}

// The numbers of an offer's domains, the outermost first, then its machine.
std::vector<std::int64_t> path_of(const Case& c, std::size_t offer) {
    std::vector<std::int64_t> found;
    for (const auto& codes : c.codes) found.push_back(codes[static_cast<std::size_t>(c.machines[offer])]);
    found.push_back(c.machines[offer]);
    return found;
}

// The tasks in each domain, by the domains' paths.
std::vector<std::vector<std::int64_t>> tasks_of(const Case& c, std::int32_t most) {
    std::vector<std::vector<std::int64_t>> found;
    for (std::size_t depth = 0; depth <= c.codes.size() + 1; ++depth) {
        std::map<std::vector<std::int64_t>, std::int64_t> tasks;
        for (std::size_t i = 0; i < c.machines.size(); ++i) {
            auto path = path_of(c, i);
            path.resize(depth);
            tasks[path] += std::min(most, c.sizes[i]);
        }
        auto& row = found.emplace_back();
        for (const auto& [_, sum] : tasks) row.push_back(sum);
    }
    return found;
}

// The largest channels x slowest channel of all choices of domains with room for so many tasks, and at least
// a task of each for every channel.
double channels_by_choice(const Case& c, const GangRoom& room, std::int64_t size) {
    std::map<std::int32_t, std::pair<std::int64_t, std::map<std::int32_t, double>>> domains;
    for (std::size_t i = 0; i < c.machines.size(); ++i) {
        auto& [tasks, adapters] = domains[c.machines[i] / 2];
        tasks += std::min(100, c.sizes[i]);
        for (const std::int32_t gpu : c.usable_of(i)) {
            const auto place = static_cast<std::size_t>(gpu);
            if (c.adapter[place] < 0) continue;
            double& speed = adapters[c.adapter[place]];
            speed = std::max(speed, c.way_out[place]);
        }
    }
    double best = 0.0;
    for (std::uint32_t chosen = 1; chosen < 1U << domains.size(); ++chosen) {
        for (const double speed : {10.0, 20.0, 30.0}) {
            std::int64_t tasks = 0, fewest = size / std::max(2, std::popcount(chosen));  // tasks of each
            std::uint32_t bit = 1;
            for (const auto& [_, one] : domains) {
                if ((chosen & bit) != 0) {
                    tasks += one.first;
                    const auto adapters = std::ranges::count_if(
                        one.second, [&](const auto& own) { return own.second >= speed; });
                    fewest = std::min({fewest, one.first, static_cast<std::int64_t>(adapters)});
                }
                bit *= 2;
            }
            if (tasks >= size) best = std::max(best, speed * static_cast<double>(fewest));
        }
    }
    CHECK(domains.size() == room.ring_tasks.size());
    return best;
}

}  // namespace

TEST(a_tree_has_the_domains_and_places_of_its_machines) {
    topoplace::Random random(3);
    for (std::int32_t i = 0; i < check::rounds(2000); ++i) {
        const Case c = random_case(random);
        CHECK(!decide::check(c.params()));
        const GangMachines machines(c.params());
        CHECK(!decide::check(c.offers(), machines) && !decide::check(c.levels(), machines));
        const GangTree tree = gang_tree(machines, c.offers(), c.levels());
        const std::size_t leaves = c.machines.size();
        std::vector<std::vector<std::int64_t>> paths;
        for (const std::int32_t offer : tree.order)
            paths.push_back(path_of(c, static_cast<std::size_t>(offer)));
        CHECK(std::ranges::is_sorted(paths));
        CHECK_EQ((std::set(tree.order.begin(), tree.order.end()).size()), leaves);
        CHECK_EQ(tree.level_ends.size(), c.codes.size() + 2);
        std::int64_t begin = 0;
        for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
            // Up from the leaf: its domain of each depth begins with the first leaf of the same path.
            auto domain = tree.parent.size() - leaves + leaf;
            for (std::size_t depth = c.codes.size() + 1; depth > 0; --depth) {
                auto path = paths[leaf], first = paths[static_cast<std::size_t>(tree.first_leaf[domain])];
                path.resize(depth);
                first.resize(depth);
                CHECK(path == first);
                domain = static_cast<std::size_t>(tree.parent[domain]);
            }
            CHECK_EQ(domain, 0U);
            const auto offer = static_cast<std::size_t>(tree.order[leaf]);
            auto gpus = c.usable_of(offer);
            gpus.resize(static_cast<std::size_t>(c.sizes[offer]));
            CHECK_EQ(tree.place_ends[leaf] - begin, c.sizes[offer]);
            CHECK(std::ranges::equal(
                gpus, std::span(tree.places).subspan(static_cast<std::size_t>(begin), gpus.size())));
            begin = tree.place_ends[leaf];
        }
    }
}

TEST(rooms_are_those_of_all_choices) {
    topoplace::Random random(4);
    for (std::int32_t i = 0; i < check::rounds(2000); ++i) {
        const Case c = random_case(random);
        const GangMachines machines(c.params());
        const std::int32_t most = 1 + random.below(4);
        CHECK(gang_room(machines, c.offers(), c.levels(), most).tasks == tasks_of(c, most));
        const GangRoom room = gang_room(machines, c.offers(), c.levels(), 100);
        double of_adapters = 0.0;
        for (std::int32_t domain = 0; domain < 6; ++domain) {
            std::set<std::int32_t> adapters;
            double sum = 0.0;
            for (std::size_t offer = 0; offer < c.machines.size(); ++offer) {
                if (c.machines[offer] / 2 != domain) continue;
                for (const std::int32_t gpu : c.usable_of(offer)) {
                    const std::int32_t adapter = c.adapter[static_cast<std::size_t>(gpu)];
                    if (adapter >= 0 && adapters.insert(adapter).second)
                        sum += c.gb_per_s[static_cast<std::size_t>(adapter)];
                }
            }
            of_adapters = std::max(of_adapters, sum);
        }
        CHECK_EQ(most_of_adapters(room), of_adapters);
        for (const std::int64_t size : {2, 3, 5, 8, 16})
            CHECK_EQ(most_of_channels(room, size, 0.0), channels_by_choice(c, room, size));
    }
}

TEST(groups_fit_one_by_one) {
    CHECK_EQ(groups_that_fit({}, 2), 0);
    CHECK_EQ(groups_that_fit({5, 4, 1}, 2), 4);
}

TEST(domains_that_share_a_ring_have_a_task_for_each_channel) {
    GangRoom room;
    for (std::int32_t owner = 0; owner < 5; ++owner) {
        room.ring_tasks.push_back(5);
        for (int i = 0; i < 5; ++i) room.adapters.push_back({owner, 10.0, 10.0});
    }
    CHECK_EQ(most_of_channels(room, 25, 0.0), 50.0);
    CHECK_EQ(most_of_channels(room, 24, 0.0), 40.0);  // four of 5 are too few, and five have 4 in one
    CHECK_EQ(most_of_channels(room, 26, 0.0), 0.0);
    CHECK_EQ(most_of_channels(room, 3, 0.0), 10.0);
}

TEST(a_relay_has_the_way_out_of_all) {
    GangRoom room{.ring_tasks = {4, 4}, .adapters = {{0, 10.0, 10.0}, {0, 10.0, 5.0}, {1, 10.0, 10.0}}};
    CHECK_EQ(most_of_channels(room, 8, 0.0), 10.0);
    CHECK_EQ(most_of_channels(room, 4, 7.0), 14.0);
}

TEST(what_is_out_of_range_is_named) {
    topoplace::Random random(5);
    const Case good = random_case(random);
    const GangMachines machines(good.params());
    const auto fault_of = [&](auto change) {
        Case c = good;
        change(c);
        if (auto fault = decide::check(c.params())) return *fault;
        if (auto fault = decide::check(c.offers(), machines)) return *fault;
        return decide::check(c.levels(), machines).value_or("");
    };
    CHECK_EQ(fault_of([](Case&) {}), "");
    CHECK_EQ(fault_of([](Case& c) { c.ends[0] = 0; }), "gpu_ends[0] = 0: a machine without GPUs");
    CHECK_EQ(fault_of([](Case& c) { c.gpus[1] = 0; }), "gpus[1] = 0: listed twice");
    CHECK_EQ(fault_of([](Case& c) { c.domain[1] = -1; }), "domain[1] = -1: out of range");
    CHECK_EQ(fault_of([](Case& c) { c.adapter[1] = 999; }), "adapter[1] = 999: out of range");
    CHECK_EQ(fault_of([](Case& c) { c.way_out[0] = -1.0; }), "way_out[0] = -1.000000: not in 0..1e18");
    CHECK_EQ(fault_of([](Case& c) { c.machines[0] = 99; }), "machines[0] = 99: out of range");
    CHECK_EQ(fault_of([](Case& c) { c.kind_of[0] = 3; }), "kind_of[0] = 3: out of range");
    CHECK_EQ(fault_of([](Case& c) { c.sizes[0] = 9; }),
             "sizes[0] = 9: not a number of GPUs that its kind offers");
    CHECK_EQ(fault_of([](Case& c) { c.usable = {255, 255, 255}; }),
             "kind_of[0] = " + std::to_string(good.kind_of[0]) + ": offers more GPUs than the machine has");
    CHECK(fault_of([](Case& c) { c.codes.push_back({1}); }).starts_with("codes has 1 entries, not "));
}
