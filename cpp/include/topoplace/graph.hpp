// An undirected, simple, weighted graph in compressed sparse rows: what every kernel takes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topoplace/assert.hpp"
#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace {

struct Edge {
    std::int32_t u = 0;
    std::int32_t v = 0;
    double weight = 1.0;
};

// Immutable; copies share the rows.
class Graph {
  public:
    // Each edge once, in either direction.
    Graph(std::int32_t num_vertices, std::span<const Edge> edges);
    // The same. None where it is stopped first, or where `fault` is set: it names the edge that is out of
    // range, a loop, repeated, or whose weight is not positive and finite.
    static std::optional<Graph> of_edges(std::int32_t num_vertices, std::span<const Edge> edges,
                                         const StopCondition& stop, Fault& fault);

    // From a row-major matrix, 0 where there is no edge. None where it is stopped first, or where `fault` is
    // set: unless it is symmetric, with zeros on its diagonal and no entry negative, infinite or no number.
    static std::optional<Graph> of_matrix(std::int32_t num_vertices, std::span<const double> matrix,
                                          const StopCondition& stop, Fault& fault);

    std::int32_t num_vertices() const { return static_cast<std::int32_t>(offsets_.size()) - 1; }
    std::int64_t num_edges() const { return static_cast<std::int64_t>(neighbors_.size()) / 2; }
    std::int32_t degree(std::int32_t v) const { return static_cast<std::int32_t>(neighbors(v).size()); }

    // Ascending.
    std::span<const std::int32_t> neighbors(std::int32_t v) const { return row(neighbors_, v); }
    // Aligned with neighbors(v).
    std::span<const double> weights(std::int32_t v) const { return row(weights_, v); }
    // 0 where there is no edge.
    double weight(std::int32_t u, std::int32_t v) const;

  private:
    struct Rows {
        std::vector<std::int64_t> offsets;
        std::vector<std::int32_t> neighbors;
        std::vector<double> weights;
    };

    explicit Graph(std::shared_ptr<const Rows> rows);
    bool is_consistent() const;
    // Where a vertex's row begins, and the one before it ends.
    std::size_t begin(std::int32_t v) const {
        return static_cast<std::size_t>(offsets_[static_cast<std::size_t>(v)]);
    }
    template <class T>
    std::span<const T> row(std::span<const T> values, std::int32_t v) const {
        TOPOPLACE_ASSERT(v >= 0 && v < num_vertices());
        return values.subspan(begin(v), begin(v + 1) - begin(v));
    }

    std::shared_ptr<const Rows> rows_;
    // Of these rows.
    std::span<const std::int64_t> offsets_;
    std::span<const std::int32_t> neighbors_;
    std::span<const double> weights_;
};

}  // namespace topoplace
