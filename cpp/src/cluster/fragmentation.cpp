// The expected fragment of a machine, and the placement that adds least to it.
#include "topoplace/fragmentation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "graph/index.hpp"
#include "topoplace/gpu_shares.hpp"

namespace topoplace {

namespace {

bool is_weight(double weight) { return weight >= 0 && !std::isinf(weight); }

bool is_valid(const TypicalJob& job) {
    const bool is_share = job.tasks == 0 || (job.share >= 1 && job.share <= kWholeGpu);
    return job.cpus >= 0 && job.tasks >= 0 && is_share && is_weight(job.weight);
}

double score_of(double less, bool rounded) {
    const double score = 1.0 / (1.0 + std::exp(-less / kWholeGpu));
    return rounded ? std::floor(score * 100) / 100 : score;
}

}  // namespace

Fault Fragmentation::check(std::span<const TypicalJob> jobs, double stranded) {
    if (!is_weight(stranded)) return "stranded is out of range";
    double total = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (!is_valid(jobs[i])) return "jobs[" + std::to_string(i) + "] has an amount out of range";
        if (jobs[i].suits.size() != jobs[0].suits.size())
            return "jobs[" + std::to_string(i) + "].suits has another length";
        total += jobs[i].weight;
    }
    if (!(total > 0)) return "jobs: the weights do not add up to more than 0";
    return std::nullopt;
}

Fragmentation::Fragmentation(std::vector<TypicalJob> jobs, double stranded)
    : jobs_(std::move(jobs)), stranded_(stranded) {
    TOPOPLACE_ASSERT(!check(jobs_, stranded));
    double total = 0;
    for (const TypicalJob& job : jobs_) total += job.weight;
    for (TypicalJob& job : jobs_) job.weight /= total;
    group_by_share();
}

void Fragmentation::group_by_share() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
        if (jobs_[i].tasks == 0) {
            without_tasks_ += jobs_[i].weight;
            continue;
        }
        const std::int32_t share = jobs_[i].share;
        auto its = std::find_if(by_share_.begin(), by_share_.end(),
                                [share](const Shares& one) { return one.share == share; });
        if (its == by_share_.end()) its = by_share_.insert(its, Shares{share, {}});
        its->jobs.push_back(i);
    }
}

double Fragmentation::expected(const MachineLeft& machine) const {
    const std::int64_t all = std::accumulate(machine.gpus.begin(), machine.gpus.end(), std::int64_t{0});
    double fragment = without_tasks_ * static_cast<double>(all);
    for (const auto& [share, jobs] : by_share_) {
        std::int32_t able = 0;
        std::int64_t too_full = 0;
        for (const std::int32_t left : machine.gpus) {
            able += left >= share ? 1 : 0;
            too_full += left >= share ? 0 : left;
        }
        for (const std::size_t i : jobs) {
            const TypicalJob& job = jobs_[i];
            const bool is_suitable = job.suits[index(machine.machine_class)] != 0;
            const bool fits = is_suitable && able >= job.tasks && machine.cpus >= job.cpus;
            fragment += job.weight * static_cast<double>(fits ? too_full : all);
            if (stranded_ > 0 && is_suitable && job.cpus > 0) {
                const double usable =
                    static_cast<double>(machine.cpus) * job.tasks * share / static_cast<double>(job.cpus);
                fragment += stranded_ * job.weight * std::max(0.0, static_cast<double>(all) - usable);
            }
        }
    }
    return fragment;
}

Fragmentation::Step Fragmentation::best_step(const MachineLeft& machine, std::int64_t cpus,
                                             std::int32_t tasks, std::int32_t share, bool rounded) const {
    if (machine.cpus < cpus) return {};
    const double before = expected(machine);
    std::vector<std::int32_t> left(machine.gpus.begin(), machine.gpus.end());
    MachineLeft after{machine.machine_class, machine.cpus - cpus, left};
    if (tasks != 1 || share == kWholeGpu) {
        std::int32_t missing = tasks;
        for (std::int32_t& one : left) {
            if (missing == 0 || one < share) continue;
            one -= share;
            --missing;
        }
        return missing > 0 ? Step{} : Step{score_of(before - expected(after), rounded), -1};
    }
    Step best;
    for (std::size_t gpu = 0; gpu < left.size(); ++gpu) {
        // GPUs of which as much is left give the same score.
        const bool is_first = std::find(machine.gpus.begin(), machine.gpus.end(), left[gpu]) ==
                              machine.gpus.begin() + static_cast<std::ptrdiff_t>(gpu);
        if (left[gpu] < share || !is_first) continue;
        left[gpu] -= share;
        const double score = score_of(before - expected(after), rounded);
        left[gpu] += share;
        if (score > best.score) best = {score, static_cast<std::int32_t>(gpu)};
    }
    return best;
}

}  // namespace topoplace
