#include "mapping/problem.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace topoplace::mapping {

double dearest(const Source::Impl& source, const Target::Impl& target, std::span<const double> target_cost) {
    double price = 0;
    for (const double cost : target_cost) price = std::max(price, cost);
    return source.total_weight() * target.largest() + source.size() * price;
}

Problem::Problem(const Source::Impl& the_source, const Target::Impl& target,
                 std::vector<std::int32_t> the_vertices, std::span<const double> target_cost)
    : source(the_source),
      vertices(std::move(the_vertices)),
      distance(vertices.size() * vertices.size()),
      price(vertices.size(), 0),
      tolerance(1e-12 * dearest(source, target, target_cost)) {
    double* out = distance.data();
    for (const std::int32_t u : vertices) {
        const double* from = target.row(u);
        for (const std::int32_t v : vertices) *out++ = from[v];
    }
    if (target_cost.empty()) return;
    for (std::size_t i = 0; i < vertices.size(); ++i) price[i] = target_cost[at(vertices[i])];
}

double Problem::cost(const Places& places) const {
    const Graph& graph = source.graph();
    double sum = 0;
    for (std::int32_t a = 0; a < source.size(); ++a) {
        const double* from = row(places[at(a)]);
        const auto others = graph.neighbors(a);
        const auto weights = graph.weights(a);
        for (std::size_t i = 0; i < others.size() && others[i] < a; ++i)
            sum += weights[i] * from[places[at(others[i])]];
    }
    for (const std::int32_t place : places) sum += price[at(place)];
    return sum;
}

Nearest::Nearest(const Problem& problem, std::int32_t count)
    : count_(std::max(0, std::min(count, problem.size() - 1))), near_(problem.vertices.size() * at(count_)) {
    std::vector<std::int32_t> others(problem.vertices.size());
    for (std::int32_t v = 0; v < problem.size(); ++v) {
        const double* from = problem.row(v);
        std::iota(others.begin(), others.end(), 0);
        std::swap(others[0], others[at(v)]);
        const auto nearer = [&](std::int32_t x, std::int32_t y) {
            return from[x] != from[y] ? from[x] < from[y] : x < y;
        };
        const auto end = others.begin() + 1 + count_;
        if (end != others.end()) std::nth_element(others.begin() + 1, end, others.end(), nearer);
        std::sort(others.begin() + 1, end, nearer);
        std::copy(others.begin() + 1, end, near_.begin() + static_cast<std::ptrdiff_t>(at(v) * at(count_)));
    }
}

double simple_bound(const Problem& problem) {
    std::int32_t degree = 0;
    for (const auto& halves : problem.source.halves())
        degree = std::max(degree, static_cast<std::int32_t>(halves.size()));
    const Nearest nearest(problem, degree);
    double bound = 0;
    for (const auto& halves : problem.source.halves()) {
        double least = std::numeric_limits<double>::infinity();
        for (std::int32_t v = 0; v < problem.size(); ++v) {
            double sum = problem.price[at(v)];
            const auto near = nearest.of(v);
            for (std::size_t i = 0; i < halves.size(); ++i) sum += halves[i] * problem.row(v)[near[i]];
            least = std::min(least, sum);
        }
        bound += least;
    }
    return bound;
}

}  // namespace topoplace::mapping
