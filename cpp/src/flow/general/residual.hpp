// The residual graph of the two simple algorithms, successive shortest paths and cycle canceling.
//
// Residual arc 2a is arc a of the problem, 2a + 1 its reverse.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flow/general/problem.hpp"

namespace topoplace::flow {

// In place of an arc or a node where there is none.
inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

class Residual {
  public:
    explicit Residual(const Problem& problem);

    std::size_t num_nodes() const { return excess_.size(); }
    std::size_t num_arcs() const { return head_.size(); }
    std::span<const std::size_t> leaving(std::size_t node) const {
        return std::span(order_).subspan(first_[node], first_[node + 1] - first_[node]);
    }
    std::size_t head(std::size_t arc) const { return head_[arc]; }
    std::size_t tail(std::size_t arc) const { return head_[arc ^ 1]; }
    std::int64_t cost(std::size_t arc) const { return cost_[arc]; }
    std::int64_t left(std::size_t arc) const { return left_[arc]; }
    // What a node still has to send; below zero: to receive. More than 64 bits where arcs were filled first.
    Total excess(std::size_t node) const { return excess_[node]; }

    // Moves units along an arc and from its tail's excess to its head's.
    void push(std::size_t arc, std::int64_t units);
    // Fills every arc of negative cost: then no residual arc has one.
    void fill_negative();
    // Moves as much excess as fits from `begin` to `end` along the path whose arc into each node is given.
    void augment(const std::vector<std::size_t>& arc_into, std::size_t begin, std::size_t end);
    // Checks that potentials leave no residual arc a negative reduced cost. Does nothing unless assertions
    // are on.
    void assert_optimal_for(std::span<const std::int64_t> potential) const;
    // Flow of each arc of the problem.
    std::vector<std::int64_t> flow() const;

  private:
    std::vector<std::size_t> head_;
    std::vector<std::int64_t> cost_;
    std::vector<std::int64_t> left_;
    std::vector<std::size_t> first_;
    std::vector<std::size_t> order_;
    std::vector<Total> excess_;
};

}  // namespace topoplace::flow
