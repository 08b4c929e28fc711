// How many edges a pattern loses at least when its vertices are spread over parts of limited size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "match/graphs/ragged.hpp"

namespace topoplace::match {

class LeastCuts {
  public:
    // neighbors: of each vertex of the pattern.
    explicit LeastCuts(const Ragged<std::int32_t>& neighbors, std::int32_t size);

    // No set of so many vertices has fewer edges to the others.
    std::int32_t of(std::int32_t num_vertices) const { return least_[static_cast<std::size_t>(num_vertices)]; }
    // No way to put the vertices into parts of at most these sizes has fewer edges between them; if the parts
    // are too small together, the number of edges.
    std::int32_t crossing(std::span<const std::int32_t> sizes) const;

  private:
    std::int32_t num_edges_ = 0;
    bool is_connected_ = false;
    std::vector<std::int32_t> least_;  // by number of vertices
};

}  // namespace topoplace::match
