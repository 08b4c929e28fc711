#include "mapping/exchange.hpp"

#include <algorithm>

namespace topoplace::mapping {

Exchange::Exchange(const Problem& problem)
    : problem_(problem),
      graph_(problem.source.graph()),
      task_on_(problem.vertices.size()),
      ties_(at(problem.source.size()) * problem.vertices.size()),
      weight_to_(at(problem.source.size()), 0) {}

bool Exchange::start(const Places& places, NodeCounter& counter) {
    const auto arcs = 2 * static_cast<std::size_t>(graph_.num_edges());
    if (counter.visit(steps(arcs * problem_.vertices.size()))) return false;
    places_ = places;
    std::fill(task_on_.begin(), task_on_.end(), -1);
    for (std::int32_t a = 0; a < graph_.num_vertices(); ++a) {
        task_on_[at(places[at(a)])] = a;
        double* row = ties(a);
        std::copy(problem_.price.begin(), problem_.price.end(), row);
        for (std::size_t i = 0; i < graph_.neighbors(a).size(); ++i) {
            const double weight = graph_.weights(a)[i];
            const double* from = problem_.row(places[at(graph_.neighbors(a)[i])]);
            for (std::int32_t v = 0; v < problem_.size(); ++v) row[v] += weight * from[v];
        }
    }
    cost_ = problem_.cost(places);
    return true;
}

double Exchange::change(std::int32_t task, std::int32_t vertex) const {
    const std::int32_t here = places_[at(task)];
    const std::int32_t other = task_on_[at(vertex)];
    const double gain = ties(task)[vertex] - ties(task)[here];
    if (other < 0) return gain;
    return gain + ties(other)[here] - ties(other)[vertex] +
           2 * weight_to_[at(other)] * problem_.row(here)[vertex];
}

void Exchange::improve(NodeCounter& counter) {
    const auto tasks = static_cast<std::int32_t>(places_.size());
    std::int32_t settled = 0;  // tasks in a row that no exchange helps
    for (std::int32_t a = 0; settled < tasks; a = a + 1 < tasks ? a + 1 : 0) {
        if (counter.visit(steps(graph_.neighbors(a).size() * problem_.vertices.size()))) return;
        settled = improve(a) ? 0 : settled + 1;
    }
}

// The best exchange of a task; of equally good ones that to the smallest vertex.
bool Exchange::improve(std::int32_t task) {
    const auto others = graph_.neighbors(task);
    for (std::size_t i = 0; i < others.size(); ++i) weight_to_[at(others[i])] = graph_.weights(task)[i];
    double best = -problem_.tolerance;
    std::int32_t chosen = -1;
    for (std::int32_t v = 0; v < problem_.size(); ++v) {
        if (task_on_[at(v)] == task) continue;
        const double changed = change(task, v);
        if (changed >= best) continue;
        best = changed;
        chosen = v;
    }
    if (chosen >= 0) {
        exchange(task, chosen);
        cost_ += best;
    }
    for (const std::int32_t other : others) weight_to_[at(other)] = 0;
    return chosen >= 0;
}

void Exchange::exchange(std::int32_t task, std::int32_t vertex) {
    const std::int32_t here = places_[at(task)];
    const std::int32_t other = task_on_[at(vertex)];
    ++exchanges_;
    put(task, vertex);
    if (other >= 0) put(other, here);
    task_on_[at(here)] = other;
    task_on_[at(vertex)] = task;
}

void Exchange::put(std::int32_t task, std::int32_t vertex) {
    const double* before = problem_.row(places_[at(task)]);
    const double* after = problem_.row(vertex);
    for (std::size_t i = 0; i < graph_.neighbors(task).size(); ++i) {
        const double weight = graph_.weights(task)[i];
        double* row = ties(graph_.neighbors(task)[i]);
        for (std::int32_t v = 0; v < problem_.size(); ++v) row[v] += weight * (after[v] - before[v]);
    }
    places_[at(task)] = vertex;
}

void Exchange::kick(Random& random) {
    constexpr std::int32_t kExchanges = 3;
    for (std::int32_t i = 0; i < kExchanges; ++i) {
        const std::int32_t task = random.below(graph_.num_vertices());
        const std::int32_t vertex = random.below(problem_.size());
        if (places_[at(task)] != vertex) exchange(task, vertex);
    }
    cost_ = problem_.cost(places_);
}

}  // namespace topoplace::mapping
