// One node's jobs by dynamic programming over jobs and GPUs, each level with and without a job that pays.
//
// Reference: Gilmore and Gomory, Operations Research 9 (1961), for the problem as column generation asks it.
#include "capacity/knapsack.hpp"

#include <algorithm>
#include <functional>

#include "graph/index.hpp"

namespace topoplace::capacity {

Knapsack::Knapsack(const Problem::Impl& problem) : problem_(problem) {
    const auto width = index(problem.most_gpus) + 1;
    levels_.resize(width);
    choices_.resize(width * index(problem.num_jobs));
    jobs_.reserve(index(problem.num_jobs));
}

void Knapsack::fill(std::int32_t type, std::span<const std::int32_t> jobs, std::span<const double> price) {
    TOPOPLACE_ASSERT(type >= 0 && type < problem_.num_types && std::ssize(price) == problem_.num_jobs);
    TOPOPLACE_ASSERT(std::ranges::is_sorted(jobs, std::less_equal<>()));
    type_ = type;
    size_ = problem_.gpus[index(type)];
    jobs_.assign(jobs.begin(), jobs.end());
    std::fill(levels_.begin(), levels_.end(), Level{kNever, kNever});
    levels_[0].unpaid = problem_.open[index(type)];
    Choice* chosen = choices_.data();
    for (const std::int32_t job : jobs_) {
        add(problem_.gain(type, job), problem_.pay(type, job), price[index(job)], chosen);
        chosen += size_ + 1;
    }
}

// From the most GPUs down, so that what is read is still without the job.
void Knapsack::add(std::span<const double> gain, std::span<const double> pay, double price, Choice* chosen) {
    TOPOPLACE_ASSERT(std::ssize(gain) == size_ && std::ssize(pay) == size_);
    for (std::int32_t given = size_; given >= 0; --given) {
        Level best = levels_[index(given)];
        Choice choice{0, 0, false};
        for (std::int32_t g = 1; g <= given; ++g) {
            const Level& before = levels_[index(given - g)];
            const double cost = gain[index(g - 1)] - price;
            if (before.unpaid + cost < best.unpaid) {
                best.unpaid = before.unpaid + cost;
                choice.unpaid = std::int16_t(g);
            }
            const double paying = before.unpaid + cost + pay[index(g - 1)];
            const double free = before.paid + cost;
            if (std::min(paying, free) < best.paid) {
                best.paid = std::min(paying, free);
                choice.paid = std::int16_t(g);
                choice.pays = paying <= free;
            }
        }
        levels_[index(given)] = best;
        chosen[given] = choice;
    }
}

Node Knapsack::node(std::int32_t given) const {
    TOPOPLACE_ASSERT(given > 0 && given <= size_ && reduced(given) < kNever);
    Node node{.type = type_, .jobs = {}};
    bool paid = true;
    for (std::size_t i = jobs_.size(); i-- > 0;) {
        const Choice& choice = choices_[i * index(size_ + 1) + index(given)];
        const std::int32_t gpus = paid ? choice.paid : choice.unpaid;
        TOPOPLACE_ASSERT(gpus >= 0 && gpus <= given);
        if (gpus == 0) continue;
        node.jobs.push_back({jobs_[i], gpus});
        paid = paid && !choice.pays;
        given -= gpus;
    }
    TOPOPLACE_ASSERT(given == 0 && !paid);
    std::ranges::sort(node.jobs, {}, &Placed::job);
    node.cost = problem_.cost(node);
    return node;
}

Node best_node(Knapsack& knapsack, const Problem::Impl& problem, std::span<const std::int32_t> jobs,
               std::span<const double> price, WorkMeter& meter) {
    Node best;
    double least = kNever;
    for (std::int32_t type = 0; type < problem.num_types; ++type) {
        knapsack.fill(type, jobs, price);
        meter.visit();
        const std::size_t size = index(problem.gpus[index(type)]);
        meter.pass_time(std::uint64_t{4} * jobs.size() * size * (size + 1));
        std::int32_t given = 0;
        for (std::int32_t more = 1; more <= problem.gpus[index(type)]; ++more) {
            if (knapsack.reduced(more) < least) {
                given = more;
                least = knapsack.reduced(more);
            }
        }
        if (given > 0) best = knapsack.node(given);
    }
    return best;
}

}  // namespace topoplace::capacity
