// Sets of a machine's GPUs against all sets and orders, and sets of equal rings against their rates one by
// one.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "check.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/condition_sets.hpp"
#include "topoplace/exact_sum.hpp"
#include "topoplace/machine_sets.hpp"

namespace collective = topoplace::collective;
namespace decide = topoplace::decide;
using collective::GpuSet;
using collective::RatedSets;
using decide::Gpus;
namespace ports = topoplace::ports;
namespace traffic = topoplace::traffic;
using oracle::Collectives;
using oracle::Fabric;
using traffic::Kind;

namespace {

std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

Gpus members(GpuSet set) {
    Gpus gpus;
    for (; set != 0; set &= set - 1) gpus.push_back(std::countr_zero(set));
    return gpus;
}

GpuSet set_of(const Gpus& gpus) {
    GpuSet set = 0;
    for (const auto gpu : gpus) set |= GpuSet{1} << gpu;
    return set;
}

// One machine, whose rings are bounded by nothing.
struct Case {
    Fabric fabric;
    std::int32_t size;
    std::vector<std::int32_t> far, socket;
    std::vector<double> degraded, to_gpus, to_others;
    std::vector<Gpus> parts;
    std::unique_ptr<RatedSets> rated;
    std::unique_ptr<decide::Machine> machine;

    explicit Case(topoplace::Random& random) : fabric(oracle::random_fabric(random, 1, 6)) {
        size = static_cast<std::int32_t>(fabric.machine.size());
        std::ranges::fill(fabric.reduced, 0.0);  // which sets of equal rings are faster, rates do not tell
        fabric.make();
        far.assign(at(size * size), 0);
        for (std::int32_t u = 0; u < size; ++u) {
            for (std::int32_t v = 0; v < u; ++v)
                far[at(u * size + v)] = far[at(v * size + u)] = random.below(3);
            socket.push_back(random.below(2));
            degraded.push_back(random.below(4) == 0 ? 0.25 : 0.0);
        }
        if (size > 2) parts = {{0, 1}, {1, 2}};
        // Rates are of machines of six.
        const auto n = at(fabric.rates->num_terminals());
        to_gpus.assign(n * n, 1e9);
        to_others.assign(n, 1e9);
        rated = std::make_unique<RatedSets>(
            collective::RatedSetsParams{fabric.rates.get(), false, to_gpus, to_others});
        const bool are_rated = fabric.rates_of[0] >= 0;
        machine = std::make_unique<decide::Machine>(
            decide::MachineParams{far, socket, fabric.near, degraded, parts, false,
                                  are_rated ? rated.get() : nullptr, fabric.made.get()});
    }
};

double measured(const Case& one, const Collectives& job, const Gpus& gpus) {
    const traffic::JobFlows flows = traffic::flows_of(*one.fabric.made, job.view(), gpus, false);
    double sum = 0.0;
    for (const auto& phase : ports::phase_times(*one.fabric.ports, flows.phase_ends, flows.flows()))
        sum += phase.seconds;
    return sum;
}

// Of a set: what the library plans for one ring, if it plans any; else the best order of sends.
double seconds_of(const Case& one, const Collectives& job, bool is_planned, Gpus gpus) {
    if (is_planned) return job.gigabytes[0] / one.rated->gb_per_s(set_of(gpus));
    double best = std::numeric_limits<double>::infinity();
    do {
        best = std::min(best, measured(one, job, gpus));
    } while (std::ranges::next_permutation(gpus).found);
    return best;
}

Collectives random_job(topoplace::Random& random, std::int32_t tasks, bool is_ring) {
    Collectives job;
    Gpus all(at(tasks));
    std::iota(all.begin(), all.end(), 0);
    if (is_ring) {
        job.add(random.below(2) == 0 ? Kind::kReduce : Kind::kRing, all, 1.0 + random.below(3));
    } else {
        for (std::int32_t i = 1; i < tasks; ++i) job.add(Kind::kSends, {i - 1, i}, 1.0 + random.below(3));
    }
    job.end_phase();
    return job;
}

std::array<double, 3> nearness(const Case& one, const Gpus& gpus) {
    std::array<double, 3> found{};
    for (const auto u : gpus) {
        for (const auto v : gpus) {
            const double far = one.far[at(u * one.size + v)];
            found[0] = std::max(found[0], far);
            found[1] += far;
            found[2] += one.socket[at(u)] != one.socket[at(v)] ? 1.0 : 0.0;
        }
    }
    return found;
}

topoplace::MachineLayout three_machines(std::int32_t size) {
    topoplace::MachineLayout layout{{}, {0, 0, 0}, {Gpus(at(size), 0)}};
    for (std::int32_t machine = 0; machine < 3; ++machine) {
        layout.gpus_of.emplace_back(at(size));
        std::iota(layout.gpus_of.back().begin(), layout.gpus_of.back().end(), machine * size);
    }
    return layout;
}

// What a job asks for on a machine in a condition; at most one region has GPUs for it.
std::optional<decide::SetParams> asked_plainly(const decide::TemplateParams& own,
                                               const decide::JobParams& job, std::int32_t share,
                                               const topoplace::MachineConditions::Condition& condition) {
    const GpuSet free = condition.free[0];
    GpuSet able = free;
    for (std::size_t gpu = 0; gpu < condition.left.size(); ++gpu)
        able |= GpuSet{condition.left[gpu] >= share} << gpu;
    const GpuSet usable = able & own.suitable[0];
    if (std::popcount(usable) < job.size) return std::nullopt;
    decide::SetParams asked{
        .machine = own.machine, .job = job, .are_fixed = own.are_fixed, .left = condition.left};
    for (std::size_t gpu = 0; gpu < own.machine->num_gpus(); ++gpu)
        asked.free.push_back((free >> gpu & 1) != 0);
    const GpuSet region = own.regions.empty() ? usable : set_of(own.regions[0]), inside = region & usable;
    const bool is_whole = inside == region && std::popcount(region) == job.size;
    if (own.are_fixed ? is_whole : std::popcount(inside) >= job.size) asked.regions = {members(inside)};
    return asked;
}

bool are_equal(const decide::SetOption& one, const decide::SetOption& other) {
    return one.gpus == other.gpus && one.order == other.order && one.seconds == other.seconds;
}

}  // namespace

