// A graph of chosen terminals alone: vertices that only forward are replaced by arcs between their neighbours
// (edge splitting), so that every terminal can still reach all others at the same rate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/max_flow.hpp"
#include "graph/index.hpp"
#include "topoplace/stop_condition.hpp"
#include "topoplace/tree_packing.hpp"

namespace topoplace::collective {

// Vertices 0..terminals-1 are terminals. Capacities are whole trees.
class SwitchFreeGraph {
  public:
    SwitchFreeGraph(std::int32_t size, std::int32_t terminals, std::int64_t per_root, WorkMeter& meter);

    std::int32_t terminals() const { return terminals_; }
    std::int64_t capacity(std::int32_t from, std::int32_t to) const { return capacity_[at(from, to)]; }
    // Adds an arc of the original graph, of which each vertex has a number there.
    void add(std::int32_t from, std::int32_t to, std::int64_t capacity, std::int32_t named_from,
             std::int32_t named_to);
    // Replaces all vertices but the terminals; false when the search was stopped.
    bool split_all();
    // Takes capacity for `count` trees off the arc between two terminals, and returns the ways that they take
    // through the original graph.
    std::vector<HopWay> take(std::int32_t from, std::int32_t to, std::int64_t count);
    std::uint64_t flows() const { return flows_; }

  private:
    struct Pair {
        std::int32_t from = 0;
        std::int32_t to = 0;
        std::int64_t count = 0;
    };

    std::size_t at(std::int32_t from, std::int32_t to) const { return index(from * size_ + to); }
    std::vector<std::int32_t> neighbours(std::int32_t vertex) const;
    std::vector<std::vector<std::int32_t>> groups(std::int32_t without) const;
    bool alike(const std::vector<std::vector<std::int32_t>>& groups, std::int32_t vertex,
               std::int64_t capacity) const;
    std::vector<Pair> even_pairs(std::int32_t vertex) const;
    bool split_evenly(std::int32_t vertex);
    bool split_exactly(std::int32_t vertex);
    void split(std::int32_t from, std::int32_t over, std::int32_t to, std::int64_t count);
    std::int64_t slack(std::int32_t from, std::int32_t over, std::int32_t to, std::int64_t most);
    bool reaches_all();
    void begin_flows();
    std::int32_t arc(std::int32_t from, std::int32_t to);
    void load();
    std::int64_t flow_to(std::int32_t sink, std::int64_t most);
    std::int64_t needed() const { return terminals_ * per_root_; }

    std::int32_t size_;
    std::int32_t terminals_;
    std::int64_t per_root_;
    WorkMeter& meter_;
    std::vector<std::int64_t> capacity_;
    std::vector<std::vector<HopWay>> ways_;  // of each pair
    std::vector<std::int32_t> arcs_;         // in the flow network, of each pair
    std::vector<std::size_t> in_use_;        // pairs with an arc in the flow network
    std::vector<std::int32_t> feeds_;        // from the source to each vertex
    MaxFlow flow_;                           // the source is vertex size_
    std::uint64_t flows_ = 0;
};

}  // namespace topoplace::collective
