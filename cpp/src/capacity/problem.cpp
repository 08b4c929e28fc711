// Checks tables, and puts them in the order in which searches read them.
#include "capacity/problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "graph/index.hpp"

namespace topoplace::capacity {
namespace {

// What a knapsack can note in 16 bits.
constexpr std::int32_t kMostGpus = std::numeric_limits<std::int16_t>::max();

std::string wrong(const char* table, std::size_t index, const std::string& why) {
    return std::string(table) + "[" + std::to_string(index) + "] " + why;
}

Fault check_finite(std::span<const double> values, const char* table) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i]))
            return wrong(table, i, "= " + std::to_string(values[i]) + " is not finite");
    }
    return std::nullopt;
}

Fault check_lengths(const Tables& tables) {
    const std::uint64_t jobs = tables.wait.size();
    const std::uint64_t entries = jobs * tables.gpus.size() * index(tables.most_gpus);
    if (tables.open.size() != tables.gpus.size()) return "open: one value per type needed";
    if (tables.run.size() != entries) return "run: jobs x types x GPUs values needed";
    if (tables.pay.size() != entries) return "pay: jobs x types x GPUs values needed";
    return std::nullopt;
}

Fault check_runs(const Tables& tables) {
    for (std::size_t i = 0; i < tables.run.size(); ++i) {
        const bool runs = std::isfinite(tables.run[i]) && std::isfinite(tables.pay[i]);
        if (!runs && (tables.run[i] != kNever || tables.pay[i] != kNever))
            return wrong("run", i, "and pay: both finite, or both infinite");
    }
    const std::size_t ways = tables.gpus.size() * index(tables.most_gpus);
    for (std::size_t j = 0; j < tables.wait.size(); ++j) {
        const auto runs = [](double cost) { return std::isfinite(cost); };
        if (std::ranges::none_of(tables.run.subspan(j * ways, ways), runs))
            return wrong("run", j, "is nowhere finite");
    }
    return std::nullopt;
}

}  // namespace

Fault Problem::check(const Tables& tables) {
    if (tables.most_gpus < 1 || tables.most_gpus > kMostGpus) {
        return "most_gpus = " + std::to_string(tables.most_gpus) + " is not in 1.." +
               std::to_string(kMostGpus);
    }
    if (auto fault = check_lengths(tables)) return fault;
    for (std::size_t v = 0; v < tables.gpus.size(); ++v) {
        if (tables.gpus[v] < 1 || tables.gpus[v] > tables.most_gpus)
            return wrong("gpus", v, "= " + std::to_string(tables.gpus[v]) + " is not in 1..most_gpus");
    }
    if (auto fault = check_finite(tables.open, "open")) return fault;
    if (auto fault = check_finite(tables.wait, "wait")) return fault;
    return check_runs(tables);
}

Problem::Impl::Impl(const Tables& tables)
    : num_jobs(std::int32_t(tables.wait.size())),
      num_types(std::int32_t(tables.gpus.size())),
      most_gpus(tables.most_gpus),
      gpus(tables.gpus.begin(), tables.gpus.end()),
      open(tables.open.begin(), tables.open.end()),
      wait(tables.wait.begin(), tables.wait.end()),
      all_wait(std::accumulate(wait.begin(), wait.end(), 0.0)),
      gain_(tables.run.size()),
      pay_(tables.run.size()) {
    const std::size_t jobs = index(num_jobs);
    const std::size_t types = index(num_types);
    const std::size_t most = index(most_gpus);
    for (std::size_t j = 0; j < jobs; ++j) {
        for (std::size_t v = 0; v < types; ++v) {
            const std::size_t from = (j * types + v) * most;
            const std::size_t to = (v * jobs + j) * most;
            for (std::size_t g = 0; g < most; ++g) {
                gain_[to + g] = tables.run[from + g] - wait[j];
                pay_[to + g] = tables.pay[from + g];
            }
        }
    }
}

double Problem::Impl::cost(const Node& node) const {
    double gains = 0;
    double least = kNever;
    for (const auto& [job, given] : node.jobs) {
        TOPOPLACE_ASSERT(given >= 1 && given <= gpus[index(node.type)]);
        gains += gain(node.type, job)[index(given - 1)];
        least = std::min(least, pay(node.type, job)[index(given - 1)]);
    }
    return open[index(node.type)] + gains + least;
}

Problem::Problem(const Tables& tables) {
    TOPOPLACE_ASSERT(!check(tables));
    impl_ = std::make_shared<const Impl>(tables);
}

std::int32_t Problem::num_jobs() const { return impl_->num_jobs; }

}  // namespace topoplace::capacity
