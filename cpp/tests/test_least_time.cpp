// Decisions about jobs beside every machine's sets, and gangs beside every assignment.
#include <numeric>
#include <optional>
#include <set>

#include "check.hpp"
#include "oracles/gang_clusters.hpp"
#include "topoplace/least_time.hpp"
#include "topoplace/random.hpp"

namespace decide = topoplace::decide;
using decide::Gpus;
using oracle::at;
using topoplace::MachineConditions;
using topoplace::Random;

namespace {

constexpr double kEqual = 1 + 1e-6;
int times_let_go = 0, times_waited = 0;

const topoplace::OtherThreads kOthers{.let_go = []() -> void* { return &++times_let_go; },
                                      .wait = [](void*) { ++times_waited; }};

topoplace::MachineLayout layout_of(const oracle::GangCluster& cluster) {
    topoplace::MachineLayout layout;
    for (std::int32_t machine = 0; machine < cluster.count; ++machine) {
        layout.gpus_of.push_back(cluster.gpus_of(machine));
        layout.template_of.push_back(machine);
        layout.socket_of.push_back(cluster.own[at(machine)]->socket);
    }
    return layout;
}

// A job on a cluster some of whose GPUs are free.
struct Decided {
    oracle::OfferCase c;
    topoplace::ClusterState state;
    MachineConditions conditions;
    decide::ConditionSets sets;
    topoplace::MachineRanking ranking{conditions};

    explicit Decided(Random& random)
        : c(oracle::random_case(random, 8, 5)),
          state(static_cast<std::int32_t>(c.cluster->fabric.machine.size()),
                {.first_gpu = first_gpus(), .capacity = {at(c.cluster->count), {8, 8, 0}}}),
          conditions(state, layout_of(*c.cluster), {.jobs = false}),
          sets(conditions, params()) {
        const std::int32_t share = 1 + random.below(4);
        for (std::int32_t gpu = 0; at(gpu) < c.cluster->fabric.machine.size(); ++gpu)
            if (random.below(share) == 0) state.drain(gpu);
        conditions.refresh();
    }
    Decided(const Decided&) = delete;  // its parts refer to each other
    Decided& operator=(const Decided&) = delete;

    std::int32_t size() const { return static_cast<std::int32_t>(c.size()); }
    decide::LeastTimeParams asked() {
        return {.sets = &sets,
                .ranking = &ranking,
                .topology = c.cluster->topology.get(),
                .levels = c.cluster->levels.get(),
                .most = size(),
                .split = 1.5};
    }
    // The best option of each machine by itself, the best first.
    std::optional<std::pair<decide::SetOption, std::int32_t>> best_machine() const {
        std::optional<std::pair<decide::SetOption, std::int32_t>> best;
        for (std::int32_t machine = 0; machine < c.cluster->count; ++machine) {
            const std::vector<std::uint64_t>& words =
                conditions.condition(conditions.condition_of(machine)).free;
            decide::SetParams params{.machine = c.cluster->own[at(machine)]->made.get(), .job = job()};
            params.free.assign(params.machine->num_gpus(), false);
            params.regions.emplace_back();
            for (std::size_t gpu = 0; gpu < params.free.size(); ++gpu) {
                if (words.empty() || (words[0] >> gpu & 1) == 0) continue;
                params.free[gpu] = true;
                params.regions[0].push_back(static_cast<std::int32_t>(gpu));
            }
            if (params.regions[0].size() < c.size()) continue;
            const decide::SetResult found = decide::rank_sets(params);
            if (found.options.empty()) continue;
            if (!best || found.options[0].order < best->first.order) best = {found.options[0], machine};
        }
        return best;
    }
    std::set<std::int32_t> free() const {
        std::set<std::int32_t> found;
        for (std::int32_t gpu = 0; at(gpu) < c.cluster->fabric.machine.size(); ++gpu)
            if (state.is_free(gpu)) found.insert(gpu);
        return found;
    }

  private:
    decide::JobParams job() const { return {c.job.view(), size(), c.size() > 1}; }
    std::vector<std::int32_t> first_gpus() const {
        std::vector<std::int32_t> found;
        for (std::int32_t machine = 0; machine < c.cluster->count; ++machine)
            found.push_back(c.cluster->gpus_of(machine)[0]);
        return found;
    }
    decide::ConditionSetsParams params() const {
        decide::ConditionSetsParams made{.job = job()};
        for (const auto& own : c.cluster->own) made.templates.push_back({own->made.get(), {~0ULL}});
        return made;
    }
};

}  // namespace

