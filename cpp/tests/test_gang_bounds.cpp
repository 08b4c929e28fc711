// Exchanges of units by their definition, and bounds on the time of gangs beside random placements.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include "check.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/gang_bounds.hpp"
#include "topoplace/random.hpp"

namespace {

namespace collective = topoplace::collective;
namespace decide = topoplace::decide;
namespace ports = topoplace::ports;
namespace traffic = topoplace::traffic;
using namespace decide;
using oracle::Collectives;
using oracle::Fabric;
using oracle::Numbers;

std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

// Some machines in racks, all GPUs of which are free, and a job in units.
struct Case {
    Fabric fabric;
    Collectives job;
    Numbers units, zeros, ones;
    std::int32_t size = 1;
    std::vector<std::int64_t> gpu_ends, racks;
    std::vector<double> way_out, no_share, unbounded;
    std::vector<std::unique_ptr<collective::RatedSets>> rated;
    std::vector<std::unique_ptr<Machine>> made;
    std::unique_ptr<GangMachines> machines;
    std::unique_ptr<GangLimits> limits;
    GangRoom room;
    std::vector<std::int32_t> own_class;

    explicit Case(topoplace::Random& random) : fabric(oracle::random_fabric(random, 1 + random.below(5), 4)) {
        if (fabric.racks_switch) {  // GPUs of several machines then meet in no other rings
            for (double& one : fabric.switched) one = std::max(one, 2.0);
            fabric.make();
        }
        const auto count = static_cast<std::int32_t>(fabric.machine.size());
        size = 1 + random.below(std::min(3, count));
        const std::int32_t tasks = size * (1 + random.below(count / size));
        job = oracle::random_collectives(random, tasks);
        for (std::size_t i = 0; i < job.kinds.size() && !job.received.empty(); ++i) {
            const auto own = std::span(job.received)
                                 .first(static_cast<std::size_t>(job.ends[i]))
                                 .subspan(static_cast<std::size_t>(job.view().begin_of(i)));
            if (own[0] >= 0.0) job.gigabytes[i] = 2.0 * *std::ranges::min_element(own);
        }
        units = oracle::permutation(random, tasks);
        own_class = {0, fabric.racks_switch ? 1 : 0};
        add_machines();
        add_limits();
        add_room();
    }

    Units of() const { return {units, size}; }
    std::int32_t num_machines() const { return static_cast<std::int32_t>(gpu_ends.size()); }
    Least least(bool machine_groups) const {
        topoplace::WorkMeter meter(topoplace::StopCondition{});
        return least_seconds(*limits, room, own_class, job.view(), of(), machine_groups, meter);
    }
    double seconds(const Numbers& vertex_of) const {
        const traffic::JobFlows flows = traffic::flows_of(*fabric.made, job.view(), vertex_of);
        const auto phases = ports::phase_times(*fabric.ports, flows.phase_ends, flows.flows());
        double sum = 0.0;
        for (std::size_t i = 0; i < phases.size(); ++i)
            sum += std::max(phases[i].seconds, flows.rings[i].seconds);
        return sum;
    }

  private:
    void add_machines() {
        const auto count = static_cast<std::int32_t>(fabric.machine.size());
        Numbers gpus(at(count));
        std::iota(gpus.begin(), gpus.end(), 0);
        for (std::int32_t gpu = 0; gpu < count; ++gpu) {
            if (gpu + 1 == count || fabric.machine[at(gpu)] != fabric.machine[at(gpu + 1)])
                gpu_ends.push_back(gpu + 1);
            const std::int32_t adapter = fabric.adapter[at(gpu)];
            double speed = adapter < 0 ? 0.0 : fabric.network.speeds[at(adapter)];
            const auto& access = fabric.network.access;
            if (!access.empty() && access[at(gpu)] >= 0)
                speed = std::min(speed, fabric.network.speeds[at(access[at(gpu)])]);
            way_out.push_back(speed);
        }
        machines = std::make_unique<GangMachines>(GangMachinesParams{
            gpu_ends, gpus, fabric.domain, fabric.adapter, way_out, fabric.network.speeds});
        zeros.assign(16, 0);
        no_share.assign(4, 0.0);
        unbounded.assign(16, 1e9);
        for (std::int32_t i = 0; i < num_machines(); ++i) add_machine(i);
    }

    void add_machine(std::int32_t number) {
        const std::size_t n = machines->gpus_of(number).size();
        rated.push_back(std::make_unique<collective::RatedSets>(collective::RatedSetsParams{
            fabric.rates.get(), false, unbounded, std::span(unbounded).first(4)}));
        const bool is_rated = fabric.rates_of[at(number)] >= 0 && n > 1;
        made.push_back(std::make_unique<Machine>(MachineParams{std::span(zeros).first(n * n),
                                                               std::span(zeros).first(n),
                                                               std::span(zeros).first(n),
                                                               std::span(no_share).first(n),
                                                               {},
                                                               false,
                                                               is_rated ? rated.back().get() : nullptr,
                                                               fabric.made.get()}));
    }

