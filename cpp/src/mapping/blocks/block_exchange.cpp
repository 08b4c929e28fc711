// Exchange between blocks: for every task what it would cost in every block, kept up to date move by move.
#include "mapping/blocks/block_exchange.hpp"

#include <algorithm>
#include <cmath>

#include "mapping/problem/problem.hpp"

namespace topoplace::mapping {

BlockExchange::BlockExchange(const BlockProblem& problem)
    : problem_(problem),
      graph_(problem.source.graph()),
      tasks_in_(problem.room.size()),
      weight_to_(index(problem.source.size()), 0) {}

bool BlockExchange::start(const BlockOf& block_of, WorkMeter& meter) {
    ties_.resize(index(problem_.source.size()) * problem_.room.size());
    TOPOPLACE_ASSERT(problem_.fits(block_of));
    block_of_ = block_of;
    for (auto& tasks : tasks_in_) tasks.clear();
    for (std::int32_t a = 0; a < graph_.num_vertices(); ++a) {
        if (meter.visit(steps((1 + graph_.neighbors(a).size()) * problem_.room.size()))) return false;
        tasks_in_[index(block_of[index(a)])].push_back(a);
        double* row = ties(a);
        std::fill(row, row + problem_.size(), 0);
        for (std::size_t i = 0; i < graph_.neighbors(a).size(); ++i) {
            const double weight = graph_.weights(a)[i];
            const double* from = problem_.row(block_of[index(graph_.neighbors(a)[i])]);
            for (std::int32_t block = 0; block < problem_.size(); ++block) row[block] += weight * from[block];
        }
    }
    cost_ = problem_.cost(block_of);
    return true;
}

// Nearly: sums of changes round otherwise than sums of costs.
bool BlockExchange::is_consistent() const {
    return problem_.fits(block_of_) && std::abs(cost_ - problem_.cost(block_of_)) <= 1e4 * problem_.tolerance;
}

void BlockExchange::improve(WorkMeter& meter) {
    const auto tasks = static_cast<std::int32_t>(block_of_.size());
    std::int32_t settled = 0;  // tasks in a row that no exchange helps
    for (std::int32_t a = 0; settled < tasks; a = a + 1 < tasks ? a + 1 : 0) {
        if (meter.visit(steps(graph_.neighbors(a).size() * problem_.room.size()))) return;
        settled = improve(a) ? 0 : settled + 1;
        TOPOPLACE_ASSERT(is_consistent());
    }
}

// The best exchange of a task; of equally good ones that to the smallest block, then by the smallest task.
bool BlockExchange::improve(std::int32_t task) {
    const auto others = graph_.neighbors(task);
    for (std::size_t i = 0; i < others.size(); ++i) weight_to_[index(others[i])] = graph_.weights(task)[i];
    const double* row = ties(task);
    const double here = row[block_of_[index(task)]];
    Exchanged best{.change = -problem_.tolerance};
    for (std::int32_t block = 0; block < problem_.size(); ++block) {
        if (row[block] < here - problem_.tolerance) best_in(block, task, row[block] - here, best);
    }
    for (const std::int32_t other : others) weight_to_[index(other)] = 0;
    if (best.block == kAbsent) return false;
    exchange(task, best.block, best.other);
    cost_ += best.change;
    return true;
}

void BlockExchange::best_in(std::int32_t block, std::int32_t task, double gain, Exchanged& best) const {
    if (has_room(block) && gain < best.change) best = {.change = gain, .block = block};
    const std::int32_t here = block_of_[index(task)];
    const double apart =
        2 * problem_.row(here)[block] - problem_.row(here)[here] - problem_.row(block)[block];
    for (const std::int32_t other : tasks_in_[index(block)]) {
        const double* row = ties(other);
        const double change = gain + row[here] - row[block] + weight_to_[index(other)] * apart;
        const bool first = change == best.change && block == best.block && other < best.other;
        if (change < best.change || first) best = {.change = change, .block = block, .other = other};
    }
}

void BlockExchange::exchange(std::int32_t task, std::int32_t block, std::int32_t other) {
    const std::int32_t here = block_of_[index(task)];
    ++exchanges_;
    put(task, block);
    if (other != kAbsent) put(other, here);
}

void BlockExchange::put(std::int32_t task, std::int32_t block) {
    auto& left = tasks_in_[index(block_of_[index(task)])];
    *std::find(left.begin(), left.end(), task) = left.back();
    left.pop_back();
    tasks_in_[index(block)].push_back(task);
    const double* before = problem_.row(block_of_[index(task)]);
    const double* after = problem_.row(block);
    for (std::size_t i = 0; i < graph_.neighbors(task).size(); ++i) {
        const double weight = graph_.weights(task)[i];
        double* row = ties(graph_.neighbors(task)[i]);
        for (std::int32_t b = 0; b < problem_.size(); ++b) row[b] += weight * (after[b] - before[b]);
    }
    block_of_[index(task)] = block;
}

}  // namespace topoplace::mapping
