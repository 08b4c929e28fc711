#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "check.hpp"
#include "topoplace/cluster_state.hpp"
#include "topoplace/free_offers.hpp"
#include "topoplace/machine_conditions.hpp"
#include "topoplace/machine_ranking.hpp"
#include "topoplace/random.hpp"

using topoplace::ChangeLog;
using topoplace::ClusterState;
using topoplace::MachineConditions;
using topoplace::MachineLayout;
using topoplace::MachineRanking;
using topoplace::Random;

namespace {

constexpr std::int32_t kMachines = 6;
constexpr std::int32_t kGpus = 4;  // of each machine

std::size_t index_of(std::int32_t number) { return static_cast<std::size_t>(number); }

// Machines of two templates, whose GPUs are not numbered one machine after the other.
MachineLayout layout() {
    MachineLayout made{{}, {}, {{0, 0, 1, 1}, {0, 0, 0, 0}}};
    for (std::int32_t machine = 0; machine < kMachines; ++machine) {
        made.template_of.push_back(machine % 2);
        made.gpus_of.emplace_back();
        for (std::int32_t i = 0; i < kGpus; ++i) made.gpus_of.back().push_back(i * kMachines + machine);
    }
    return made;
}

topoplace::Machines machines() {
    topoplace::Machines made;
    for (std::int32_t machine = 0; machine < kMachines; ++machine) {
        made.first_gpu.push_back(machine);
        made.capacity.push_back({8, 8, 0});
    }
    return made;
}

// Changes the state at random: allocates, releases, drains, undrains, or does some of it and takes it back.
void change(ClusterState& state, Random& rng, std::int32_t& next) {
    const auto gpu = rng.below(kMachines * kGpus);
    switch (rng.below(6)) {
        case 0:
            state.drain(gpu);
            break;
        case 1:
            state.undrain(gpu);
            break;
        case 2: {
            const std::vector<const ClusterState::Job*> jobs = state.jobs();
            if (!jobs.empty()) {
                const std::string job =
                    jobs[static_cast<std::size_t>(rng.below(static_cast<std::int32_t>(jobs.size())))]->first;
                static_cast<void>(state.release(job));
            }
            break;
        }
        case 3: {
            const auto mark = state.begin();
            for (int i = 0; i < 3; ++i) change(state, rng, next);
            state.rollback(mark);
            break;
        }
        default: {
            const std::array<std::int32_t, 2> gpus{
                gpu, static_cast<std::int32_t>((gpu + 1) % (kMachines * kGpus))};
            const topoplace::HostNeeds hosts{{{gpu % kMachines, 3, 1}}, {}};
            static_cast<void>(state.allocate("job" + std::to_string(next++), gpus, hosts, {}, rng.below(3)));
        }
    }
}

// What the rule of these tests says of a condition: a key, or nothing.
std::optional<MachineRanking::Key> key_of(const MachineConditions::Condition& condition) {
    if (condition.free.at(0) == 0) return std::nullopt;
    return MachineRanking::Key{static_cast<double>(condition.free[0] % 3),
                               static_cast<double>(condition.jobs.size())};
}

// Whether what a rule sees of a machine is in use.
bool is_used(const ClusterState& state, std::int32_t machine, const topoplace::Sight& sight) {
    const bool runs = state.hosts().num_processes()[static_cast<std::size_t>(machine)] > 0;
    bool holds = false;
    for (std::int32_t i = 0; i < kGpus; ++i) holds |= state.owner(i * kMachines + machine) != nullptr;
    return (sight.gpu_use && holds) || (sight.processes && runs);
}

// Checks the first `count` machines up to the key `last` against the hosting machines by key.
void check_order(const MachineRanking& ranking,
                 const std::map<MachineRanking::Key, std::vector<std::int32_t>>& hosting,
                 const MachineRanking::Key& last, std::int32_t count, const topoplace::HostAmounts& needs) {
    std::vector<std::int32_t> expected;
    for (const auto& [key, group] : hosting) {
        if (key <= last) expected.insert(expected.end(), group.begin(), group.end());
    }
    std::vector<std::int32_t> ascending = expected;
    std::sort(ascending.begin(), ascending.end());
    CHECK(ranking.up_to(last, needs) == ascending);
    expected.resize(std::min(expected.size(), static_cast<std::size_t>(count)));
    std::vector<std::int32_t> found;
    for (const auto& ranked : ranking.in_order(count, needs, last)) found.push_back(ranked.machine);
    CHECK(found == expected);
}

}  // namespace

TEST(a_log_forgets_and_says_so) {
    ChangeLog log(4);
    for (std::int32_t i = 0; i < 5; ++i) log.add(i);
    CHECK_EQ(log.end(), 5u);
    CHECK(!log.since(0));
    const auto last = log.since(4);
    CHECK(last && last->size() == 1 && last->front() == 4);
    CHECK(log.since(5) && log.since(5)->empty());
}

