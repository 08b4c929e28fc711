// The part of cost scaling that sends excess to demands along shortest paths, while no residual arc has a
// negative reduced cost.
//
// It chooses between rounds, which lower all prices to the distances from the demands and then send what they
// can on arcs of reduced cost 0, and single paths: whichever sent more for the same work last. Rounds are
// better where many nodes wait or plateaus of equal cost are wide, paths where few nodes wait.
//
// Reference: Ahuja, Magnanti and Orlin, "Network Flows", 1993, section 9.8, for the primal-dual rounds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "flow/general/cost_scaling/distances.hpp"
#include "flow/general/cost_scaling/pseudoflow.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

template <FlowNumber Int>
class Balance {
  public:
    Balance(Pseudoflow<Int>& state, Distances<Int>& distances, NodeCounter& counter)
        : state_(state),
          distances_(distances),
          counter_(counter),
          current_(index(state.num_nodes())),
          seen_(index(state.num_nodes())) {}

    // Goes on until no excess is left or, unless `patient`, after a poor round. False: infeasible, or
    // `counter` stops. On return no residual arc has a negative reduced cost.
    bool run(bool patient);
    bool done() const { return waiting_.empty(); }

  private:
    // A round that serves less than 1/32 of the waiting nodes is a poor one.
    static constexpr std::size_t kPoorRound = 32;
    // Single paths are tried after rounds that serve less than 1/4.
    static constexpr std::size_t kTryPaths = 4;
    // Arcs of paths that take as long as one of a round, read with its reverse.
    static constexpr std::uint64_t kRoundArc = 2;

    bool turn(bool single);
    bool round();
    void single_paths();
    void search_all();
    void search(Node source);
    bool advance(Node v);
    std::size_t send(Node source, Node target);
    void drop_served() {
        std::erase_if(waiting_, [&](Node v) { return state_.excess[index(v)] == 0; });
    }

    Pseudoflow<Int>& state_;
    Distances<Int>& distances_;
    NodeCounter& counter_;
    std::vector<Node> waiting_;  // nodes with excess
    std::vector<std::int32_t> current_;
    std::vector<char> seen_;
    std::vector<std::int32_t> path_;
    struct Yield {
        std::uint64_t served = 0;
        std::uint64_t work = 1;
        bool operator>(const Yield& other) const { return served * other.work > other.served * work; }
    };
    std::array<Yield, 2> yield_;  // of the last round, and the last single paths
    bool tried_ = false;          // single paths
};

template <FlowNumber Int>
bool Balance<Int>::run(bool patient) {
    state_.fill_below(0);
    waiting_.clear();
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[index(v)] > 0) waiting_.push_back(v);
    }
    yield_ = {};
    tried_ = false;
    bool single = false;
    while (!waiting_.empty()) {
        state_.assert_epsilon_optimal(0);
        const std::size_t before = waiting_.size();
        if (!turn(single)) return false;
        const std::size_t served = before - waiting_.size();
        if (!patient && !single && served * kPoorRound < waiting_.size()) break;
        single = tried_ ? yield_[1] > yield_[0] : served * kTryPaths < before;
    }
    state_.assert_epsilon_optimal(0);
    return true;
}

template <FlowNumber Int>
bool Balance<Int>::turn(bool single) {
    const std::uint64_t work = distances_.work();
    const std::size_t before = waiting_.size();
    if (single) {
        single_paths();
    } else if (!round()) {
        return false;
    }
    drop_served();
    tried_ = tried_ || single;
    TOPOPLACE_ASSERT(waiting_.size() <= before);
    yield_[single ? 1 : 0] = {.served = before - waiting_.size(),
                              .work = 1 + (distances_.work() - work) * (single ? 1 : kRoundArc)};
    return !counter_.stopped();
}

template <FlowNumber Int>
void Balance<Int>::single_paths() {
    const std::uint64_t enough = distances_.work() + state_.num_arcs() / kTryPaths;
    for (std::size_t i = waiting_.size(); i > 0 && distances_.work() < enough;) {
        if (state_.excess[index(waiting_[i - 1])] == 0) {
            --i;
        } else if (!distances_.send_to_nearest(waiting_[i - 1])) {
            return;
        }
    }
}

template <FlowNumber Int>
bool Balance<Int>::round() {
    if (distances_.lower_prices(0, 0) != Distances<Int>::Found::all) return false;
    std::size_t before = 0;
    do {
        before = waiting_.size();
        search_all();
    } while (!waiting_.empty() && 2 * waiting_.size() < before);
    return true;
}

template <FlowNumber Int>
void Balance<Int>::search_all() {
    for (Node v = 0; v < state_.num_nodes(); ++v) current_[index(v)] = state_.first(v);
    std::fill(seen_.begin(), seen_.end(), 0);
    for (const Node v : waiting_) search(v);
    drop_served();
}

// Depth first on arcs of reduced cost 0, passing by nodes from which nothing was found. Where such arcs close
// cycles this misses paths through nodes that were on the way; after a good pass another finds some.
template <FlowNumber Int>
void Balance<Int>::search(Node source) {
    path_.clear();
    seen_[index(source)] = 1;
    Node v = source;
    while (state_.excess[index(source)] > 0) {
        if (state_.excess[index(v)] < 0) {
            counter_.visit(send(source, v));
            v = source;
        } else if (advance(v)) {
            path_.push_back(current_[index(v)]);
            v = state_.arc(path_.back()).head;
            seen_[index(v)] = 1;
        } else {
            if (path_.empty()) return;
            v = state_.tail(path_.back());
            path_.pop_back();
            ++current_[index(v)];
        }
    }
    seen_[index(source)] = 0;
}

// Moves a node's current arc to one that leads on.
template <FlowNumber Int>
bool Balance<Int>::advance(Node v) {
    std::int32_t& a = current_[index(v)];
    for (; a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual > 0 && seen_[index(arc.head)] == 0 && state_.reduced_cost(v, arc) == 0) return true;
    }
    return false;
}

// Sends what the path takes; returns the number of its arcs.
template <FlowNumber Int>
std::size_t Balance<Int>::send(Node source, Node target) {
    std::int64_t units = std::min(state_.excess[index(source)], -state_.excess[index(target)]);
    for (const std::int32_t a : path_) units = std::min<std::int64_t>(units, state_.arc(a).residual);
    TOPOPLACE_ASSERT(units > 0);
    TOPOPLACE_ASSERT(path_.empty() || state_.tail(path_.front()) == source);
    TOPOPLACE_ASSERT(path_.empty() || state_.arc(path_.back()).head == target);
    for (const std::int32_t a : path_) {
        state_.push(a, units);
        seen_[index(state_.arc(a).head)] = 0;
    }
    const std::size_t length = path_.size();
    path_.clear();
    return length;
}

}  // namespace topoplace::flow
