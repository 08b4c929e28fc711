// Pairwise exchange: a task moves to a vertex that is not used, or swaps with the task there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/index.hpp"
#include "mapping/problem/problem.hpp"
#include "topoplace/random.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::mapping {

class Exchange {
  public:
    explicit Exchange(const Problem& problem);

    // False where the search was stopped: then nothing is known of `places`.
    bool start(const Places& places, WorkMeter& meter);
    // Until no exchange lowers the cost, or the search is stopped.
    void improve(WorkMeter& meter);
    // Exchanges some tasks at random.
    void kick(Random& random);

    const Places& places() const { return places_; }
    double cost() const { return cost_; }
    std::uint64_t exchanges() const { return exchanges_; }

  private:
    bool is_consistent() const;
    // What the cost changes by when `task` goes to `vertex`, and the task there, if any, to its.
    double change(std::int32_t task, std::int32_t vertex) const;
    bool improve(std::int32_t task);
    void exchange(std::int32_t task, std::int32_t vertex);
    void put(std::int32_t task, std::int32_t vertex);

    double* ties(std::int32_t task) { return ties_.get() + index(task) * problem_.vertices.size(); }
    const double* ties(std::int32_t task) const {
        return ties_.get() + index(task) * problem_.vertices.size();
    }

    const Problem& problem_;
    const Graph& graph_;
    Places places_;
    std::vector<std::int32_t> task_on_;  // by vertex; kAbsent where there is none
    std::unique_ptr<double[]> ties_;     // by task and vertex: what the task would cost there
    std::vector<double> weight_to_;      // by task, of the one looked at
    double cost_ = 0;
    std::uint64_t exchanges_ = 0;
};

}  // namespace topoplace::mapping
