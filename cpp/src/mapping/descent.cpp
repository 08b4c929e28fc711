#include "mapping/descent.hpp"

#include <algorithm>
#include <limits>

namespace topoplace::mapping {

double mean_distance(const Problem& problem, std::span<const std::int32_t> some,
                     std::span<const std::int32_t> others) {
    constexpr std::size_t kSeen = 4;
    const std::size_t rows = std::min(kSeen, some.size());
    const std::size_t columns = std::min(kSeen, others.size());
    double sum = 0;
    std::int32_t pairs = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        const std::int32_t u = some[i * some.size() / rows];
        for (std::size_t j = 0; j < columns; ++j) {
            const std::int32_t v = others[j * others.size() / columns];
            sum += problem.row(u)[v];
            pairs += u != v ? 1 : 0;
        }
    }
    return pairs == 0 ? 0 : sum / pairs;
}

double distance_of_neighbors(const Problem& problem, std::span<const std::int32_t> vertices) {
    double sum = 0;
    for (std::size_t i = 1; i < vertices.size(); ++i) sum += problem.row(vertices[i - 1])[vertices[i]];
    return vertices.size() < 2 ? 0 : sum / static_cast<double>(vertices.size() - 1);
}

TreeOrder::TreeOrder(const Problem& problem, const Halves& halves)
    : halves_(halves), leaf_of_(problem.vertices.size()) {
    std::vector<std::int32_t> leaf(halves.order.size());
    for (std::size_t i = 0; i < leaf.size(); ++i) leaf[at(halves.order[i])] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < leaf_of_.size(); ++i) leaf_of_[i] = leaf[at(problem.vertices[i])];
}

void TreeOrder::restrict_to(std::span<const std::int32_t> region) {
    vertices_.assign(region.begin(), region.end());
    std::sort(vertices_.begin(), vertices_.end(),
              [this](std::int32_t u, std::int32_t v) { return leaf_of_[at(u)] < leaf_of_[at(v)]; });
    leaves_.clear();
    for (const std::int32_t v : vertices_) leaves_.push_back(leaf_of_[at(v)]);
}

std::span<const std::int32_t> TreeOrder::below(std::int32_t part) const {
    const Part& bounds = halves_.parts[at(part)];
    const auto begin = std::lower_bound(leaves_.begin(), leaves_.end(), bounds.begin);
    const auto end = std::lower_bound(begin, leaves_.end(), bounds.end);
    return std::span(vertices_).subspan(static_cast<std::size_t>(begin - leaves_.begin()),
                                        static_cast<std::size_t>(end - begin));
}

Descent::Descent(const Problem& problem, const Halves& halves) : problem_(problem), tree_(problem, halves) {}

const Places& Descent::run(std::span<const std::int32_t> region) {
    tree_.restrict_to(region);
    tasks_ = problem_.source.order();
    part_of_.assign(tasks_.size(), 0);
    places_.assign(tasks_.size(), -1);
    descend(0, tasks_);
    return places_;
}

void Descent::descend(std::int32_t part, Tasks tasks) {
    if (tasks.empty()) return;
    if (tasks.size() == 1) {
        settle(tasks.front(), tree_.below(part));
    } else {
        divide(part, tasks);
    }
}

// The paper's algorithm 3: each task to the half where it costs less.
void Descent::divide(std::int32_t part, Tasks tasks) {
    Division division{part, {}, {}, {}, 0};
    std::array<Vertices, 2> below;
    for (const std::size_t side : {0U, 1U}) {
        division.half[side] = tree_.halves().parts[at(part)].half[side];
        below[side] = tree_.below(division.half[side]);
        division.room[side] = static_cast<std::int32_t>(below[side].size());
        division.within[side] = distance_of_neighbors(problem_, below[side]);
    }
    division.across = mean_distance(problem_, below[0], below[1]);
    auto left = static_cast<std::int32_t>(tasks.size());
    for (const std::int32_t task : tasks) {
        const auto side = static_cast<std::size_t>(cheaper_half(task, division, left--));
        --division.room[side];
        part_of_[at(task)] = division.half[side];
    }
    const auto middle = std::stable_partition(tasks.begin(), tasks.end(), [&](std::int32_t task) {
        return part_of_[at(task)] == division.half[0];
    });
    const auto first = static_cast<std::size_t>(middle - tasks.begin());
    descend(division.half[0], tasks.first(first));
    descend(division.half[1], tasks.subspan(first));
}

int Descent::cheaper_half(std::int32_t task, const Division& division, std::int32_t tasks_left) const {
    if (division.room[0] == 0 || division.room[1] == 0) return division.room[0] == 0 ? 1 : 0;
    const double zero = cost_in(task, 0, division, tasks_left);
    const double one = cost_in(task, 1, division, tasks_left);
    return one < zero - problem_.tolerance ? 1 : 0;
}

// A neighbour whose half is not chosen yet is taken to follow the task as far as there is room.
double Descent::cost_in(std::int32_t task, int side, const Division& division,
                        std::int32_t tasks_left) const {
    const auto s = static_cast<std::size_t>(side);
    const Vertices here = tree_.below(division.half[s]);
    const double share = std::min(1.0, static_cast<double>(division.room[s]) / tasks_left);
    const double ahead = share * division.within[s] + (1 - share) * division.across;
    const Graph& graph = problem_.source.graph();
    double cost = mean_price(here);
    for (std::size_t i = 0; i < graph.neighbors(task).size(); ++i) {
        const std::int32_t& other = graph.neighbors(task)[i];
        const std::int32_t part = places_[at(other)] < 0 ? part_of_[at(other)] : -1;
        const double distance = part == division.part      ? ahead
                                : part == division.half[s] ? division.within[s]
                                                           : mean_distance(problem_, here, around(other));
        cost += graph.weights(task)[i] * distance;
    }
    return cost;
}

std::span<const std::int32_t> Descent::around(const std::int32_t& task) const {
    const std::int32_t& place = places_[at(task)];
    return place >= 0 ? Vertices(&place, 1) : tree_.below(part_of_[at(task)]);
}

double Descent::mean_price(Vertices vertices) const {
    double sum = 0;
    for (const std::int32_t v : vertices) sum += problem_.price[at(v)];
    return vertices.empty() ? 0 : sum / static_cast<double>(vertices.size());
}

// On the vertex where it costs least; of equal ones the smallest.
void Descent::settle(std::int32_t task, Vertices vertices) {
    const Graph& graph = problem_.source.graph();
    double least = std::numeric_limits<double>::infinity();
    std::int32_t chosen = vertices.front();
    for (const std::int32_t& v : vertices) {
        if (vertices.size() == 1) break;
        double cost = problem_.price[at(v)];
        for (std::size_t i = 0; i < graph.neighbors(task).size(); ++i) {
            cost += graph.weights(task)[i] *
                    mean_distance(problem_, Vertices(&v, 1), around(graph.neighbors(task)[i]));
        }
        if (cost < least - problem_.tolerance || (cost <= least && v < chosen)) {
            least = cost;
            chosen = v;
        }
    }
    places_[at(task)] = chosen;
}

}  // namespace topoplace::mapping
