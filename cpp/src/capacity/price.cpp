// Prices nodes: a knapsack for each type, and its best node for each number of GPUs.
#include <cmath>
#include <numeric>
#include <string>

#include "capacity/knapsack.hpp"
#include "graph/index.hpp"

namespace topoplace::capacity {

Fault check(const Problem& problem, std::span<const double> price) {
    if (price.size() != index(problem.num_jobs())) return "price: one value per job needed";
    for (std::size_t i = 0; i < price.size(); ++i) {
        if (!std::isfinite(price[i])) return "price[" + std::to_string(i) + "] is not finite";
    }
    return std::nullopt;
}

std::vector<PricedNode> price(const Problem& problem, std::span<const double> price) {
    const Problem::Impl& impl = problem.impl();
    TOPOPLACE_ASSERT(!check(problem, price));
    std::vector<std::int32_t> jobs(price.size());
    std::iota(jobs.begin(), jobs.end(), 0);
    Knapsack knapsack(impl);
    std::vector<PricedNode> found;
    for (std::int32_t type = 0; type < impl.num_types; ++type) {
        knapsack.fill(type, jobs, price);
        for (std::int32_t given = 1; given <= impl.gpus[index(type)]; ++given) {
            const double reduced = knapsack.reduced(given);
            if (reduced < kNever) found.push_back({.node = knapsack.node(given), .reduced = reduced});
        }
    }
    return found;
}

}  // namespace topoplace::capacity
