// The expected fragment against its definition, job by job, and the best step against trying every GPU.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "topoplace/fragmentation.hpp"
#include "topoplace/random.hpp"

using topoplace::Fragmentation;
using topoplace::MachineLeft;
using topoplace::Random;
using topoplace::TypicalJob;

namespace {

double expected(const std::vector<TypicalJob>& jobs, const MachineLeft& machine, double stranded) {
    double total = 0;
    double fragment = 0;
    for (const TypicalJob& job : jobs) {
        total += job.weight;
        double all = 0;
        double too_full = 0;
        std::int32_t able = 0;
        for (const std::int32_t left : machine.gpus) {
            all += left;
            too_full += left < job.share ? left : 0;
            able += left >= job.share ? 1 : 0;
        }
        const bool suits = job.suits[static_cast<std::size_t>(machine.machine_class)] != 0;
        const bool fits = job.tasks > 0 && suits && able >= job.tasks && machine.cpus >= job.cpus;
        fragment += job.weight * (fits ? too_full : all);
        if (job.tasks > 0 && suits && job.cpus > 0) {
            const double jobs_by_cpus = static_cast<double>(machine.cpus) / static_cast<double>(job.cpus);
            fragment += stranded * job.weight * std::max(0.0, all - jobs_by_cpus * job.tasks * job.share);
        }
    }
    return fragment / total;
}

std::vector<TypicalJob> random_jobs(Random& rng) {
    std::vector<TypicalJob> jobs(static_cast<std::size_t>(1 + rng.below(6)));
    for (TypicalJob& job : jobs) {
        job.cpus = rng.below(5) * 1000;
        job.tasks = rng.below(4);
        job.share = job.tasks == 1 ? 1 + rng.below(1000) : job.tasks == 0 ? 0 : 1000;
        job.weight = 1 + rng.below(9);
        job.suits = {static_cast<std::uint8_t>(rng.below(2)), 1};
    }
    return jobs;
}

}  // namespace

TEST(the_fragment_is_as_defined_and_the_step_is_the_best) {
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
        Random rng(seed);
        const std::vector<TypicalJob> jobs = random_jobs(rng);
        const double stranded = rng.below(2);
        const Fragmentation model(jobs, stranded);
        std::vector<std::int32_t> left(static_cast<std::size_t>(1 + rng.below(4)));
        for (std::int32_t& one : left) one = rng.below(2) == 0 ? 1000 : rng.below(1001);
        MachineLeft machine{rng.below(2), rng.below(9) * 1000, left};
        const double before = expected(jobs, machine, stranded);
        CHECK(std::abs(model.expected(machine) - before) < 1e-6);

        const std::int64_t cpus = rng.below(4) * 1000;
        const std::int32_t share = 1 + rng.below(999);
        double best = -1;
        for (std::int32_t& one : left) {
            if (one < share || machine.cpus < cpus) continue;
            one -= share;
            const MachineLeft after{machine.machine_class, machine.cpus - cpus, left};
            best = std::max(best, 1 / (1 + std::exp((expected(jobs, after, stranded) - before) / 1000)));
            one += share;
        }
        const Fragmentation::Step step = model.best_step(machine, cpus, 1, share, false);
        CHECK(std::abs(step.score - best) < 1e-9);
        CHECK_EQ(step.gpu >= 0, best >= 0);
        const Fragmentation::Step rounded = model.best_step(machine, cpus, 1, share, true);
        CHECK(best < 0 || (rounded.score <= best + 1e-9 && rounded.score > best - 0.01 - 1e-9));

        const auto num_free = static_cast<std::int32_t>(std::count(left.begin(), left.end(), 1000));
        const bool fits = machine.cpus >= cpus && num_free >= 2;
        CHECK_EQ(model.best_step(machine, cpus, 2, 1000, false).score >= 0, fits);
    }
}

TEST(impossible_jobs_are_refused) {
    const auto refuses = [](TypicalJob job) {
        return Fragmentation::check(std::vector{std::move(job)}, 0).has_value();
    };
    CHECK(!refuses({1000, 1, 500, 1, {1}}));
    CHECK(refuses({-1, 1, 500, 1, {1}}));
    CHECK(refuses({1000, 1, 0, 1, {1}}));
    CHECK(refuses({1000, 1, 1001, 1, {1}}));
    CHECK(refuses({1000, 1, 500, 0, {1}}));
    CHECK(refuses({1000, 1, 500, std::nan(""), {1}}));
}