TEST(the_first_set_is_the_fastest_and_nearest_of_all) {
    topoplace::Random random(5);
    int with_ties = 0, with_rings = 0;
    for (int round = 0; round < 600; ++round) {
        const Case one(random);
        const bool is_ring = random.below(2) == 0;
        const std::int32_t tasks = 1 + random.below(std::min(4, one.size));
        const Collectives job = random_job(random, tasks, is_ring);
        decide::SetParams params{.machine = one.machine.get(), .job = {job.view(), tasks, tasks > 1}};
        params.free.assign(at(one.size), true);
        params.regions.emplace_back(at(one.size));
        std::iota(params.regions[0].begin(), params.regions[0].end(), 0);
        if (random.below(3) == 0) params.required = {random.below(one.size)};
        const decide::SetResult found = decide::rank_sets(params);
        CHECK(found.complete && found.all_compared);
        CHECK(std::ranges::is_sorted(found.options, {}, &decide::SetOption::order));
        std::vector<GpuSet> sets = collective::sets_of(params.regions[0], at(tasks));
        std::erase_if(sets, [&](GpuSet set) { return (set_of(params.required) & ~set) != 0; });
        const bool is_planned =
            is_ring && one.machine->rated != nullptr &&
            std::ranges::any_of(sets, [&](GpuSet set) { return one.rated->gb_per_s(set) > 0.0; });
        std::vector<std::pair<double, std::array<double, 3>>> all;
        for (const GpuSet set : sets) {
            const double seconds = tasks > 1 ? seconds_of(one, job, is_planned, members(set)) : 0.0;
            if (!std::isinf(seconds))
                all.emplace_back(decide::grade(seconds, params.slack), nearness(one, members(set)));
        }
        CHECK_EQ(found.options.empty(), all.empty());
        if (all.empty()) continue;
        const decide::SetOption& first = found.options.front();
        Gpus sorted = first.gpus;
        std::ranges::sort(sorted);
        CHECK(std::ranges::includes(sorted, params.required));
        const auto best = *std::ranges::min_element(all);
        CHECK_EQ(first.order[0], best.first);
        if (tasks > 1) CHECK(nearness(one, sorted) == best.second);
        with_ties += std::ranges::count(all, best) > 1 ? 1 : 0;
        with_rings += is_planned ? 1 : 0;
    }
    CHECK(with_ties > 50);
    CHECK(with_rings > 50);
}

