// How many of a pattern's edges stay inside the parts at most when its vertices are spread over parts of
// limited size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/ragged.hpp"

namespace topoplace::match {

class Spread {
  public:
    // neighbors: of each vertex of the pattern.
    explicit Spread(const Ragged<std::int32_t>& neighbors, std::int32_t size);

    // The most vertices that fit a part, and the most edges between them: in all, and beyond those of a tree.
    struct Part {
        std::int32_t size;
        std::int32_t edges;
        std::int32_t surplus;
    };
    // No way to put the vertices into these parts has more edges inside them; 0 where they are too small
    // together.
    std::int32_t most_inside(std::span<const Part> parts) const;
    // The same for ways that use at least `fewest_parts` parts; below 0 where there is none.
    std::int32_t most_inside(std::span<const Part> parts, std::int32_t fewest_parts) const;
    // The most edges between `count` vertices, or between all if there are fewer.
    std::int32_t most_edges(std::int32_t count) const {
        return most_edges_[std::min(index(count), most_edges_.size() - 1)];
    }

  private:
    // The most edges between `count` vertices in a part.
    std::int32_t most_edges(const Part& part, std::int32_t count) const {
        return std::min({most_edges_[index(count)], part.edges, count - 1 + part.surplus});
    }

    std::int32_t num_edges_ = 0;
    bool is_regular_ = true;  // then the least cuts say no more than the most edges
    // By size of a vertex set: the fewest edges that leave such a set, and the most edges inside one.
    std::vector<std::int32_t> least_cuts_;
    std::vector<std::int32_t> most_edges_;
};

}  // namespace topoplace::match
