#include "capacity/prices.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace topoplace::capacity {
namespace {

constexpr double kNewest = 0.1;   // the weight of the last step in the average
constexpr double kLonger = 1.1;   // after a step that raised the bound
constexpr double kShorter = 0.7;  // after `kPatience` steps that did not
constexpr double kLongest = 2.0;
constexpr std::int32_t kPatience = 5;

}  // namespace

Prices::Prices(const Problem::Impl& problem, std::int32_t num_nodes)
    : problem_(problem),
      num_nodes_(num_nodes),
      jobs_(std::size_t(problem.num_jobs)),
      best_(jobs_.size()),
      taken_(jobs_.size()),
      bound_(-std::numeric_limits<double>::infinity()) {
    std::iota(jobs_.begin(), jobs_.end(), 0);
    for (std::int32_t type = 0; type < problem.num_types; ++type) {
        for (const std::int32_t job : jobs_) {
            double& price = best_[std::size_t(job)];
            for (const double gain : problem.gain(type, job)) price = std::min(price, gain);
        }
    }
    trial_ = best_;
}

void Prices::step(double target, Knapsack& knapsack, NodeCounter& counter) {
    if (!average_.empty()) move(target);
    const double bound = evaluate(knapsack, counter);
    if (average_.empty()) average_ = taken_;
    for (std::size_t j = 0; j < average_.size(); ++j) {
        average_[j] = kNewest * taken_[j] + (1 - kNewest) * average_[j];
    }
    if (bound > bound_) {
        bound_ = bound;
        best_ = trial_;
        failures_ = 0;
        stride_ = std::min(kLongest, stride_ * kLonger);
    } else if (++failures_ == kPatience) {
        failures_ = 0;
        stride_ *= kShorter;
    }
}

// Along what the average node leaves of each job, as far as the target lets hope for.
void Prices::move(double target) {
    double norm = 0;
    for (std::size_t j = 0; j < best_.size(); ++j) {
        const double left = 1 - average_[j];
        trial_[j] = best_[j] >= 0 && left > 0 ? 0 : left;
        norm += trial_[j] * trial_[j];
    }
    const double length = norm > 0 ? stride_ * std::max(target - bound_, 0.0) / norm : 0;
    for (std::size_t j = 0; j < best_.size(); ++j) {
        trial_[j] = std::min(0.0, best_[j] + length * trial_[j]);
    }
}

double Prices::evaluate(Knapsack& knapsack, NodeCounter& counter) {
    const Node node = best_node(knapsack, problem_, jobs_, trial_, counter);
    std::fill(taken_.begin(), taken_.end(), 0.0);
    double reduced = node.cost;
    for (const Placed& placed : node.jobs) {
        taken_[std::size_t(placed.job)] = num_nodes_;
        reduced -= trial_[std::size_t(placed.job)];
    }
    return problem_.all_wait + std::accumulate(trial_.begin(), trial_.end(), 0.0) + num_nodes_ * reduced;
}

}  // namespace topoplace::capacity