TEST(sets_in_a_condition_are_those_of_its_free_gpus) {
    topoplace::Random random(12);
    int with_room = 0, shared = 0;
    for (int round = 0; round < 200; ++round) {
        const Case one(random);
        if (one.size < 2) continue;
        const std::int32_t tasks = 2 + random.below(std::min(3, one.size - 1));
        const Collectives job = random_job(random, tasks, random.below(2) == 0);
        topoplace::ClusterState state(3 * one.size,
                                      {.first_gpu = {0, one.size, 2 * one.size}, .capacity = {3, {8, 8, 0}}});
        const bool takes_parts = random.below(2) == 0;
        topoplace::MachineConditions conditions(state, three_machines(one.size),
                                                {.jobs = false, .shares = takes_parts});
        decide::TemplateParams own{.machine = one.machine.get()};
        own.suitable = {
            static_cast<std::uint64_t>(random.below(1 << one.size) | random.below(1 << one.size))};
        if (random.below(2) == 0) {
            own.regions.emplace_back(at(1 + random.below(one.size)));
            std::iota(own.regions[0].begin(), own.regions[0].end(), 0);
            own.are_fixed = random.below(2) == 0;
        }
        const decide::ConditionSetsParams params{
            .templates = {own}, .job = {job.view(), tasks, true, takes_parts}, .share = 500};
        CHECK_EQ(decide::check(params, conditions).value_or(""), "");
        decide::ConditionSets sets(conditions, params);
        decide::KnownOrders known;
        for (std::int32_t gpu = 0; gpu < 3 * one.size; ++gpu)
            if (random.below(5) == 0) state.drain(gpu);
        for (std::int32_t gpu = 0; gpu < 3 * one.size; ++gpu)
            if (random.below(3) == 0)
                state.allocate(std::to_string(gpu), std::span(&gpu, 1), {}, {}, 0,
                               {.share = 1 + random.below(1000)});
        conditions.refresh();
        for (std::int32_t machine = 0; machine < 3; ++machine) {
            const std::int32_t condition = conditions.condition_of(machine);
            auto asked = sets.asked(condition);
            const auto plain = asked_plainly(own, params.job, params.share, conditions.condition(condition));
            CHECK_EQ(asked.has_value(), plain.has_value());
            if (!asked) continue;
            asked->known = &known;
            const decide::SetResult found = decide::rank_sets(*asked), expected = decide::rank_sets(*plain);
            CHECK_EQ(found.all_compared, expected.all_compared);
            CHECK(std::ranges::equal(found.options, expected.options, are_equal));
            const auto* const best = sets.best(condition, {}, {});
            CHECK_EQ(best->option.has_value(), !found.options.empty());
            if (best->option) CHECK(are_equal(*best->option, found.options.front()));
            with_room += found.options.empty() ? 0 : 1;
            shared += takes_parts && !found.options.empty() ? 1 : 0;
        }
    }
    CHECK(with_room > 100);
    CHECK(shared > 50);
}

