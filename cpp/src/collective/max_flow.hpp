// Maximum flow by blocking flows (Dinic, 1970) on small graphs whose capacities change between runs.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace topoplace::collective {

class MaxFlow {
  public:
    explicit MaxFlow(std::int32_t num_vertices) : first_(static_cast<std::size_t>(num_vertices), -1) {}

    // Adds an arc without capacity and its reverse; returns its number, which is even.
    std::int32_t add(std::int32_t tail, std::int32_t head);
    // Gives the arc this capacity, and its reverse none.
    void reset(std::int32_t arc, std::int64_t capacity);
    // Returns the maximum flow, or `most` if it is at least that.
    std::int64_t run(std::int32_t source, std::int32_t sink,
                     std::int64_t most = std::numeric_limits<std::int64_t>::max());
    // After run() without a limit: whether the vertex is on the source's side of the least cut nearest the
    // source.
    bool before_cut(std::int32_t vertex) const { return level_[static_cast<std::size_t>(vertex)] >= 0; }

  private:
    bool find_levels(std::int32_t source, std::int32_t sink);
    std::int64_t push(std::int32_t vertex, std::int32_t sink, std::int64_t most);

    std::vector<std::int32_t> first_;  // of each vertex's arcs, -1 for none
    std::vector<std::int32_t> next_;   // arc after an arc
    std::vector<std::int32_t> head_;
    std::vector<std::int64_t> residual_;
    std::vector<std::int32_t> level_;
    std::vector<std::int32_t> current_;
    std::vector<std::int32_t> queue_;
};

}  // namespace topoplace::collective
