// Checks a plan by the definition; shares no code with the searches.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "graph/index.hpp"
#include "topoplace/capacity.hpp"

namespace topoplace::capacity {
namespace {

struct Sum {
    double cost = 0;
    double parts = 0;

    void add(double value) {
        cost += value;
        parts += std::abs(value);
    }
};

bool add_node(const Tables& tables, const Node& node, std::vector<bool>& runs, Sum& sum) {
    if (node.type < 0 || index(node.type) >= tables.gpus.size() || node.jobs.empty()) return false;
    double least = std::numeric_limits<double>::infinity();
    std::int64_t given = 0;
    for (const auto& [job, gpus] : node.jobs) {
        if (job < 0 || index(job) >= tables.wait.size() || runs[index(job)]) return false;
        if (gpus < 1 || gpus > std::min(tables.gpus[index(node.type)], tables.most_gpus)) return false;
        const std::size_t row = index(job) * tables.gpus.size() + index(node.type);
        const std::size_t at = row * index(tables.most_gpus) + index(gpus - 1);
        if (!std::isfinite(tables.run[at])) return false;
        runs[index(job)] = true;
        given += gpus;
        sum.add(tables.run[at]);
        least = std::min(least, tables.pay[at]);
    }
    sum.add(tables.open[index(node.type)]);
    sum.add(least);
    return given <= tables.gpus[index(node.type)];
}

}  // namespace

bool verify(const Tables& tables, std::span<const Node> nodes, double cost) {
    std::vector<bool> runs(tables.wait.size());
    Sum sum;
    for (const Node& node : nodes) {
        if (!add_node(tables, node, runs, sum)) return false;
    }
    for (std::size_t job = 0; job < runs.size(); ++job) {
        if (!runs[job]) sum.add(tables.wait[job]);
    }
    return std::abs(cost - sum.cost) <= 1e-9 * sum.parts;
}

}  // namespace topoplace::capacity
