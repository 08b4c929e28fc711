// Orders by division: items that exchange much get into the same domains of a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "topoplace/partition.hpp"
#include "topoplace/stop_condition.hpp"
#include "tree_mapping/orders.hpp"
#include "tree_mapping/plans.hpp"
#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

class Divider {
  public:
    // By what items exchange in a phase, or in all of them if that is -1.
    Divider(const Problem& problem, Index phase, std::uint64_t seed, WorkMeter& meter);

    // The items in the order in which the plan takes them, after divisions along its domains from the root
    // down: each into two runs of whole domains, so that little is exchanged between the two. No order if the
    // search has to stop.
    Order order(const Plan& plan);

    // Edges that all divisions along a plan read.
    std::uint64_t work(const Plan& plan) const;

  private:
    void divide(const Plan& plan, std::size_t begin, std::size_t end);
    std::size_t middle(const Plan& plan, std::size_t begin, std::size_t end) const;
    void list_edges(std::size_t begin, std::size_t end);
    bool divide_at(std::size_t begin, std::size_t middle, std::size_t end);

    const Problem& problem_;
    std::uint64_t seed_;
    WorkMeter& meter_;
    std::vector<std::size_t> first_;  // of each item in `edges_`
    std::vector<Edge> edges_;         // from each item to those of higher numbers
    std::vector<Index> order_;
    std::vector<Index> number_;  // of each item in its part; -1 outside it
    std::vector<Edge> inside_;   // of the part
    std::vector<Index> sides_[2];
    partition::BipartitionWorkspace workspace_;
};

}  // namespace topoplace::tree_mapping
