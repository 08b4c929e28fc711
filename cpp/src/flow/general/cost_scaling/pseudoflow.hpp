// The state of cost scaling: a flow that keeps the capacities but not yet all supplies, with a price for
// every node.
//
// Residual arcs stand in one array by tail, each with the place of its reverse; where numbers fit 32 bits an
// arc takes 16 bytes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "flow/general/problem.hpp"
#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

using Node = std::int32_t;

template <FlowNumber Int>
struct ResidualArc {
    Node head;
    std::int32_t reverse;
    Int residual;
    Int cost;
};

template <FlowNumber Int>
class Pseudoflow {
  public:
    using Arc = ResidualArc<Int>;

    explicit Pseudoflow(const Problem& problem)
        : price(index(problem.num_nodes)),
          excess(problem.supply),
          first_(index(problem.num_nodes) + 1),
          arcs_(2 * problem.tail.size()),
          place_(problem.tail.size()) {
        for (std::size_t a = 0; a < place_.size(); ++a) {
            ++first_[index(problem.tail[a])];
            ++first_[index(problem.head[a])];
        }
        std::int32_t sum = 0;
        for (std::int32_t& first : first_) first = sum += first;
        for (std::size_t a = place_.size(); a-- > 0;) place(problem, a);
        price.assign(problem.start_potential.begin(), problem.start_potential.end());
        price.resize(index(num_nodes()));
        for (std::size_t a = 0; a < problem.start_flow.size(); ++a) push(place_[a], problem.start_flow[a]);
    }

    Node num_nodes() const { return static_cast<Node>(first_.size()) - 1; }
    std::size_t num_arcs() const { return arcs_.size(); }
    std::int32_t first(Node v) const { return first_[index(v)]; }
    std::int32_t end(Node v) const { return first_[index(v) + 1]; }
    std::int32_t degree(Node v) const { return end(v) - first(v); }
    const Arc& arc(std::int32_t a) const { return arcs_[index(a)]; }
    const Arc& reverse(const Arc& arc) const { return arcs_[index(arc.reverse)]; }
    Node tail(std::int32_t a) const { return reverse(arc(a)).head; }
    std::int64_t reduced_cost(Node v, const Arc& arc) const {
        return arc.cost + price[index(v)] - price[index(arc.head)];
    }

    // Moves units, and so excess, from the arc's tail to its head.
    void push(std::int32_t a, std::int64_t units) {
        Arc& forward = arcs_[index(a)];
        Arc& backward = arcs_[index(forward.reverse)];
        TOPOPLACE_ASSERT(0 <= units && units <= forward.residual);
        forward.residual = static_cast<Int>(forward.residual - units);
        backward.residual = static_cast<Int>(backward.residual + units);
        TOPOPLACE_ASSERT(backward.residual >= units);  // else the sum of both overflowed
        excess[index(backward.head)] -= units;
        excess[index(forward.head)] += units;
    }
    // Fills every residual arc of a reduced cost below this: no supply is kept for it.
    void fill_below(std::int64_t least) {
        for (Node v = 0; v < num_nodes(); ++v) {
            for (std::int32_t a = first(v); a < end(v); ++a) {
                if (arc(a).residual > 0 && reduced_cost(v, arc(a)) < least) push(a, arc(a).residual);
            }
        }
    }
    std::vector<std::int64_t> flow() const {
        std::vector<std::int64_t> flow;
        flow.reserve(place_.size());
        for (const std::int32_t a : place_) flow.push_back(reverse(arc(a)).residual);
        return flow;
    }

    // Checks that no residual arc has a reduced cost below -epsilon, and that the flow meets all supplies.
    // They do nothing unless assertions are on, and take one pass over all arcs or nodes.
    void assert_epsilon_optimal(std::int64_t epsilon) const {
        if constexpr (!kAssertionsOn) return;
        for (Node v = 0; v < num_nodes(); ++v) {
            for (std::int32_t a = first(v); a < end(v); ++a)
                TOPOPLACE_ASSERT(arc(a).residual == 0 || reduced_cost(v, arc(a)) >= -epsilon);
        }
    }
    void assert_no_excess() const {
        if constexpr (!kAssertionsOn) return;
        for (const std::int64_t units : excess) TOPOPLACE_ASSERT(units == 0);
    }

    std::vector<std::int64_t> price;
    std::vector<std::int64_t> excess;

  private:
    void place(const Problem& problem, std::size_t a) {
        const std::int32_t forward = --first_[index(problem.tail[a])];
        const std::int32_t backward = --first_[index(problem.head[a])];
        const auto cost = static_cast<Int>(problem.cost[a]);
        TOPOPLACE_ASSERT(cost == problem.cost[a] && std::in_range<Int>(problem.capacity[a]));
        arcs_[index(forward)] = {.head = problem.head[a],
                                 .reverse = backward,
                                 .residual = static_cast<Int>(problem.capacity[a]),
                                 .cost = cost};
        arcs_[index(backward)] = {
            .head = problem.tail[a], .reverse = forward, .residual = 0, .cost = static_cast<Int>(-cost)};
        place_[a] = forward;
    }

    std::vector<std::int32_t> first_;  // by node, its first arc
    std::vector<Arc> arcs_;
    std::vector<std::int32_t> place_;  // by arc of the problem
};

}  // namespace topoplace::flow