    void add_limits() {
        GangLimitsParams params{.entries = {{{1e-3, 1e-3}, {4.0, 16.0}}}, .gpus = machines.get()};
        double of_links = 0.0;
        for (std::int32_t i = 0; i < num_machines(); ++i) {
            std::map<std::int32_t, double> adapters;
            for (const std::int32_t gpu : machines->gpus_of(i)) {
                const GangMachines::Gpu& one = machines->gpu(gpu);
                if (one.adapter >= 0) adapters[one.adapter] = one.gb_per_s;
                params.entries[0].of_gpu = std::max(params.entries[0].of_gpu, one.way_out);
                of_links = std::max(of_links, 8.0 + one.gb_per_s);
            }
            double sum = 0.0;
            for (const auto& [_, speed] : adapters) sum += speed;
            params.entries[0].of_machine = std::max(params.entries[0].of_machine, sum);
            params.machines.push_back(made[at(i)].get());
        }
        params.most_of_a_gpu = 10.0 + of_links;  // three links, the switches and the adapter
        params.has_relays = !fabric.network.group.empty();
        params.most_switched = *std::ranges::max_element(fabric.switched);
        params.are_switched = *std::ranges::min_element(fabric.switched) > 0.0;
        params.most_reducing = *std::ranges::max_element(fabric.reduced);
        params.most_reduced = 3.5;
        Numbers classes(at(num_machines()));
        std::iota(classes.begin(), classes.end(), 0);
        params.class_of = classes;
        CHECK(!decide::check(params));
        limits = std::make_unique<GangLimits>(params);
    }

    void add_room() {
        Numbers numbers(at(num_machines())), kinds, sizes;
        std::iota(numbers.begin(), numbers.end(), 0);
        std::vector<std::uint8_t> usable;
        for (const std::int32_t number : numbers) {
            kinds.push_back(number);
            sizes.push_back(static_cast<std::int32_t>(machines->gpus_of(number).size()));
            usable.push_back(static_cast<std::uint8_t>((1U << sizes.back()) - 1));
            racks.push_back(fabric.rack_of[at(number)]);
        }
        room = gang_room(*machines, {numbers, kinds, sizes, usable, 1}, {racks}, 1000);
        CHECK(!decide::check(room, own_class));
        CHECK(!decide::check(job.view(), of()));
    }
};

// Each unit on one machine, if it has room: -1 elsewhere.
Numbers placed_whole(const Case& c, topoplace::Random& random) {
    std::vector<Numbers> free;
    for (std::int32_t i = 0; i < c.num_machines(); ++i) {
        const auto gpus = c.machines->gpus_of(i);
        free.emplace_back(gpus.begin(), gpus.end());
    }
    Numbers found(c.units.size(), -1);
    for (std::int32_t unit = 0; unit < c.of().count(); ++unit) {
        const std::int32_t first = random.below(c.num_machines());
        for (std::int32_t i = 0; i < c.num_machines(); ++i) {
            Numbers& own = free[at((first + i) % c.num_machines())];
            if (own.size() < at(c.size)) continue;
            for (std::int32_t j = 0; j < c.size; ++j) {
                const auto place = at(random.below(static_cast<std::int32_t>(own.size())));
                found[at(c.units[at(unit * c.size + j)])] = own[place];
                own.erase(own.begin() + static_cast<std::ptrdiff_t>(place));
            }
            break;
        }
    }
    return found;
}

// The units on each machine.
Numbers counts_of(const Case& c, const Numbers& whole) {
    Numbers counts(at(c.num_machines()), 0);
    for (const std::int32_t gpu : whole) ++counts[at(c.fabric.machine[at(gpu)])];
    for (std::int32_t& one : counts) one /= c.size;
    return counts;
}

using Pair = std::pair<std::int32_t, std::int32_t>;

// The task at one place of a collective sends to that at another, or exchanges with it.
bool are_pair(traffic::Kind kind, std::size_t u, std::size_t v, std::size_t n) {
    if (kind == traffic::Kind::kPairs) return u < v;
    const bool returns = kind == traffic::Kind::kReduce || kind == traffic::Kind::kRing;
    return v == u + 1 || (returns && u + 1 == n && v == 0);
}

void add_exchanges(const Case& c, std::size_t collective, std::map<Pair, double>& sums) {
    const std::vector<std::int32_t> unit_of = unit_of_tasks(c.of());
    const auto begin = static_cast<std::size_t>(c.job.view().begin_of(collective));
    const auto n = static_cast<std::size_t>(c.job.ends[collective]) - begin;
    for (std::size_t u = 0; u < n; ++u) {
        for (std::size_t v = 0; v < n; ++v) {
            if (!are_pair(static_cast<traffic::Kind>(c.job.kinds[collective]), u, v, n)) continue;
            const Pair pair =
                std::minmax(unit_of[at(c.job.tasks[begin + u])], unit_of[at(c.job.tasks[begin + v])]);
            if (pair.first != pair.second) sums[pair] += c.job.gigabytes[collective];
        }
    }
}

}  // namespace

