// A target as lists: the neighbours of each vertex, over its heaviest edges first, in fixed point.
//
// Memory: 12 bytes for each end of an edge in addition to the graph's own 12, and 8 for each distinct weight
// where a search asks for bottlenecks. A search adds about 40 bytes a vertex.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/fixed_point.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {

class Target::Sparse {
  public:
    // None where `meter` stops.
    static std::optional<Sparse> make(const Graph& graph, WorkMeter& meter);

    std::int32_t size() const { return graph_.num_vertices(); }
    const Graph& graph() const { return graph_; }
    const FixedPoint& points() const { return points_; }

    // Descending by weight, then ascending by vertex.
    std::span<const std::int32_t> heads(std::int32_t v) const { return row(heads_, v); }
    // Aligned with heads(v).
    std::span<const Fixed> weights(std::int32_t v) const { return row(weights_, v); }
    // All that occur, heaviest first; made on first use. Empty where `meter` stops.
    std::span<const Fixed> distinct_weights(WorkMeter& meter) const;

  private:
    struct Lazy;
    Sparse(const Graph& graph, const FixedPoint& points);
    template <class T>
    std::span<const T> row(const std::vector<T>& values, std::int32_t v) const {
        return std::span(values).subspan(begin_[index(v)], begin_[index(v) + 1] - begin_[index(v)]);
    }

    Graph graph_;
    FixedPoint points_;
    std::vector<std::size_t> begin_;
    std::vector<std::int32_t> heads_;
    std::vector<Fixed> weights_;
    std::shared_ptr<Lazy> lazy_;
};

}  // namespace topoplace::match
