// The edges that one search may use: those of at least some weight.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/sparse/target.hpp"

namespace topoplace::match::sparse {

class Edges {
  public:
    // Of at least `least`. Some are missing where `meter` stops.
    Edges(const Target::Sparse& target, double least, WorkMeter& meter)
        : target_(target), least_(least), length_(index(target.size()), 0) {
        for (std::int32_t v = 0; v < target.size(); ++v) {
            const auto weights = target.graph().weights(v);
            if (meter.pass_time(16 + 8 * weights.size())) return;
            for (const double weight : weights) length_[index(v)] += weight >= least ? 1 : 0;
        }
    }

    std::int32_t num_vertices() const { return target_.size(); }
    std::int32_t degree(std::int32_t v) const { return length_[index(v)]; }
    // Heaviest first.
    std::span<const std::int32_t> heads(std::int32_t v) const {
        return target_.heads(v).first(index(length_[index(v)]));
    }
    std::span<const Fixed> weights(std::int32_t v) const {
        return target_.weights(v).first(index(length_[index(v)]));
    }
    // 0 where there is none.
    Fixed weight(std::int32_t u, std::int32_t v) const {
        const Graph& graph = target_.graph();
        const double weight = graph.degree(u) < graph.degree(v) ? graph.weight(u, v) : graph.weight(v, u);
        return weight > 0 && weight >= least_ ? target_.points().of(weight) : 0;
    }
    template <class Visit>
    void each_neighbor(std::int32_t v, Visit&& visit) const {
        for (const std::int32_t u : heads(v)) visit(u);
    }

  private:
    const Target::Sparse& target_;
    double least_;
    std::vector<std::int32_t> length_;  // of the part of each vertex's row that is heavy enough
};

}  // namespace topoplace::match::sparse
