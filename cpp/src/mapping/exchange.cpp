// Pairwise exchange: for every task what it would cost on every vertex, kept up to date move by move.
#include "mapping/exchange.hpp"

#include <algorithm>
#include <cmath>

#include "graph/index.hpp"

namespace topoplace::mapping {

Exchange::Exchange(const Problem& problem)
    : problem_(problem),
      graph_(problem.source.graph()),
      task_on_(problem.vertices.size()),
      ties_(std::make_unique_for_overwrite<double[]>(index(problem.source.size()) * problem.vertices.size())),
      weight_to_(index(problem.source.size()), 0) {}

bool Exchange::start(const Places& places, WorkMeter& meter) {
    const auto arcs = 2 * static_cast<std::uint64_t>(graph_.num_edges());
    if (meter.visit(steps(arcs * problem_.vertices.size()))) return false;
    places_ = places;
    std::fill(task_on_.begin(), task_on_.end(), kAbsent);
    for (std::int32_t a = 0; a < graph_.num_vertices(); ++a) {
        if (meter.pass_time(4 * (1 + graph_.neighbors(a).size()) * problem_.vertices.size())) return false;
        task_on_[index(places[index(a)])] = a;
        double* row = ties(a);
        std::copy(problem_.price.begin(), problem_.price.end(), row);
        for (std::size_t i = 0; i < graph_.neighbors(a).size(); ++i) {
            const double weight = graph_.weights(a)[i];
            const double* from = problem_.row(places[index(graph_.neighbors(a)[i])]);
            for (std::int32_t v = 0; v < problem_.size(); ++v) row[v] += weight * from[v];
        }
    }
    cost_ = problem_.cost(places);
    TOPOPLACE_ASSERT(is_consistent());
    return true;
}

// Nearly: sums of changes round otherwise than sums of costs.
bool Exchange::is_consistent() const {
    for (std::size_t a = 0; a < places_.size(); ++a) {
        if (task_on_[index(places_[a])] != static_cast<std::int32_t>(a)) return false;
    }
    const auto used =
        std::count_if(task_on_.begin(), task_on_.end(), [](auto task) { return task != kAbsent; });
    const bool cost_is_right = std::abs(cost_ - problem_.cost(places_)) <= 1e4 * problem_.tolerance;
    return used == std::ssize(places_) && cost_is_right;
}

double Exchange::change(std::int32_t task, std::int32_t vertex) const {
    const std::int32_t here = places_[index(task)];
    const std::int32_t other = task_on_[index(vertex)];
    TOPOPLACE_ASSERT(other != task);
    const double gain = ties(task)[vertex] - ties(task)[here];
    if (other == kAbsent) return gain;
    return gain + ties(other)[here] - ties(other)[vertex] +
           2 * weight_to_[index(other)] * problem_.row(here)[vertex];
}

void Exchange::improve(WorkMeter& meter) {
    const auto tasks = static_cast<std::int32_t>(places_.size());
    std::int32_t settled = 0;  // tasks in a row that no exchange helps
    for (std::int32_t a = 0; settled < tasks; a = a + 1 < tasks ? a + 1 : 0) {
        if (meter.visit(steps(graph_.neighbors(a).size() * problem_.vertices.size()))) return;
        if (meter.pass_time(16 * problem_.vertices.size())) return;
        settled = improve(a) ? 0 : settled + 1;
        TOPOPLACE_ASSERT(is_consistent());
    }
}

// The best exchange of a task; of equally good ones that to the smallest vertex.
bool Exchange::improve(std::int32_t task) {
    const auto others = graph_.neighbors(task);
    for (std::size_t i = 0; i < others.size(); ++i) weight_to_[index(others[i])] = graph_.weights(task)[i];
    double best = -problem_.tolerance;
    std::int32_t chosen = kAbsent;
    for (std::int32_t v = 0; v < problem_.size(); ++v) {
        if (task_on_[index(v)] == task) continue;
        const double changed = change(task, v);
        if (changed >= best) continue;
        best = changed;
        chosen = v;
    }
    if (chosen != kAbsent) {
        TOPOPLACE_ASSERT(best < -problem_.tolerance);
        exchange(task, chosen);
        cost_ += best;
    }
    for (const std::int32_t other : others) weight_to_[index(other)] = 0;
    return chosen != kAbsent;
}

void Exchange::exchange(std::int32_t task, std::int32_t vertex) {
    const std::int32_t here = places_[index(task)];
    const std::int32_t other = task_on_[index(vertex)];
    ++exchanges_;
    put(task, vertex);
    if (other != kAbsent) put(other, here);
    task_on_[index(here)] = other;
    task_on_[index(vertex)] = task;
}

void Exchange::put(std::int32_t task, std::int32_t vertex) {
    const double* before = problem_.row(places_[index(task)]);
    const double* after = problem_.row(vertex);
    for (std::size_t i = 0; i < graph_.neighbors(task).size(); ++i) {
        const double weight = graph_.weights(task)[i];
        double* row = ties(graph_.neighbors(task)[i]);
        for (std::int32_t v = 0; v < problem_.size(); ++v) row[v] += weight * (after[v] - before[v]);
    }
    places_[index(task)] = vertex;
}

void Exchange::kick(Random& random) {
    constexpr std::int32_t kExchanges = 3;
    for (std::int32_t i = 0; i < kExchanges; ++i) {
        const std::int32_t task = random.below(graph_.num_vertices());
        const std::int32_t vertex = random.below(problem_.size());
        if (places_[index(task)] != vertex) exchange(task, vertex);
    }
    cost_ = problem_.cost(places_);
}

}  // namespace topoplace::mapping
