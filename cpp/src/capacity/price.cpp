#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "capacity/knapsack.hpp"

namespace topoplace::capacity {

std::vector<PricedNode> price(const Problem& problem, std::span<const double> price) {
    const Problem::Impl& impl = problem.impl();
    if (price.size() != std::size_t(impl.num_jobs))
        throw std::invalid_argument("price: one value per job needed");
    for (const double value : price) {
        if (!std::isfinite(value)) throw std::invalid_argument("price: not all values are finite");
    }
    std::vector<std::int32_t> jobs(price.size());
    std::iota(jobs.begin(), jobs.end(), 0);
    Knapsack knapsack(impl);
    std::vector<PricedNode> found;
    for (std::int32_t type = 0; type < impl.num_types; ++type) {
        knapsack.fill(type, jobs, price);
        for (std::int32_t given = 1; given <= impl.gpus[std::size_t(type)]; ++given) {
            const double reduced = knapsack.reduced(given);
            if (reduced < std::numeric_limits<double>::infinity())
                found.push_back({knapsack.node(given), reduced});
        }
    }
    return found;
}

}  // namespace topoplace::capacity
