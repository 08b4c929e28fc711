// Shortest residual paths with whole-numbered lengths, by Dial's buckets.
//
// Nodes stand in a list for every distance. A node that came nearer also stays in its old list, where it is
// skipped.
//
// Reference: Dial, "Shortest-path forest with topological ordering", Communications of the ACM 12 (1969).
#pragma once

#include <algorithm>
#include <limits>

#include "flow/general/cost_scaling/pseudoflow.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

class Buckets {
  public:
    static constexpr std::int32_t kUnreached = std::numeric_limits<std::int32_t>::max();

    // Nodes at more than `limit` are not kept.
    Buckets(Node num_nodes, std::int32_t limit) : limit_(limit), distance_(index(num_nodes), kUnreached) {}

    std::int32_t limit() const { return limit_; }
    std::int32_t distance(Node v) const { return distance_[index(v)]; }
    // Forgets all distances.
    void clear() {
        for (const Entry& entry : entries_) distance_[index(entry.node)] = kUnreached;
        entries_.clear();
        first_.clear();
        current_ = 0;
    }
    // True where this is nearer than the node was known to be.
    bool insert(Node v, std::int64_t distance) {
        TOPOPLACE_ASSERT(distance >= 0);
        if (distance >= distance_[index(v)] || distance > limit_) return false;
        distance_[index(v)] = static_cast<std::int32_t>(distance);
        const auto list = static_cast<std::size_t>(distance);
        TOPOPLACE_ASSERT(list >= current_);  // earlier lists are finished
        if (list >= first_.size()) first_.resize(list + 1, kAbsent);
        entries_.push_back({.node = v, .next = first_[list]});
        first_[list] = static_cast<std::int32_t>(entries_.size()) - 1;
        return true;
    }
    // The next nearest node, each once; kAbsent where there is none.
    Node pop() {
        for (; current_ < first_.size(); ++current_) {
            while (first_[current_] >= 0) {
                const Entry entry = entries_[index(first_[current_])];
                first_[current_] = entry.next;
                if (index(distance(entry.node)) == current_) return entry.node;
            }
        }
        return kAbsent;
    }

  private:
    struct Entry {
        Node node;
        std::int32_t next;
    };
    std::int32_t limit_;
    std::vector<std::int32_t> distance_;
    std::vector<std::int32_t> first_;  // by distance, the list
    std::vector<Entry> entries_;
    std::size_t current_ = 0;
};

template <FlowNumber Int>
class Distances {
  public:
    enum class Found { all, unreachable, stopped };

    // No excess is farther from its demand than 18 nodes' worth of arcs, except after a start with prices.
    Distances(Pseudoflow<Int>& state, NodeCounter& counter)
        : state_(state),
          counter_(counter),
          buckets_(state.num_nodes(),
                   static_cast<std::int32_t>(std::min<std::int64_t>(
                       Buckets::kUnreached - 1, 18 * std::int64_t{state.num_nodes()} + 1))),
          arc_to_(index(state.num_nodes())) {}

    // Arcs scanned so far.
    std::uint64_t work() const { return work_; }
    // Lowers every price by its distance to the nearest demand, at most by that of the farthest excess. An
    // arc is as long as its reduced cost in units of 2^bits, rounded down, and `more`.
    Found lower_prices(int bits, int more);
    // Sends excess along a shortest path, whose lengths are reduced costs of at least 0, to the nearest
    // demand, and lowers the prices of what is nearer. False: there is none within the limit, or
    // `counter` stops.
    bool send_to_nearest(Node source);

  private:
    bool reach_all(int bits, int more);
    bool demands_reached() const;
    Node nearest_demand(Node source);
    void extend(Node v);
    void lower_nearer(Node target);

    Pseudoflow<Int>& state_;
    NodeCounter& counter_;
    Buckets buckets_;
    std::vector<std::int32_t> arc_to_;
    std::vector<Node> nearer_;
    std::int32_t farthest_ = 0;
    std::uint64_t work_ = 0;
};

