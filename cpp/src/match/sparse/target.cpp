// Sorts every row once.
#include "match/sparse/target.hpp"

#include <algorithm>
#include <numeric>

#include "topoplace/made_once.hpp"

namespace topoplace::match {

struct Target::Sparse::Lazy {
    MadeOnce<std::vector<Fixed>> distinct;
};

Target::Sparse::Sparse(const Graph& graph, const FixedPoint& points)
    : graph_(graph), points_(points), lazy_(std::make_shared<Lazy>()) {
    begin_.reserve(index(size()) + 1);
    heads_.reserve(2 * static_cast<std::size_t>(graph.num_edges()));
    weights_.reserve(heads_.capacity());
}

std::optional<Target::Sparse> Target::Sparse::make(const Graph& graph, WorkMeter& meter) {
    const auto points = FixedPoint::make(graph, meter);
    if (!points) return std::nullopt;
    Sparse made(graph, *points);
    std::vector<std::size_t> order;
    for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
        const auto neighbors = graph.neighbors(v);
        const auto weights = graph.weights(v);
        if (meter.pass_time(64 + 256 * neighbors.size())) return std::nullopt;
        made.begin_.push_back(made.heads_.size());
        order.resize(neighbors.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
        });
        for (const std::size_t i : order) {
            made.heads_.push_back(neighbors[i]);
            made.weights_.push_back(points->of(weights[i]));
        }
    }
    made.begin_.push_back(made.heads_.size());
    return made;
}

std::span<const Fixed> Target::Sparse::distinct_weights(WorkMeter& meter) const {
    const auto* made = lazy_->distinct.get([&]() -> std::optional<std::vector<Fixed>> {
        DistinctWeights distinct;
        for (std::int32_t v = 0; v < size(); ++v) {
            const auto row = heads(v);
            if (meter.pass_time(64 * row.size())) return std::nullopt;
            for (std::size_t i = 0; i < row.size(); ++i) {
                if (v < row[i]) distinct.add(weights(v)[i]);
            }
        }
        return distinct.take();
    });
    if (made == nullptr) return {};
    return *made;
}

}  // namespace topoplace::match
