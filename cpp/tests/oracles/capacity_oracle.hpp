// Brute force over all nodes and all plans: what the capacity kernel has to answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "topoplace/capacity.hpp"

namespace oracle {

namespace capacity = topoplace::capacity;

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// Tables that own their numbers.
struct Capacity {
    std::vector<std::int32_t> gpus;
    std::vector<double> open, run, pay, wait;
    std::int32_t most_gpus = 1;

    std::int32_t jobs() const { return std::int32_t(wait.size()); }
    std::int32_t types() const { return std::int32_t(gpus.size()); }
    std::size_t at(std::int32_t job, std::int32_t type, std::int32_t given) const {
        return std::size_t((job * types() + type) * most_gpus + given - 1);
    }
    capacity::Tables tables() const { return {gpus, open, run, pay, wait, most_gpus}; }
};

// What a node adds to the cost of all jobs waiting, less the prices of its jobs; infinite for one that cannot
// be.
inline double reduced(const Capacity& c, const capacity::Node& node, const std::vector<double>& price) {
    double sum = c.open[std::size_t(node.type)], least = kNever;
    for (const auto& [job, given] : node.jobs) {
        const std::size_t at = c.at(job, node.type, given);
        sum += c.run[at] - c.wait[std::size_t(job)] - price[std::size_t(job)];
        least = std::min(least, c.pay[at]);
    }
    return sum + least;
}

// All nodes that can be, jobs ascending.
inline std::vector<capacity::Node> nodes(const Capacity& c) {
    std::vector<capacity::Node> found;
    const auto extend = [&](const auto& self, capacity::Node& node, std::int32_t job,
                            std::int32_t left) -> void {
        if (job == c.jobs()) {
            if (!node.jobs.empty()) found.push_back(node);
            return;
        }
        self(self, node, job + 1, left);
        for (std::int32_t given = 1; given <= left; ++given) {
            if (!std::isfinite(c.run[c.at(job, node.type, given)])) continue;
            node.jobs.push_back({job, given});
            self(self, node, job + 1, left - given);
            node.jobs.pop_back();
        }
    };
    for (std::int32_t type = 0; type < c.types(); ++type) {
        capacity::Node node{type, {}, 0};
        extend(extend, node, 0, c.gpus[std::size_t(type)]);
    }
    return found;
}

// The least cost of a plan with `num_nodes` nodes.
inline double best_plan(const Capacity& c, std::int32_t num_nodes) {
    const std::vector<double> free(c.wait.size());
    // By the set of its jobs, the best node.
    std::vector<double> best_of(std::size_t(1) << c.wait.size(), kNever);
    for (const auto& node : nodes(c)) {
        std::size_t set = 0;
        for (const auto& placed : node.jobs) set |= std::size_t(1) << placed.job;
        best_of[set] = std::min(best_of[set], reduced(c, node, free));
    }
    std::vector<double> plan(best_of.size(), kNever);
    plan[0] = 0;
    for (const double wait : c.wait) plan[0] += wait;
    for (std::int32_t n = 0; n < num_nodes; ++n) {
        std::vector<double> next(plan.size(), kNever);
        for (std::size_t set = 1; set < plan.size(); ++set) {
            for (std::size_t sub = set; sub > 0; sub = (sub - 1) & set)
                next[set] = std::min(next[set], plan[set ^ sub] + best_of[sub]);
        }
        plan = next;
    }
    return *std::min_element(plan.begin(), plan.end());
}

}  // namespace oracle