TEST(conditions_follow_the_state_as_if_read_anew) {
    Random rng(7);
    for (int round = 0; round < 60; ++round) {
        ClusterState state(kMachines * kGpus, machines());
        const topoplace::Sight sight{.jobs = rng.below(2) == 0,
                                     .gpu_use = rng.below(2) == 0,
                                     .processes = rng.below(2) == 0,
                                     .machine = rng.below(4) == 0};
        MachineConditions kept(state, layout(), sight);
        MachineRanking ranking(kept);
        std::int32_t next = 0;
        for (int step = 0; step < 40; ++step) {
            for (std::int32_t i = rng.below(4); i > 0; --i) change(state, rng, next);
            const MachineConditions fresh(state, layout(), sight);
            for (const std::int32_t condition : ranking.unknown())
                ranking.set(condition, key_of(kept.condition(condition)));
            std::map<MachineRanking::Key, std::vector<std::int32_t>> hosting;  // machines by key
            std::map<MachineRanking::Key, std::int64_t> counts;
            const topoplace::HostAmounts needs =
                rng.below(2) == 0 ? topoplace::HostAmounts{} : topoplace::HostAmounts{3, 1};
            for (std::int32_t machine = 0; machine < kMachines; ++machine) {
                const auto& now = fresh.condition(fresh.condition_of(machine));
                CHECK(kept.condition(kept.condition_of(machine)) == now);
                CHECK(kept.machines(kept.condition_of(machine)).contains(machine));
                const auto key = key_of(now);
                if (key) ++counts[*key];
                if (key && fresh.has(machine, needs)) hosting[*key].push_back(machine);
                CHECK_EQ(now.is_used, is_used(state, machine, sight));
            }
            const auto best = ranking.best(needs);
            CHECK_EQ(best.machine, hosting.empty() ? -1 : hosting.begin()->second.front());
            if (best.machine >= 0) CHECK_EQ(best.condition, kept.condition_of(best.machine));
            const auto counted = ranking.counts();
            CHECK(std::map(counted.begin(), counted.end()) == counts);
            const std::int32_t count = rng.below(kMachines + 1);
            check_order(ranking, hosting, {static_cast<double>(rng.below(4)), 1.0}, count, needs);
        }
    }
}

TEST(a_reader_that_was_away_for_long_reads_everything_again) {
    ClusterState state(kMachines * kGpus, machines());
    MachineConditions conditions(state, layout(), {});
    for (int i = 0; i < 3000; ++i) {
        state.drain(0);
        state.undrain(0);
    }
    state.drain(5);
    const auto before = conditions.generation();
    conditions.refresh();
    CHECK(conditions.generation() > before);
    CHECK_EQ(conditions.condition(conditions.condition_of(5)).free[0], 0b1110u);
}

TEST(layouts_that_do_not_fit_are_refused) {
    const ClusterState state(kMachines * kGpus, machines());
    const auto refused = [&state](const MachineLayout& wrong) {
        return MachineConditions::check(wrong, state.num_gpus()).has_value();
    };
    CHECK(!refused(layout()));
    MachineLayout wrong = layout();
    wrong.gpus_of[2].pop_back();
    CHECK(refused(wrong));
    wrong = layout();
    wrong.gpus_of[0][1] = wrong.gpus_of[0][0];
    CHECK(refused(wrong));
    wrong = layout();
    wrong.gpus_of[0][1] = kMachines * kGpus;
    CHECK(refused(wrong));
    wrong = layout();
    wrong.template_of[3] = 2;
    CHECK(refused(wrong));
    wrong = layout();
    wrong.template_of.pop_back();
    CHECK(refused(wrong));
    wrong = layout();
    wrong.socket_of[1][0] = -1;
    CHECK(refused(wrong));
}

TEST(machines_offer_their_free_gpus_that_suit_a_job) {
    Random rng(11);
    for (int round = 0; round < 100; ++round) {
        ClusterState state(kMachines * kGpus, machines());
        MachineConditions conditions(state, layout(), {.jobs = rng.below(2) == 0});
        std::int32_t next = 0;
        for (std::int32_t i = rng.below(20); i > 0; --i) change(state, rng, next);
        const std::vector<MachineConditions::Words> suitable{{index_of(rng.below(16))},
                                                             {index_of(rng.below(16))}};
        const std::int32_t most = 1 + rng.below(kGpus);
        const auto found = topoplace::decide::free_offers(conditions, suitable, most);
        const auto offers = found.view();
        std::size_t next_offer = 0;
        for (std::int32_t machine = 0; machine < kMachines; ++machine) {
            const auto& now = conditions.condition(conditions.condition_of(machine));
            const std::uint64_t usable = now.free[0] & suitable[index_of(machine % 2)][0];
            if (usable == 0) continue;
            CHECK_EQ(offers.machines[next_offer], machine);
            const std::int32_t expected = std::min(std::popcount(usable), most);
            CHECK_EQ(offers.sizes[next_offer], expected);
            std::uint64_t named = 0;
            offers.each_usable(offers.kind_of[next_offer++],
                               [&](std::size_t gpu) { named |= std::uint64_t{1} << gpu; });
            CHECK_EQ(named, usable);
        }
        CHECK_EQ(next_offer, offers.machines.size());
    }
}

