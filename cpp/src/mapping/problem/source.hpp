// A source graph as the searches read it.
#pragma once

#include <cstdint>
#include <vector>

#include "topoplace/made_once.hpp"
#include "topoplace/mapping.hpp"

namespace topoplace::mapping {

// The tasks by their weights to others.
struct Ranking {
    // The heaviest task first, then always the one most tied to those before it.
    std::vector<std::int32_t> order;
    // By task: half its weights, largest first.
    std::vector<std::vector<double>> halves;
};

// What a search that places task after task knows beforehand. Tasks are numbered by their depth, which is
// their place in the order.
struct Proof {
    Graph graph;
    // By depth, by task from there on: its weights to tasks from there on, halved, largest first.
    std::vector<std::vector<std::vector<double>>> open_halves;
    // By task: earlier ones whose vertex has to be smaller; keeps one mapping of each class that the source's
    // automorphisms make, the lexicographically smallest.
    std::vector<std::vector<std::int32_t>> above;
};

class Source::Impl {
  public:
    explicit Impl(Graph graph);

    std::int32_t size() const { return graph_.num_vertices(); }
    const Graph& graph() const { return graph_; }
    double total_weight() const { return total_weight_; }
    // Null where `meter` stops; the next call starts over.
    const Ranking* ranking(WorkMeter& meter) const;
    const Proof* proof(WorkMeter& meter) const;

  private:
    Graph graph_;
    double total_weight_ = 0;
    mutable MadeOnce<Ranking> ranking_;
    mutable MadeOnce<Proof> proof_;
};

}  // namespace topoplace::mapping
