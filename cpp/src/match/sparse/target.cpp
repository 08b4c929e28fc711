// Sorts every row once.
#include "match/sparse/target.hpp"

#include <algorithm>
#include <numeric>

#include "topoplace/made_once.hpp"

namespace topoplace::match {

struct Target::Sparse::Lazy {
    MadeOnce<std::vector<Fixed>> distinct;
};

Target::Sparse::Sparse(const Graph& graph, WorkMeter& meter)
    : graph_(graph), points_(graph, meter), lazy_(std::make_shared<Lazy>()) {
    begin_.reserve(index(size()) + 1);
    heads_.reserve(2 * static_cast<std::size_t>(graph.num_edges()));
    weights_.reserve(heads_.capacity());
    std::vector<std::size_t> order;
    for (std::int32_t v = 0; v < size(); ++v) {
        const auto neighbors = graph.neighbors(v);
        const auto weights = graph.weights(v);
        meter.prepare(64 + 256 * neighbors.size());
        begin_.push_back(heads_.size());
        order.resize(neighbors.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
        });
        for (const std::size_t i : order) {
            heads_.push_back(neighbors[i]);
            weights_.push_back(points_.of(weights[i]));
        }
    }
    begin_.push_back(heads_.size());
}

std::span<const Fixed> Target::Sparse::distinct_weights(WorkMeter& meter) const {
    return lazy_->distinct.get([&] {
        DistinctWeights distinct;
        for (std::int32_t v = 0; v < size(); ++v) {
            const auto row = heads(v);
            meter.prepare(64 * row.size());
            for (std::size_t i = 0; i < row.size(); ++i) {
                if (v < row[i]) distinct.add(weights(v)[i]);
            }
        }
        return distinct.take();
    });
}

}  // namespace topoplace::match