TEST(no_placement_of_a_gang_is_faster_than_its_bounds) {
    topoplace::Random random(11);
    for (std::int32_t i = 0; i < check::rounds(4000); ++i) {
        const Case c(random);
        topoplace::WorkMeter meter(topoplace::StopCondition{});
        const Least least = c.least(false);
        CHECK(least.of_all <= least.of_whole);
        CHECK_EQ(c.least(true).of_whole, least.of_whole);
        const MachineLimits limits(*c.limits, c.room, c.own_class, c.job.view(), c.of(), false, meter);
        for (std::int32_t tries = 0; tries < 4; ++tries) {
            Numbers any = oracle::permutation(random, static_cast<std::int32_t>(c.fabric.machine.size()));
            any.resize(c.units.size());
            CHECK(c.seconds(any) >= least.of_all);
            const Numbers whole = placed_whole(c, random);
            if (std::ranges::find(whole, -1) != whole.end()) continue;
            CHECK(c.seconds(whole) >= least.of_whole);
            for (const std::int32_t units : counts_of(c, whole))
                CHECK(c.seconds(whole) >= limits.of_count(units) || units == c.of().count());
        }
    }
}

TEST(units_exchange_what_their_tasks_do) {
    topoplace::Random random(12);
    for (std::int32_t i = 0; i < check::rounds(1000); ++i) {
        const Case c(random);
        const Exchanges found = exchanges_of(c.job.view(), c.of(), true);
        std::size_t collective = 0, edge = 0;
        for (std::size_t phase = 0; phase < c.job.phase_ends.size(); ++phase) {
            std::map<Pair, double> sums;
            for (; collective < static_cast<std::size_t>(c.job.phase_ends[phase]); ++collective)
                add_exchanges(c, collective, sums);
            for (const auto& [pair, gigabytes] : sums) {
                CHECK(edge < found.from.size() && found.from[edge] == pair.first);
                CHECK(found.to[edge] == pair.second && found.gigabytes[edge] == gigabytes);
                ++edge;
            }
            CHECK_EQ(found.phase_ends[phase], static_cast<std::int64_t>(edge));
        }
    }
}

TEST(any_thread_may_ask_for_the_fastest_rings) {
    topoplace::Random random(13);
    for (std::int32_t i = 0; i < check::rounds(100); ++i) {
        const Case c(random);
        std::vector<std::vector<double>> found(3);
        std::vector<std::thread> threads;
        for (auto& own : found) {
            threads.emplace_back([&] {
                topoplace::WorkMeter meter(topoplace::StopCondition{});
                for (std::int64_t size = 2; size < 6; ++size)
                    own.push_back(c.limits->fastest_rings(size, meter));
            });
        }
        for (std::thread& one : threads) one.join();
        CHECK(found[0] == found[1] && found[0] == found[2] && found[0].back() == 0.0);
    }
}

TEST(batches_are_runs_of_collectives_that_are_alike) {
    Collectives job;
    job.add(traffic::Kind::kRing, {0, 1}, 1.0);
    job.add(traffic::Kind::kRing, {2, 3}, 1.0);
    job.add(traffic::Kind::kRing, {0, 1, 2}, 1.0);
    job.end_phase();
    job.add(traffic::Kind::kRing, {0, 1, 2}, 1.0);
    job.end_phase();
    const auto fault_of = [&](std::vector<std::int64_t> batch_ends) {
        traffic::JobCollectives view = job.view();
        view.batch_ends = batch_ends;
        return traffic::check(view, 4).value_or("");
    };
    CHECK_EQ(fault_of({}), "");
    CHECK_EQ(fault_of({2, 3, 4}), "");
    CHECK_EQ(fault_of({1, 2, 3, 4}), "");
    CHECK_EQ(fault_of({2, 3}), "batch_ends ends at 3 of 4");
    CHECK_EQ(fault_of({2, 4}), "batch_ends[1] = 4: no run of collectives that are alike");
    CHECK_EQ(fault_of({3, 4}), "batch_ends[0] = 3: no run of collectives that are alike");
    CHECK_EQ(fault_of({2, 2, 3, 4}), "batch_ends[1] = 2: no run of collectives that are alike");
}
