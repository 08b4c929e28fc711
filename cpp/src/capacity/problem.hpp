// The tables as the searches read them: by type, then by job.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/capacity.hpp"

namespace topoplace::capacity {

// What cannot run costs this.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

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
        TOPOPLACE_ASSERT(type >= 0 && type < num_types && job >= 0 && job < num_jobs);
        const auto begin = (index(type) * index(num_jobs) + index(job)) * index(most_gpus);
        return {table.data() + begin, index(gpus[index(type)])};
    }

    std::vector<double> gain_;
    std::vector<double> pay_;
};

}  // namespace topoplace::capacity