TEST(condition_sets_name_what_is_out_of_range) {
    const Fabric fabric = oracle::equal_machines(1, 3);
    const std::vector<std::int32_t> far(9, 0), row(3, 0);
    const std::vector<double> degraded(3, 0.0);
    const decide::Machine machine({far, row, row, degraded, {}, false, nullptr, fabric.made.get()});
    const topoplace::ClusterState state(3, {.first_gpu = {0}, .capacity = {{8, 8, 0}}});
    const topoplace::MachineConditions conditions(state, {{{0, 1, 2}}, {0}, {{0, 0, 0}}}, {});
    Collectives job;
    job.add(Kind::kSends, {0, 1}, 1.0);
    job.end_phase();
    const auto fault_of = [&](auto change) {
        decide::ConditionSetsParams params{.templates = {{&machine, {7}, {{0, 2}}, false}},
                                           .job = {job.view(), 2, true}};
        change(params);
        return decide::check(params, conditions).value_or("");
    };
    CHECK_EQ(fault_of([](auto&) {}), "");
    CHECK_EQ(fault_of([](auto& p) { p.templates.clear(); }), "templates has 0 entries, not 1");
    CHECK_EQ(fault_of([](auto& p) { p.templates[0].machine = nullptr; }), "machine is missing");
    CHECK_EQ(fault_of([](auto& p) { p.templates[0].regions = {{3}}; }), "regions[0] = 3: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.templates[0].regions = {{2, 0}}; }),
             "regions has one that does not ascend");
    CHECK_EQ(fault_of([](auto& p) { p.job.size = 0; }), "size = 0: below 1");
    CHECK_EQ(fault_of([](auto& p) { p.job.size = 1; }), "tasks[1] = 1: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.job.takes_parts = true; }), "conditions do not see shares of GPUs");
    CHECK_EQ(fault_of([](auto& p) { p.share = 0; }), "share = 0: below 1");
    CHECK_EQ(fault_of([](auto& p) { p.alternatives = 0; }), "alternatives = 0: below 1");
    CHECK(fault_of([](auto& p) { p.slack = 0.0; }).starts_with("slack = "));
}

TEST(the_fastest_sets_are_rated_and_slower_ones_left_out) {
    topoplace::Random random(6);
    for (int round = 0; round < 200; ++round) {
        const Case one(random);
        const std::int32_t n = one.fabric.rates->num_terminals();
        Gpus gpus(at(n));
        std::iota(gpus.begin(), gpus.end(), 0);
        const auto sets = collective::sets_of(gpus, 2 + at(random.below(n - 1)));
        const std::size_t count = 1 + at(random.below(3));
        topoplace::WorkMeter meter{topoplace::StopCondition{}};
        const auto found = one.rated->leading(sets, count, 0.9, meter);
        std::vector<double> rates;
        for (const GpuSet set : sets) rates.push_back(one.rated->gb_per_s(set));
        std::vector<double> sorted = rates;
        std::ranges::sort(sorted, std::greater{});
        const double floor = 0.9 * sorted[std::min(count, sorted.size()) - 1];
        for (std::size_t i = 0; i < sets.size(); ++i) {
            if (rates[i] >= floor) CHECK_EQ(found[i], rates[i]);
            CHECK(found[i] == rates[i] || found[i] == -1.0);
        }
        const GpuSet free = GpuSet(random.below(1 << n)), taken = GpuSet(random.below(1 << n));
        double left = 0.0;
        for (std::size_t size = 2; size <= gpus.size(); ++size) {
            double best = 0.0;
            for (const GpuSet set : collective::sets_of(gpus, size))
                if ((set & ~(free & ~taken)) == 0) best = std::max(best, one.rated->gb_per_s(set));
            left += best;
        }
        CHECK(std::abs(one.rated->left(free, taken) - left) < 1e-5);
    }
}

TEST(a_search_without_time_has_no_answer) {
    topoplace::Random random(7);
    for (int round = 0; round < 20; ++round) {
        const Case one(random);
        if (one.size < 2) continue;
        const Collectives job = random_job(random, 2, false);
        decide::SetParams params{.machine = one.machine.get(), .job = {job.view(), 2, true}};
        params.free.assign(at(one.size), true);
        params.regions.emplace_back(at(one.size));
        std::iota(params.regions[0].begin(), params.regions[0].end(), 0);
        params.stop.when = {};
        const decide::SetResult found = decide::rank_sets(params);
        CHECK(!found.complete && found.options.empty() && !found.all_compared);
    }
}

TEST(a_job_without_tasks_has_no_set) {
    topoplace::Random random(8);
    const Case one(random);
    decide::SetParams params{.machine = one.machine.get(), .regions = {{0}}};
    params.free.assign(at(one.size), true);
    CHECK(!decide::check(params));
    CHECK(decide::rank_sets(params).options.empty());
    topoplace::WorkMeter meter{topoplace::StopCondition{}};
    CHECK_EQ(decide::seconds_of_any(*one.machine, params.job, meter), 0.0);
}

TEST(a_machine_names_what_is_out_of_range) {
    const Fabric fabric = oracle::equal_machines(1, 3);
    const std::vector<std::int32_t> far(9, 0), row(3, 0);
    const std::vector<double> degraded(3, 0.0), speeds(64, 1.0);
    topoplace::Random random(9);
    const Fabric rates = oracle::random_fabric(random, 1, 6);
    const RatedSets rated({rates.rates.get(), false, speeds, speeds});
    const auto fault_of = [&](auto change) {
        decide::MachineParams params{far,           row,   row,     degraded,
                                     {{0, 2}, {1}}, false, nullptr, fabric.made.get()};
        change(params);
        return decide::check(params).value_or("");
    };
    CHECK_EQ(fault_of([](auto&) {}), "");
    CHECK_EQ(fault_of([&](auto& p) { p.far = row; }), "far has 3 entries, not 9");
    CHECK_EQ(fault_of([&](auto& p) { p.near = far; }), "near has 9 entries, not 3");
    CHECK_EQ(fault_of([](auto& p) { p.degraded = {}; }), "degraded has 0 entries, not 3");
    CHECK_EQ(fault_of([](auto& p) { p.parts = {{0}, {}}; }), "parts has one without GPUs");
    CHECK_EQ(fault_of([](auto& p) { p.parts = {{0, 3}}; }), "parts[1] = 3: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.parts = {{1, 1}}; }), "parts[1] = 1: does not ascend");
    CHECK_EQ(fault_of([&](auto& p) { p.rated = &rated; }), "rated has 6 entries, not 3");
    CHECK_EQ(fault_of([](auto& p) { p.network = nullptr; }), "network is missing");
    const Fabric larger = oracle::equal_machines(2, 3);
    CHECK_EQ(fault_of([&](auto& p) { p.network = larger.made.get(); }), "network has 6 entries, not 3");
}

TEST(sets_name_what_is_out_of_range) {
    const Fabric fabric = oracle::equal_machines(1, 3);
    const std::vector<std::int32_t> far(9, 0), row(3, 0);
    const std::vector<double> degraded(3, 0.0);
    const decide::Machine machine({far, row, row, degraded, {}, false, nullptr, fabric.made.get()});
    Collectives job;
    job.add(Kind::kSends, {0, 1}, 1.0);
    job.end_phase();
    const auto fault_of = [&](auto change) {
        decide::SetParams params{
            .machine = &machine, .job = {job.view(), 2, true}, .regions = {{0, 1, 2}, {0, 2}}};
        params.required = {1};
        params.free.assign(3, true);
        change(params);
        return decide::check(params).value_or("");
    };
    CHECK_EQ(fault_of([](auto&) {}), "");
    CHECK_EQ(fault_of([](auto& p) { p.machine = nullptr; }), "machine is missing");
    CHECK_EQ(fault_of([](auto& p) { p.job.size = 4; }), "size = 4: not in 0..3");
    CHECK_EQ(fault_of([](auto& p) { p.job.size = -1; }), "size = -1: not in 0..3");
    CHECK_EQ(fault_of([](auto& p) { p.job.size = 1; }), "tasks[1] = 1: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.regions[1] = {-1}; }), "regions[0] = -1: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.regions[1] = {2, 0}; }), "regions[1] = 0: does not ascend");
    CHECK_EQ(fault_of([](auto& p) { p.are_fixed = true; }), "regions has 3 entries, not 2");
    CHECK_EQ(fault_of([](auto& p) { p.required = {3}; }), "required[0] = 3: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.required = {0, 0}; }), "required[1] = 0: does not ascend");
    CHECK_EQ(fault_of([](auto& p) { p.required = {0, 1, 2}; }), "required has 3 GPUs of a job of 2");
    CHECK_EQ(fault_of([](auto& p) { p.free.pop_back(); }), "free has 2 entries, not 3");
    CHECK_EQ(fault_of([](auto& p) { p.left = {1000}; }), "left has 1 entries, not 3");
    CHECK_EQ(fault_of([](auto& p) { p.job.takes_parts = true; }), "left has 0 entries, not 3");
    CHECK_EQ(fault_of([](auto& p) { p.alternatives = 0; }), "alternatives = 0: below 1");
    for (const double slack : {0.0, -1.0, HUGE_VAL, std::nan("")})
        CHECK(fault_of([&](auto& p) { p.slack = slack; }).starts_with("slack = "));
}

TEST(sets_are_counted_and_listed_in_order) {
    CHECK_EQ(collective::num_sets(16, 8), 12870U);
    CHECK_EQ(collective::num_sets(3, 4), 0U);
    CHECK_EQ(collective::num_sets(200, 100), std::uint64_t{1} << 62);
    const Gpus gpus{0, 2, 5, 7};
    CHECK(collective::sets_of(gpus, 2) == std::vector<GpuSet>({5, 33, 129, 36, 132, 160}));
    CHECK(collective::sets_of(gpus, 5).empty());
}

TEST(a_sum_is_rounded_once) {
    CHECK_EQ(topoplace::exact_sum(std::vector<double>(10, 0.1)), 1.0);
    CHECK_EQ(topoplace::exact_sum(std::vector{1e16, 1.0, 1.0}), 1e16 + 2.0);
    CHECK_EQ(topoplace::exact_sum(std::vector{1e16, 1.0, 1e-16}), 1e16 + 2.0);
    CHECK_EQ(topoplace::exact_sum(std::vector<double>{}), 0.0);
    CHECK(std::isinf(topoplace::exact_sum(std::vector{1.0, HUGE_VAL})));
}
