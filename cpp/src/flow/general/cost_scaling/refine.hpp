// The part of cost scaling that makes a flow epsilon-optimal for a smaller epsilon, by push and relabel.
//
// It fills every arc below that, then sends the excess this leaves along admissible arcs, residual ones of
// negative reduced cost, and lowers ("relabels") the price of a node that has none. Excess moves along paths
// of a few arcs before it looks elsewhere (partial augment); every n relabels all prices are lowered at once
// to the distances from the demands in lengths of epsilon, a power of two, so that lengths are shifts. Arcs
// between -epsilon and 0 are left alone, for each would make an excess.
//
// References: Goldberg, "An efficient implementation of a scaling minimum-cost flow algorithm", J. of
// Algorithms 22 (1997); Kiraly and Kovacs, "Efficient implementations of minimum-cost flow algorithms", Acta
// Univ. Sapientiae 4 (2012), for partial augment.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "flow/general/cost_scaling/distances.hpp"
#include "flow/general/cost_scaling/pseudoflow.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

template <FlowNumber Int>
class Refine {
  public:
    Refine(Pseudoflow<Int>& state, Distances<Int>& distances, NodeCounter& counter)
        : state_(state),
          distances_(distances),
          counter_(counter),
          current_(index(state.num_nodes())),
          queue_(index(state.num_nodes())),
          queued_(index(state.num_nodes())) {}

    // Makes the flow 2^bits-optimal and meets all supplies. False: infeasible, or `counter` stops.
    bool run(int bits);

  private:
    static constexpr std::size_t kLongest = 4;  // arcs of a partial augment

    bool update_due() const { return relabels_ >= state_.num_nodes(); }
    bool update_prices();
    void enqueue(Node v);
    Node dequeue();
    void augment(Node source);
    std::int32_t admissible(Node v);
    void push(std::size_t length);
    void relabel(Node v);

    Pseudoflow<Int>& state_;
    Distances<Int>& distances_;
    NodeCounter& counter_;
    int bits_ = 0;
    std::vector<std::int32_t> current_;  // by node, the first arc that may be admissible
    std::vector<Node> queue_;            // a ring of nodes with excess, each once
    std::vector<char> queued_;           // by node: 1 if it is in the queue
    std::size_t queue_head_ = 0;
    std::size_t queue_size_ = 0;
    std::array<std::int32_t, kLongest> path_{};
    std::int32_t relabels_ = 0;  // since the last price update
};

template <FlowNumber Int>
bool Refine<Int>::run(int bits) {
    bits_ = bits;
    state_.fill_below(-(std::int64_t{1} << bits));
    for (Node v = 0; v < state_.num_nodes(); ++v) enqueue(v);
    relabels_ = state_.num_nodes();
    while (queue_size_ > 0) {
        if (update_due() && !update_prices()) return false;
        const Node v = dequeue();
        while (state_.excess[index(v)] > 0 && !update_due()) augment(v);
        enqueue(v);
        if (counter_.stopped()) return false;
    }
    state_.assert_epsilon_optimal(std::int64_t{1} << bits);
    state_.assert_no_excess();
    return true;
}

template <FlowNumber Int>
bool Refine<Int>::update_prices() {
    relabels_ = 0;
    if (distances_.lower_prices(bits_, 1) != Distances<Int>::Found::all) return false;
    for (Node v = 0; v < state_.num_nodes(); ++v) current_[index(v)] = state_.first(v);
    return true;
}

template <FlowNumber Int>
void Refine<Int>::enqueue(Node v) {
    if (state_.excess[index(v)] <= 0 || queued_[index(v)] != 0) return;
    TOPOPLACE_ASSERT(queue_size_ < queue_.size());
    queued_[index(v)] = 1;
    const std::size_t end = queue_head_ + queue_size_++;
    queue_[end < queue_.size() ? end : end - queue_.size()] = v;
}

template <FlowNumber Int>
Node Refine<Int>::dequeue() {
    TOPOPLACE_ASSERT(queue_size_ > 0);
    const Node v = queue_[queue_head_];
    queue_head_ = queue_head_ + 1 == queue_.size() ? 0 : queue_head_ + 1;
    --queue_size_;
    TOPOPLACE_ASSERT(queued_[index(v)] != 0);
    queued_[index(v)] = 0;
    return v;
}

// Follows admissible arcs from the source until some are found in a row or a demand is reached, then pushes.
template <FlowNumber Int>
void Refine<Int>::augment(Node source) {
    std::size_t length = 0;
    Node tip = source;
    while (length < kLongest && (length == 0 || state_.excess[index(tip)] >= 0) && !update_due()) {
        const std::int32_t a = admissible(tip);
        if (a >= 0) {
            path_[length++] = a;
            tip = state_.arc(a).head;
        } else {
            relabel(tip);
            if (length > 0) tip = state_.tail(path_[--length]);
        }
    }
    push(length);
}

// The next admissible arc of a node, or kAbsent.
template <FlowNumber Int>
std::int32_t Refine<Int>::admissible(Node v) {
    for (std::int32_t a = current_[index(v)]; a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual == 0 || state_.reduced_cost(v, arc) >= 0) continue;
        current_[index(v)] = a;
        return a;
    }
    return kAbsent;
}

// Moves along each arc of the path whatever fits, so that units may stop on the way.
template <FlowNumber Int>
void Refine<Int>::push(std::size_t length) {
    counter_.visit(length);
    for (std::size_t i = 0; i < length; ++i) {
        const Node v = state_.tail(path_[i]);
        const auto& arc = state_.arc(path_[i]);
        state_.push(path_[i], std::min<std::int64_t>(arc.residual, state_.excess[index(v)]));
        TOPOPLACE_ASSERT(state_.excess[index(v)] >= 0);
        if (i > 0) enqueue(v);
        enqueue(arc.head);
    }
}

template <FlowNumber Int>
void Refine<Int>::relabel(Node v) {
    constexpr std::int64_t kNoPrice = std::numeric_limits<std::int64_t>::min();
    std::int64_t best = kNoPrice;
    for (std::int32_t a = state_.first(v); a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual > 0) best = std::max(best, state_.price[index(arc.head)] - arc.cost);
    }
    // Nothing goes on from a node without residual arcs: out of reach of others. Below what any price needs,
    // an excess that comes again and again can go nowhere else.
    if (best == kNoPrice) {
        const bool lowest = state_.price[index(v)] <= -kMaxPotential;
        best = state_.price[index(v)] - (lowest ? 0 : std::int64_t{state_.num_nodes()} << bits_);
    }
    TOPOPLACE_ASSERT(best <= state_.price[index(v)]);  // no arc was admissible: prices only fall
    state_.price[index(v)] = best - (std::int64_t{1} << bits_);
    TOPOPLACE_ASSERT(state_.price[index(v)] >= -2 * kMaxPotential);
    current_[index(v)] = state_.first(v);
    ++relabels_;
    counter_.visit();
}

}  // namespace topoplace::flow
