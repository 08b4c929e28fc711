// The volume algorithm on the prices of jobs.
//
// Reference: Barahona and Anbil, Mathematical Programming 87 (2000).
#include "capacity/prices.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/index.hpp"

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
      jobs_(index(problem.num_jobs)),
      best_(jobs_.size()),
      taken_(jobs_.size()),
      bound_(-kNever) {
    std::iota(jobs_.begin(), jobs_.end(), 0);
    for (std::int32_t type = 0; type < problem.num_types; ++type) {
        for (const std::int32_t job : jobs_) {
            double& price = best_[index(job)];
            for (const double gain : problem.gain(type, job)) price = std::min(price, gain);
        }
    }
    trial_ = best_;
    TOPOPLACE_ASSERT(none_positive(best_));
}

bool Prices::none_positive(const std::vector<double>& prices) {
    return std::ranges::all_of(prices, [](double price) { return price <= 0; });
}

void Prices::step(double target, Knapsack& knapsack, WorkMeter& meter) {
    if (!average_.empty()) move(target);
    const double bound = evaluate(knapsack, meter);
    if (average_.empty()) average_ = taken_;
    for (std::size_t j = 0; j < average_.size(); ++j) {
        average_[j] = kNewest * taken_[j] + (1 - kNewest) * average_[j];
    }
    if (bound > bound_) {
        TOPOPLACE_ASSERT(none_positive(trial_) && std::isfinite(bound));
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
    TOPOPLACE_ASSERT(stride_ > 0 && stride_ <= kLongest);
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
    TOPOPLACE_ASSERT(none_positive(trial_));
}

double Prices::evaluate(Knapsack& knapsack, WorkMeter& meter) {
    const Node node = best_node(knapsack, problem_, jobs_, trial_, meter);
    std::fill(taken_.begin(), taken_.end(), 0.0);
    double reduced = node.cost;
    for (const Placed& placed : node.jobs) {
        taken_[index(placed.job)] = num_nodes_;
        reduced -= trial_[index(placed.job)];
    }
    return problem_.all_wait + std::accumulate(trial_.begin(), trial_.end(), 0.0) + num_nodes_ * reduced;
}

}  // namespace topoplace::capacity