template <FlowNumber Int>
auto Distances<Int>::lower_prices(int bits, int more) -> Found {
    if (!reach_all(bits, more)) {
        if (counter_.stopped()) return Found::stopped;
        if (!demands_reached()) return Found::unreachable;
        farthest_ = buckets_.limit();
    }
    for (Node v = 0; v < state_.num_nodes(); ++v)
        state_.price[index(v)] -= std::int64_t{std::min(buckets_.distance(v), farthest_)} << bits;
    return Found::all;
}

template <FlowNumber Int>
bool Distances<Int>::reach_all(int bits, int more) {
    buckets_.clear();
    std::int32_t left = 0;
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[index(v)] < 0) buckets_.insert(v, 0);
        if (state_.excess[index(v)] > 0) ++left;
    }
    farthest_ = 0;
    while (left > 0) {
        const Node v = buckets_.pop();
        if (v < 0 || counter_.visit()) return false;
        TOPOPLACE_ASSERT(buckets_.distance(v) >= farthest_);
        farthest_ = buckets_.distance(v);
        if (state_.excess[index(v)] > 0) --left;
        work_ += 1 + index(state_.degree(v));
        for (std::int32_t a = state_.first(v); a < state_.end(v); ++a) {
            const auto& arc = state_.arc(a);
            if (buckets_.distance(arc.head) <= farthest_ || state_.reverse(arc).residual == 0) continue;
            const std::int64_t length = (-state_.reduced_cost(v, arc) >> bits) + more;
            TOPOPLACE_ASSERT(length >= 0);
            buckets_.insert(arc.head, farthest_ + length);
        }
    }
    return true;
}

// True if every excess can go to some demand, at whatever cost.
template <FlowNumber Int>
bool Distances<Int>::demands_reached() const {
    std::vector<char> reached(index(state_.num_nodes()));
    std::vector<Node> found;
    const auto reach = [&](Node v) {
        if (reached[index(v)] != 0) return;
        reached[index(v)] = 1;
        found.push_back(v);
    };
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[index(v)] < 0) reach(v);
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (std::int32_t a = state_.first(found[i]); a < state_.end(found[i]); ++a) {
            if (state_.reverse(state_.arc(a)).residual > 0) reach(state_.arc(a).head);
        }
    }
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[index(v)] > 0 && reached[index(v)] == 0) return false;
    }
    return true;
}

template <FlowNumber Int>
bool Distances<Int>::send_to_nearest(Node source) {
    const Node target = nearest_demand(source);
    if (target < 0) return false;
    lower_nearer(target);
    TOPOPLACE_ASSERT(state_.excess[index(source)] > 0 && state_.excess[index(target)] < 0);
    std::int64_t units = std::min(state_.excess[index(source)], -state_.excess[index(target)]);
    for (Node v = target; v != source; v = state_.tail(arc_to_[index(v)]))
        units = std::min<std::int64_t>(units, state_.arc(arc_to_[index(v)]).residual);
    TOPOPLACE_ASSERT(units > 0);
    for (Node v = target; v != source; v = state_.tail(arc_to_[index(v)]))
        state_.push(arc_to_[index(v)], units);
    return true;
}

template <FlowNumber Int>
Node Distances<Int>::nearest_demand(Node source) {
    buckets_.clear();
    nearer_.clear();
    buckets_.insert(source, 0);
    while (!counter_.visit()) {
        const Node v = buckets_.pop();
        if (v < 0 || state_.excess[index(v)] < 0) return v;
        nearer_.push_back(v);
        extend(v);
    }
    return kAbsent;
}

template <FlowNumber Int>
void Distances<Int>::extend(Node v) {
    const std::int32_t distance = buckets_.distance(v);
    work_ += 1 + index(state_.degree(v));
    for (std::int32_t a = state_.first(v); a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual == 0 || buckets_.distance(arc.head) <= distance) continue;
        TOPOPLACE_ASSERT(state_.reduced_cost(v, arc) >= 0);
        if (buckets_.insert(arc.head, distance + state_.reduced_cost(v, arc))) arc_to_[index(arc.head)] = a;
    }
}

template <FlowNumber Int>
void Distances<Int>::lower_nearer(Node target) {
    for (const Node v : nearer_) {
        TOPOPLACE_ASSERT(buckets_.distance(v) <= buckets_.distance(target));
        state_.price[index(v)] -= buckets_.distance(target) - buckets_.distance(v);
    }
}

}  // namespace topoplace::flow
