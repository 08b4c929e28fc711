// The dense problem that searches share: distances, prices and simple bounds.
//
// Reference for the bound: Gilmore, J. SIAM 10 (1962).
#include "mapping/problem/problem.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "graph/index.hpp"

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
      price(vertices.size(), 0),
      tolerance(1e-12 * dearest(source, target, target_cost)),
      distance_(target.row(0)) {
    TOPOPLACE_ASSERT(std::is_sorted(vertices.begin(), vertices.end(), std::less_equal<>()));
    TOPOPLACE_ASSERT(tolerance >= 0 && std::isfinite(tolerance));
    if (size() < target.size()) {
        selected_.reserve(vertices.size() * vertices.size());
        for (const std::int32_t u : vertices) {
            const double* from = target.row(u);
            for (const std::int32_t v : vertices) selected_.push_back(from[v]);
        }
        distance_ = selected_.data();
    }
    if (target_cost.empty()) return;
    for (std::size_t i = 0; i < vertices.size(); ++i) price[i] = target_cost[index(vertices[i])];
}

bool Problem::is_injective(const Places& places) const {
    std::vector<bool> used(vertices.size(), false);
    for (const std::int32_t place : places) {
        if (place < 0 || place >= size() || used[index(place)]) return false;
        used[index(place)] = true;
    }
    return std::ssize(places) == source.size();
}

double Problem::cost(const Places& places) const {
    TOPOPLACE_ASSERT(is_injective(places));
    const Graph& graph = source.graph();
    double sum = 0;
    for (std::int32_t a = 0; a < source.size(); ++a) {
        const double* from = row(places[index(a)]);
        const auto others = graph.neighbors(a);
        const auto weights = graph.weights(a);
        for (std::size_t i = 0; i < others.size() && others[i] < a; ++i)
            sum += weights[i] * from[places[index(others[i])]];
    }
    for (const std::int32_t place : places) sum += price[index(place)];
    return sum;
}

std::optional<Nearest> Nearest::make(const Problem& problem, std::int32_t most, WorkMeter& meter) {
    std::optional<Nearest> nearest(Nearest(problem, most));
    const std::int32_t count = nearest->count_;
    std::vector<std::int32_t> others(problem.vertices.size());
    for (std::int32_t v = 0; v < problem.size(); ++v) {
        if (meter.pass_time(64 * (others.size() + index(count)))) return std::nullopt;
        const double* from = problem.row(v);
        std::iota(others.begin(), others.end(), 0);
        std::swap(others[0], others[index(v)]);
        const auto nearer = [&](std::int32_t x, std::int32_t y) {
            return from[x] != from[y] ? from[x] < from[y] : x < y;
        };
        const auto end = others.begin() + 1 + count;
        if (end != others.end()) std::nth_element(others.begin() + 1, end, others.end(), nearer);
        std::sort(others.begin() + 1, end, nearer);
        TOPOPLACE_ASSERT(others[0] == v);
        std::copy(others.begin() + 1, end,
                  nearest->near_.begin() + static_cast<std::ptrdiff_t>(index(v) * index(count)));
    }
    return nearest;
}

std::optional<double> simple_bound(const Problem& problem, WorkMeter& meter) {
    const Ranking* ranking = problem.source.ranking(meter);
    if (ranking == nullptr) return std::nullopt;
    const auto degree_of = [](const auto& halves) { return halves.size(); };
    const auto largest = std::ranges::max_element(ranking->halves, {}, degree_of);
    const auto nearest = Nearest::make(problem, static_cast<std::int32_t>(largest->size()), meter);
    if (!nearest) return std::nullopt;
    double bound = 0;
    for (const auto& halves : ranking->halves) {
        if (meter.pass_time(8 * (1 + halves.size()) * problem.vertices.size())) return std::nullopt;
        double least = std::numeric_limits<double>::infinity();
        for (std::int32_t v = 0; v < problem.size(); ++v) {
            double sum = problem.price[index(v)];
            const auto near = nearest->of(v);
            TOPOPLACE_ASSERT(halves.size() <= near.size());
            for (std::size_t i = 0; i < halves.size(); ++i) sum += halves[i] * problem.row(v)[near[i]];
            least = std::min(least, sum);
        }
        TOPOPLACE_ASSERT(least >= 0 && std::isfinite(least));
        bound += least;
    }
    return bound;
}

}  // namespace topoplace::mapping