namespace {

// Tasks from the first one on, which have the most CPUs, or from the last one, as long as a machine has room.
std::int32_t tasks_one_by_one(const topoplace::HostDemand& job, const topoplace::HostState::Amounts& free,
                              bool from_last) {
    std::int64_t cpus = 0;
    for (std::int64_t i = 0; i < job.num_tasks; ++i) {
        const std::int64_t task = from_last ? job.num_tasks - 1 - i : i;
        cpus += job.cpus / job.num_tasks + (task < job.cpus % job.num_tasks ? 1 : 0);
        if (cpus > free[0] || (i + 1) * job.megabytes > free[1]) return static_cast<std::int32_t>(i);
    }
    return static_cast<std::int32_t>(job.num_tasks);
}

}  // namespace

TEST(offers_are_limited_by_cpus_and_memory) {
    Random rng(12);
    int exact = 0, limited = 0;
    for (int round = 0; round < 200; ++round) {
        std::vector<topoplace::HostState::Amounts> capacity;
        std::vector<std::int32_t> first_gpu;
        for (std::int32_t machine = 0; machine < kMachines; ++machine) {
            capacity.push_back({rng.below(9), rng.below(9), 0});
            first_gpu.push_back(machine * kGpus);
        }
        const ClusterState state(kMachines * kGpus, {.first_gpu = first_gpu, .capacity = capacity});
        MachineConditions conditions(state, layout(), {.jobs = false});
        const std::int32_t tasks = 1 + rng.below(6), cpus = rng.below(3 * tasks), memory = rng.below(3);
        const topoplace::HostDemand job{.num_tasks = tasks,
                                        .cpus = cpus,
                                        .megabytes = memory,
                                        .least_megabytes = memory,
                                        .whole = {cpus, memory * tasks}};
        CHECK(!topoplace::check(job));
        const std::vector<MachineConditions::Words> suitable{{~0ULL}, {~0ULL}};
        const auto found = topoplace::decide::free_offers(conditions, suitable, tasks, &job);
        std::vector<std::int32_t> machines, sizes;
        bool is_exact = true;
        for (std::int32_t machine = 0; machine < kMachines; ++machine) {
            const auto& free = capacity[index_of(machine)];
            const std::int32_t size = std::min(tasks_one_by_one(job, free, false), kGpus);
            is_exact = is_exact && size == std::min(tasks_one_by_one(job, free, true), kGpus);
            limited += size < std::min(tasks, kGpus) ? 1 : 0;
            if (size == 0) continue;
            machines.push_back(machine);
            sizes.push_back(size);
        }
        CHECK(found.machines == machines);
        CHECK(found.sizes == sizes);
        CHECK(is_exact || !found.has_exact_room);
        exact += found.has_exact_room ? 1 : 0;
    }
    CHECK(exact > 20 && exact < 180);
    CHECK(limited > 100);
}

TEST(demands_name_what_is_out_of_range) {
    CHECK_EQ(topoplace::check(topoplace::HostDemand{.num_tasks = 0}).value_or(""),
             "num_tasks = 0: not in 1..2^31 - 1");
    CHECK_EQ(topoplace::check(topoplace::HostDemand{.unit = 0}).value_or(""), "unit = 0: not in 1..2^53");
    CHECK_EQ(topoplace::check(topoplace::HostDemand{.cpus = -1}).value_or(""),
             "an amount of a job is -1: not in 0..2^53");
    CHECK(topoplace::check(topoplace::HostDemand{.megabytes = INT64_MAX}).has_value());
}

TEST(gpus_that_suit_name_what_is_wrong) {
    const ClusterState state(kMachines * kGpus, machines());
    const MachineConditions conditions(state, layout(), {});
    const std::vector<MachineConditions::Words> both(2), one(1);
    CHECK(!topoplace::decide::check_suitable(conditions, both, 1));
    CHECK_EQ(topoplace::decide::check_suitable(conditions, both, 0).value_or(""), "most = 0: below 1");
    CHECK_EQ(topoplace::decide::check_suitable(conditions, one, 1).value_or(""),
             "suitable names GPUs of 1 templates, there are 2");
}
