// Prices of jobs: what it is worth to a node not to take one, because another can.
#pragma once

#include <vector>

#include "capacity/knapsack.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::capacity {

// The Lagrangian of "a job is on at most one node": all nodes are the best one for jobs at their prices,
// which are never above 0, and the sum bounds the cost of any plan from below. Prices are raised by the
// volume algorithm (Barahona and Anbil, Mathematical Programming 87, 2000).
class Prices {
  public:
    Prices(const Problem::Impl& problem, std::int32_t num_nodes);

    // One step towards the prices of the best bound. `target`: the cost of a plan.
    void step(double target, Knapsack& knapsack, WorkMeter& meter);

    // Of each job, for the best bound so far.
    const std::vector<double>& best() const { return best_; }
    double bound() const { return bound_; }

  private:
    // The bound at `trial_`, whose node goes into `taken_`.
    double evaluate(Knapsack& knapsack, WorkMeter& meter);
    void move(double target);
    static bool none_positive(const std::vector<double>& prices);

    const Problem::Impl& problem_;
    double num_nodes_;
    std::vector<std::int32_t> jobs_;
    std::vector<double> best_;
    std::vector<double> trial_;
    std::vector<double> taken_;    // how often the last node, on all nodes, takes each job
    std::vector<double> average_;  // the same, weighted over all steps
    double bound_;
    double stride_ = 0.5;
    std::int32_t failures_ = 0;
};

}  // namespace topoplace::capacity
