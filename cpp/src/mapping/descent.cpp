// Dual recursive bipartitioning of tasks along the tree of a target's halves.
//
// References: Amaral et al., SC 2017, algorithms 2 and 3; Pellegrini, SHPCC 1994.
#include "mapping/descent.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "graph/index.hpp"

namespace topoplace::mapping {
namespace {

constexpr std::int32_t kExact = 16;  // tasks up to which the least cut between the halves is proven

}  // namespace

void set_limits(const std::array<std::int32_t, 2>& room, std::int32_t tasks,
                partition::BipartitionParams& params) {
    TOPOPLACE_ASSERT(room[0] > 0 && room[1] > 0 && room[0] + room[1] >= tasks);
    const double zero = room[0];
    const double one = room[1];
    params.fraction = zero / (zero + one);
    const double slack_of_zero = zero / std::ceil(params.fraction * tasks - 1e-9);
    const double slack_of_one = one / std::ceil((1 - params.fraction) * tasks - 1e-9);
    params.imbalance = std::max(0.0, std::min(slack_of_zero, slack_of_one) - 1);
}

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
    for (std::size_t i = 0; i < leaf.size(); ++i) leaf[index(halves.order[i])] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < leaf_of_.size(); ++i) leaf_of_[i] = leaf[index(problem.vertices[i])];
}

void TreeOrder::restrict_to(std::span<const std::int32_t> region) {
    vertices_.assign(region.begin(), region.end());
    std::sort(vertices_.begin(), vertices_.end(),
              [this](std::int32_t u, std::int32_t v) { return leaf_of_[index(u)] < leaf_of_[index(v)]; });
    leaves_.clear();
    for (const std::int32_t v : vertices_) leaves_.push_back(leaf_of_[index(v)]);
    TOPOPLACE_ASSERT(std::adjacent_find(leaves_.begin(), leaves_.end(), std::greater_equal<>()) ==
                     leaves_.end());
}

std::span<const std::int32_t> TreeOrder::below(std::int32_t part) const {
    const Part& bounds = halves_.parts[index(part)];
    const auto begin = std::lower_bound(leaves_.begin(), leaves_.end(), bounds.begin);
    const auto end = std::lower_bound(begin, leaves_.end(), bounds.end);
    return std::span(vertices_).subspan(static_cast<std::size_t>(begin - leaves_.begin()),
                                        static_cast<std::size_t>(end - begin));
}

Descent::Descent(const Problem& problem, const Halves& halves)
    : problem_(problem), tree_(problem, halves), place_in_span_(index(problem.source.size())) {}

const Places* Descent::run(std::span<const std::int32_t> region, Dividing dividing, WorkMeter& meter) {
    meter_ = &meter;
    TOPOPLACE_ASSERT(std::ssize(region) >= problem_.source.size());
    dividing_ = dividing;
    tree_.restrict_to(region);
    const Ranking* ranking = problem_.source.ranking(meter);
    if (ranking == nullptr) return nullptr;
    tasks_ = ranking->order;
    part_of_.assign(tasks_.size(), 0);
    places_.assign(tasks_.size(), kAbsent);
    descend(0, tasks_);
    if (meter.stopped()) return nullptr;
    TOPOPLACE_ASSERT(problem_.is_injective(places_));
    return &places_;
}

void Descent::descend(std::int32_t part, Tasks tasks) {
    if (tasks.empty() || meter_->stopped()) return;
    TOPOPLACE_ASSERT(tasks.size() <= tree_.below(part).size());
    if (tasks.size() == 1) {
        settle(tasks.front(), tree_.below(part));
    } else {
        divide(part, tasks);
    }
}

void Descent::divide(std::int32_t part, Tasks tasks) {
    Division division{.part = part, .half = {}, .room = {}, .within = {}, .across = 0};
    std::array<Vertices, 2> below;
    for (const std::size_t side : {0U, 1U}) {
        division.half[side] = tree_.halves().parts[index(part)].half[side];
        TOPOPLACE_ASSERT(division.half[side] > part);
        below[side] = tree_.below(division.half[side]);
        division.room[side] = static_cast<std::int32_t>(below[side].size());
        division.within[side] = distance_of_neighbors(problem_, below[side]);
    }
    TOPOPLACE_ASSERT(below[0].size() + below[1].size() == tree_.below(part).size());
    division.across = mean_distance(problem_, below[0], below[1]);
    const bool at_once = dividing_ == Dividing::cut && tasks.size() > kFew && cut(division, tasks);
    if (!at_once) assign(division, tasks);
    if (meter_->stopped()) return;
    const auto middle = std::stable_partition(tasks.begin(), tasks.end(), [&](std::int32_t task) {
        return part_of_[index(task)] == division.half[0];
    });
    const auto first = static_cast<std::size_t>(middle - tasks.begin());
    descend(division.half[0], tasks.first(first));
    descend(division.half[1], tasks.subspan(first));
}

// The paper's algorithm 3: each task to the half where it costs less.
void Descent::assign(Division& division, Tasks tasks) {
    auto left = static_cast<std::int32_t>(tasks.size());
    for (const std::int32_t task : tasks) {
        if (meter_->pass_time(128 * (1 + problem_.source.graph().neighbors(task).size()))) return;
        const auto side = index(cheaper_half(task, division, left--));
        --division.room[side];
        TOPOPLACE_ASSERT(division.room[side] >= 0);
        part_of_[index(task)] = division.half[side];
    }
}

