// Shortest residual paths with whole-numbered lengths, by Dial's buckets: nodes stand in a list for every
// distance, and one that came nearer is in a later list, too.
//
// Reference: Dial, "Shortest-path forest with topological ordering", Communications of the ACM 12 (1969).
#pragma once

#include <algorithm>
#include <limits>

#include "flow/general/pseudoflow.hpp"

namespace topoplace::flow {

class Buckets {
  public:
    static constexpr std::int32_t kFar = std::numeric_limits<std::int32_t>::max();

    // Nodes at more than `limit` are not kept.
    Buckets(Node num_nodes, std::int32_t limit) : limit_(limit), distance_(at(num_nodes), kFar) {}

    std::int32_t limit() const { return limit_; }
    std::int32_t distance(Node v) const { return distance_[at(v)]; }
    // Forgets all distances.
    void clear() {
        for (const Entry& entry : entries_) distance_[at(entry.node)] = kFar;
        entries_.clear();
        first_.clear();
        current_ = 0;
    }
    // True where this is nearer than the node was known to be.
    bool insert(Node v, std::int64_t distance) {
        if (distance >= distance_[at(v)] || distance > limit_) return false;
        distance_[at(v)] = static_cast<std::int32_t>(distance);
        const auto list = static_cast<std::size_t>(distance);
        if (list >= first_.size()) first_.resize(list + 1, -1);
        entries_.push_back({v, first_[list]});
        first_[list] = static_cast<std::int32_t>(entries_.size()) - 1;
        return true;
    }
    // The next nearest node, each once; -1 where there is none.
    Node pop() {
        for (; current_ < first_.size(); ++current_) {
            while (first_[current_] >= 0) {
                const Entry entry = entries_[at(first_[current_])];
                first_[current_] = entry.next;
                if (at(distance(entry.node)) == current_) return entry.node;
            }
        }
        return -1;
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

template <class Int>
class Distances {
  public:
    enum class Found { all, unreachable, stopped };

    // No excess is farther from its demand than 18 nodes' worth of arcs, except after a start with prices.
    Distances(Pseudoflow<Int>& state, NodeCounter& counter)
        : state_(state),
          counter_(counter),
          buckets_(state.num_nodes(), static_cast<std::int32_t>(std::min<std::int64_t>(
                                          Buckets::kFar - 1, 18 * std::int64_t{state.num_nodes()} + 1))),
          arc_to_(at(state.num_nodes())) {}

    // Arcs looked at so far.
    std::uint64_t work() const { return work_; }
    // Lowers every price by its distance to the nearest demand, at most by that of the farthest excess. An
    // arc is as long as its reduced cost in units of 2^bits, rounded down, and `more`.
    Found lower_prices(int bits, int more);
    // Sends excess along a shortest path, whose lengths are reduced costs of at least 0, to the nearest
    // demand, and lowers the prices of what is nearer. False: there is none within the limit, or no time is
    // left.
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

template <class Int>
auto Distances<Int>::lower_prices(int bits, int more) -> Found {
    if (!reach_all(bits, more)) {
        if (counter_.stopped()) return Found::stopped;
        if (!demands_reached()) return Found::unreachable;
        farthest_ = buckets_.limit();
    }
    for (Node v = 0; v < state_.num_nodes(); ++v)
        state_.price[at(v)] -= std::int64_t{std::min(buckets_.distance(v), farthest_)} << bits;
    return Found::all;
}

template <class Int>
bool Distances<Int>::reach_all(int bits, int more) {
    buckets_.clear();
    std::int32_t left = 0;
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[at(v)] < 0) buckets_.insert(v, 0);
        if (state_.excess[at(v)] > 0) ++left;
    }
    farthest_ = 0;
    while (left > 0) {
        const Node v = buckets_.pop();
        if (v < 0 || counter_.visit()) return false;
        farthest_ = buckets_.distance(v);
        if (state_.excess[at(v)] > 0) --left;
        work_ += 1 + at(state_.degree(v));
        for (std::int32_t a = state_.first(v); a < state_.end(v); ++a) {
            const auto& arc = state_.arc(a);
            if (buckets_.distance(arc.head) <= farthest_ || state_.reverse(arc).residual == 0) continue;
            buckets_.insert(arc.head, farthest_ + (-state_.reduced_cost(v, arc) >> bits) + more);
        }
    }
    return true;
}

// Whether every excess can go to some demand, at whatever cost.
template <class Int>
bool Distances<Int>::demands_reached() const {
    std::vector<char> reached(at(state_.num_nodes()));
    std::vector<Node> found;
    const auto reach = [&](Node v) {
        if (reached[at(v)] != 0) return;
        reached[at(v)] = 1;
        found.push_back(v);
    };
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[at(v)] < 0) reach(v);
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (std::int32_t a = state_.first(found[i]); a < state_.end(found[i]); ++a) {
            if (state_.reverse(state_.arc(a)).residual > 0) reach(state_.arc(a).head);
        }
    }
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[at(v)] > 0 && reached[at(v)] == 0) return false;
    }
    return true;
}

template <class Int>
bool Distances<Int>::send_to_nearest(Node source) {
    const Node target = nearest_demand(source);
    if (target < 0) return false;
    lower_nearer(target);
    std::int64_t units = std::min(state_.excess[at(source)], -state_.excess[at(target)]);
    for (Node v = target; v != source; v = state_.tail(arc_to_[at(v)]))
        units = std::min<std::int64_t>(units, state_.arc(arc_to_[at(v)]).residual);
    for (Node v = target; v != source; v = state_.tail(arc_to_[at(v)])) state_.push(arc_to_[at(v)], units);
    return true;
}

template <class Int>
Node Distances<Int>::nearest_demand(Node source) {
    buckets_.clear();
    nearer_.clear();
    buckets_.insert(source, 0);
    while (!counter_.visit()) {
        const Node v = buckets_.pop();
        if (v < 0 || state_.excess[at(v)] < 0) return v;
        nearer_.push_back(v);
        extend(v);
    }
    return -1;
}

template <class Int>
void Distances<Int>::extend(Node v) {
    const std::int32_t distance = buckets_.distance(v);
    work_ += 1 + at(state_.degree(v));
    for (std::int32_t a = state_.first(v); a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual == 0 || buckets_.distance(arc.head) <= distance) continue;
        if (buckets_.insert(arc.head, distance + state_.reduced_cost(v, arc))) arc_to_[at(arc.head)] = a;
    }
}

template <class Int>
void Distances<Int>::lower_nearer(Node target) {
    for (const Node v : nearer_) state_.price[at(v)] -= buckets_.distance(target) - buckets_.distance(v);
}

}  // namespace topoplace::flow
