// The best jobs for one node of a given type, by dynamic programming.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capacity/problem.hpp"
#include "graph/index.hpp"

namespace topoplace::capacity {

class Knapsack {
  public:
    // Memory for any type of the problem, used again by each `fill`.
    explicit Knapsack(const Problem::Impl& problem);

    // Solves a type for these jobs. `price`: of each job of the problem, taken off its cost.
    void fill(std::int32_t type, std::span<const std::int32_t> jobs, std::span<const double> price);
    // Of the last `fill`: the least reduced cost of a node that gives away exactly `given` GPUs, infinite
    // where there is none; and its jobs.
    double reduced(std::int32_t given) const { return level(given).paid; }
    Node node(std::int32_t given) const;

  private:
    // The least cost of the jobs so far on a number of GPUs: of those where none has paid, and where one has.
    struct Level {
        double unpaid;
        double paid;
    };
    // How many GPUs the job got in either, and whether it is the one that paid.
    struct Choice {
        std::int16_t unpaid;
        std::int16_t paid;
        bool pays;
    };
    const Level& level(std::int32_t given) const {
        TOPOPLACE_ASSERT(given >= 0 && given <= size_);
        return levels_[index(given)];
    }
    void add(std::span<const double> gain, std::span<const double> pay, double price, Choice* chosen);

    const Problem::Impl& problem_;
    std::int32_t type_ = 0;
    std::int32_t size_ = 0;
    std::vector<std::int32_t> jobs_;
    std::vector<Level> levels_;
    std::vector<Choice> choices_;
};

// The node of least reduced cost over all types; of equal ones the first type's with the fewest GPUs.
Node best_node(Knapsack& knapsack, const Problem::Impl& problem, std::span<const std::int32_t> jobs,
               std::span<const double> price, WorkMeter& meter);

}  // namespace topoplace::capacity