TEST(a_job_gets_the_best_set_of_all_machines) {
    Random random(91);
    int found = 0, split = 0;
    for (int round = 0; round < check::rounds(600); ++round) {
        Decided one(random);
        const decide::LeastTimeParams params = one.asked();
        CHECK_EQ(decide::check(params).value_or(""), "");
        const decide::LeastTime decision(params);
        const auto job = one.c.job.view();
        CHECK_EQ(decision.check(job).value_or(""), "");
        const decide::PlacedJob placed = decision.on_one_machine(job, {}, kOthers);
        const auto expected = one.best_machine();
        CHECK(placed.complete);
        CHECK_EQ(placed.found, expected.has_value());
        if (!expected) continue;
        CHECK_EQ(placed.machine, expected->second);
        const auto numbers = one.c.cluster->gpus_of(placed.machine);
        for (std::size_t i = 0; i < placed.gpus.size(); ++i)
            CHECK_EQ(placed.gpus[i], numbers[at(expected->first.gpus[i])]);
        CHECK_EQ(placed.seconds, expected->first.seconds);
        ++found;
        split += placed.may_be_faster_if_split ? 1 : 0;
    }
    CHECK(found > check::rounds(100));
    CHECK(split > 0);
    CHECK(times_let_go > 0);
    CHECK_EQ(times_let_go, times_waited);
}

TEST(a_gang_gets_free_gpus_in_the_time_that_is_claimed) {
    Random random(92);
    int found = 0, optimal = 0;
    for (int round = 0; round < check::rounds(300); ++round) {
        Decided one(random);
        const decide::LeastTime decision(one.asked());
        const decide::GangJob job{.collectives = one.c.job.view(),
                                  .edges = one.c.edges,
                                  .groups = {.num_tasks = static_cast<std::int32_t>(one.c.size())},
                                  .others = one.c.others.get()};
        CHECK_EQ(decision.check(job).value_or(""), "");
        const decide::PlacedJob placed = decision.on_several(job, {}, {}, {});
        std::set<std::int32_t> free = one.free();
        CHECK(!placed.found || free.size() >= one.c.size());
        if (!placed.found) continue;
        for (const std::int32_t gpu : placed.gpus) CHECK(free.erase(gpu) == 1);
        oracle::OfferCase alone = one.c;
        alone.others = nullptr;
        const double seconds = alone.seconds(placed.gpus);
        CHECK(placed.seconds <= seconds * kEqual && seconds <= placed.seconds * kEqual);
        CHECK(*placed.least <= one.c.seconds(placed.gpus) * kEqual);
        CHECK(!placed.optimal || placed.seconds <= *placed.least * kEqual);
        ++found;
        optimal += placed.optimal ? 1 : 0;
    }
    CHECK(found > check::rounds(50));
    CHECK(optimal > 0);
}

TEST(a_decision_names_what_is_missing_or_out_of_range) {
    Random random(93);
    Decided one(random);
    decide::LeastTimeParams params = one.asked();
    params.split = -1.0;
    CHECK_EQ(decide::check(params).value_or("").substr(0, 5), "split");
    params = one.asked();
    params.sets = nullptr;
    CHECK_EQ(decide::check(params).value_or(""), "sets or their ranking are missing");
    const decide::LeastTime decision(one.asked());
    const std::vector<double> edges{1.0, 0.0, 1.0};
    decide::GangJob wrong{.collectives = one.c.job.view(), .edges = edges};
    CHECK(decision.check(wrong).value_or("").starts_with("tasks has 0 entries"));
    wrong.groups.num_tasks = static_cast<std::int32_t>(one.c.size());
    CHECK(decision.check(wrong).value_or("").starts_with("edges[0] = "));
    CHECK(decision.check(oracle::Collectives{{7}, {0}, {1}, {99}, {1.0}}.view()).has_value());
}

TEST(a_stopped_decision_is_not_complete) {
    Random random(94);
    topoplace::StopCondition stop;
    stop.when = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    int stopped = 0;
    for (int round = 0; round < 50; ++round) {
        Decided one(random);
        const decide::LeastTime decision(one.asked());
        stopped += decision.on_one_machine(one.c.job.view(), stop, {}).complete ? 0 : 1;
    }
    CHECK(stopped > 10);
}
