// Checks a plan by the definition; shares no code with the searches.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

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

// What is wrong with a node, "" if nothing is.
std::string add_node(const Tables& tables, const Node& node, std::vector<bool>& runs, Sum& sum) {
    if (node.type < 0 || index(node.type) >= tables.gpus.size()) return "has a type that does not exist";
    if (node.jobs.empty()) return "has no job";
    double least = std::numeric_limits<double>::infinity();
    std::int64_t given = 0;
    for (const auto& [job, gpus] : node.jobs) {
        const auto who = [job = job] { return "has job " + std::to_string(job); };
        if (job < 0 || index(job) >= tables.wait.size()) return who() + ", which does not exist";
        if (runs[index(job)]) return who() + ", which is placed twice";
        if (gpus < 1 || gpus > std::min(tables.gpus[index(node.type)], tables.most_gpus))
            return who() + " on " + std::to_string(gpus) + " GPUs";
        const std::size_t row = index(job) * tables.gpus.size() + index(node.type);
        const std::size_t entry = row * index(tables.most_gpus) + index(gpus - 1);
        if (!std::isfinite(tables.run[entry])) return who() + ", which cannot run there";
        runs[index(job)] = true;
        given += gpus;
        sum.add(tables.run[entry]);
        least = std::min(least, tables.pay[entry]);
    }
    sum.add(tables.open[index(node.type)]);
    sum.add(least);
    return given <= tables.gpus[index(node.type)] ? "" : "gives away more GPUs than it has";
}

}  // namespace

Fault verify(const Tables& tables, std::span<const Node> nodes, double cost) {
    std::vector<bool> runs(tables.wait.size());
    Sum sum;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::string wrong = add_node(tables, nodes[i], runs, sum);
        if (!wrong.empty()) return "node " + std::to_string(i) + " " + wrong;
    }
    for (std::size_t job = 0; job < runs.size(); ++job) {
        if (!runs[job]) sum.add(tables.wait[job]);
    }
    if (std::abs(cost - sum.cost) <= 1e-9 * sum.parts) return std::nullopt;
    return "the cost is " + std::to_string(sum.cost) + ", not " + std::to_string(cost);
}

}  // namespace topoplace::capacity
