// The tables as the searches read them: by type, then by job.
#pragma once

#include <span>
#include <vector>

#include "topoplace/capacity.hpp"

namespace topoplace::capacity {

class Problem::Impl {
  public:
    explicit Impl(const Tables& tables);

    std::int32_t num_jobs = 0;
    std::int32_t num_types = 0;
    std::int32_t most_gpus = 0;
    std::vector<std::int32_t> gpus;
    std::vector<double> open;
    std::vector<double> wait;
    double all_wait = 0;
    // Of a type and a job, by GPUs: what it costs that the job runs there instead of waiting, infinite where
    // it cannot; and its payment.
    std::span<const double> gain(std::int32_t type, std::int32_t job) const { return row(gain_, type, job); }
    std::span<const double> pay(std::int32_t type, std::int32_t job) const { return row(pay_, type, job); }
    // What the node adds to the cost of all jobs waiting.
    double cost(const Node& node) const;

  private:
    std::span<const double> row(const std::vector<double>& table, std::int32_t type, std::int32_t job) const {
        const auto begin =
            (std::size_t(type) * std::size_t(num_jobs) + std::size_t(job)) * std::size_t(most_gpus);
        return {table.data() + begin, std::size_t(gpus[std::size_t(type)])};
    }

    std::vector<double> gain_;
    std::vector<double> pay_;
};

// Throws std::invalid_argument for prices that are not one finite number per job.
void check_price(const Problem::Impl& problem, std::span<const double> price);

}  // namespace topoplace::capacity