// All at once: the tasks' graph is split where little crosses, in the unit of costs. What draws a task to
// either half from outside the part ties it to one of two vertices that are fixed there. False where staying
// together is no cheaper than being apart.
bool Descent::cut(const Division& division, Tasks tasks) {
    const double gap = division.across - (division.within[0] + division.within[1]) / 2;
    if (gap <= problem_.tolerance || division.room[0] == 0 || division.room[1] == 0) return false;
    const auto size = static_cast<std::int32_t>(tasks.size());
    const auto edges = ties(division, tasks, gap);
    if (meter_->stopped()) return false;
    std::vector<std::int64_t> weights(tasks.size(), 1);
    weights.insert(weights.end(), {0, 0});
    std::vector<std::int8_t> fixed(tasks.size(), partition::kFreeVertex);
    fixed.insert(fixed.end(), {0, 1});
    partition::BipartitionParams params;
    set_limits(division.room, size, params);
    params.vertex_weights = weights;
    params.fixed = fixed;
    params.exact_up_to = kExact;
    params.stop = meter_->deadline();
    const auto found = partition::bipartition(Graph(size + 2, edges), params, &workspace_);
    if (found.side.empty()) return false;
    TOPOPLACE_ASSERT(found.side[tasks.size()] == 0 && found.side[tasks.size() + 1] == 1);
    TOPOPLACE_ASSERT(std::count(found.side.begin(), found.side.end() - 2, 0) <= division.room[0]);
    TOPOPLACE_ASSERT(std::count(found.side.begin(), found.side.end() - 2, 1) <= division.room[1]);
    for (std::size_t i = 0; i < tasks.size(); ++i)
        part_of_[index(tasks[i])] = division.half[index(found.side[i])];
    return true;
}

// Among the tasks, by their place in the span, and to the two vertices after them.
std::vector<Edge> Descent::ties(const Division& division, Tasks tasks, double gap) {
    const auto size = static_cast<std::int32_t>(tasks.size());
    for (std::int32_t i = 0; i < size; ++i) place_in_span_[index(tasks[index(i)])] = i;
    const Graph& graph = problem_.source.graph();
    std::vector<Edge> edges;
    for (std::int32_t i = 0; i < size; ++i) {
        const std::int32_t task = tasks[index(i)];
        if (meter_->pass_time(128 * (1 + graph.neighbors(task).size()))) return edges;
        std::array<double, 2> cost{};
        for (const std::size_t side : {0U, 1U}) cost[side] = cost_outside(task, division, side);
        if (std::abs(cost[0] - cost[1]) > problem_.tolerance)
            edges.push_back({i, cost[0] < cost[1] ? size : size + 1, std::abs(cost[0] - cost[1])});
        for (std::size_t j = 0; j < graph.neighbors(task).size(); ++j) {
            const std::int32_t other = graph.neighbors(task)[j];
            const double apart = graph.weights(task)[j] * gap;
            if (other < task && apart > 0 && is_open(other, division))
                edges.push_back({i, place_in_span_[index(other)], apart});
        }
    }
    return edges;
}

bool Descent::is_open(std::int32_t task, const Division& division) const {
    return places_[index(task)] == kAbsent && part_of_[index(task)] == division.part;
}

// In a half, to the tasks outside the part.
double Descent::cost_outside(std::int32_t task, const Division& division, std::size_t side) const {
    const Graph& graph = problem_.source.graph();
    const Vertices here = tree_.below(division.half[side]);
    double cost = mean_price(here);
    for (std::size_t i = 0; i < graph.neighbors(task).size(); ++i) {
        const std::int32_t& other = graph.neighbors(task)[i];
        if (!is_open(other, division))
            cost += graph.weights(task)[i] * mean_distance(problem_, here, around(other));
    }
    return cost;
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
    const auto s = index(side);
    const Vertices here = tree_.below(division.half[s]);
    const double share = std::min(1.0, static_cast<double>(division.room[s]) / tasks_left);
    const double ahead = share * division.within[s] + (1 - share) * division.across;
    const Graph& graph = problem_.source.graph();
    double cost = mean_price(here);
    for (std::size_t i = 0; i < graph.neighbors(task).size(); ++i) {
        const std::int32_t& other = graph.neighbors(task)[i];
        const std::int32_t part = places_[index(other)] == kAbsent ? part_of_[index(other)] : kAbsent;
        const double distance = part == division.part      ? ahead
                                : part == division.half[s] ? division.within[s]
                                                           : mean_distance(problem_, here, around(other));
        cost += graph.weights(task)[i] * distance;
    }
    return cost;
}

std::span<const std::int32_t> Descent::around(const std::int32_t& task) const {
    const std::int32_t& place = places_[index(task)];
    return place != kAbsent ? Vertices(&place, 1) : tree_.below(part_of_[index(task)]);
}

double Descent::mean_price(Vertices vertices) const {
    double sum = 0;
    for (const std::int32_t v : vertices) sum += problem_.price[index(v)];
    return vertices.empty() ? 0 : sum / static_cast<double>(vertices.size());
}

// On the vertex where it costs least; of equal ones the smallest.
void Descent::settle(std::int32_t task, Vertices vertices) {
    TOPOPLACE_ASSERT(!vertices.empty() && places_[index(task)] == kAbsent);
    const Graph& graph = problem_.source.graph();
    double least = std::numeric_limits<double>::infinity();
    std::int32_t chosen = vertices.front();
    for (const std::int32_t& v : vertices) {
        if (vertices.size() == 1) break;
        double cost = problem_.price[index(v)];
        for (std::size_t i = 0; i < graph.neighbors(task).size(); ++i) {
            cost += graph.weights(task)[i] *
                    mean_distance(problem_, Vertices(&v, 1), around(graph.neighbors(task)[i]));
        }
        if (cost < least - problem_.tolerance || (cost <= least && v < chosen)) {
            least = cost;
            chosen = v;
        }
    }
    places_[index(task)] = chosen;
}

}  // namespace topoplace::mapping
