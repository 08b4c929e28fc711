// Cost scaling: successive approximation by push and relabel, begun and ended by shortest paths.
//
// A pseudoflow is epsilon-optimal for prices p where every residual arc v -> w has a reduced cost
// cost + p(v) - p(w) of at least -epsilon. Refine makes it so for a smaller epsilon: it fills every arc below
// that, then sends the excess this leaves along admissible arcs, residual ones of negative reduced cost,
// lowering ("relabelling") the price of a node that has none. Epsilon falls from the largest cost C to 1 by
// 16 at a time, in O(n^2 m) each.
//
// Textbooks go on to 1/n, where the flow is optimal, by multiplying all costs by n + 1. Here the rest is done
// by shortest paths: arcs of reduced cost -1 are filled, and the excess goes to the nearest demands at exact,
// whole-numbered distances (balance). Prices are potentials of the original costs at once, and what log n
// phases would do takes some ten rounds: distances after epsilon = 1 are short. Balance also comes first: it
// alone solves networks with room for everything in a few rounds, and gives up where rounds achieve little.
//
// Balance chooses between rounds, which lower all prices to the distances from the demands and then send what
// they can on arcs of reduced cost 0, and single paths, whichever sent more from the same work last: rounds
// where many wait or plateaus of equal cost are wide, paths where few wait.
//
// What makes refine fast: excess moves along paths of a few arcs before it looks elsewhere (partial augment);
// every n relabels all prices are lowered at once to the distances from the demands in lengths of epsilon, a
// power of two, so that lengths are shifts. Arcs between -epsilon and 0 are left alone, for each would make
// an excess.
//
// An excess that reaches no demand proves that not everything can be sent.
//
// Every price falls by at most 17 n epsilon a phase (Goldberg and Tarjan, lemma 5.8), by less than 4 n C in
// all; costs for which this is above 2^61 are refused.
//
// References: Goldberg and Tarjan, "Finding minimum-cost circulations by successive approximation", Math. of
// Operations Research 15 (1990); Goldberg, "An efficient implementation of a scaling minimum-cost flow
// algorithm", J. of Algorithms 22 (1997); Kiraly and Kovacs, "Efficient implementations of minimum-cost flow
// algorithms", Acta Univ. Sapientiae 4 (2012), for partial augment; Ahuja, Magnanti and Orlin, 1993, section
// 9.8, for the primal-dual rounds.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "flow/general/distances.hpp"
#include "flow/general/pseudoflow.hpp"

namespace topoplace::flow {
namespace {

constexpr int kAlphaBits = 4;          // epsilon shrinks by 2^4 a phase
constexpr std::size_t kLongest = 4;    // arcs of a partial augment
constexpr std::size_t kPatience = 32;  // a round that serves less than 1/32 of what waits is a poor one
constexpr std::size_t kTry = 4;        // single paths are tried after rounds that serve less than 1/4
constexpr std::uint64_t kRoundArc =
    2;  // arcs of paths that take as long as one of a round, read with its reverse

std::int64_t largest_cost(const Problem& problem) {
    std::int64_t largest = 0;
    for (const std::int64_t cost : problem.cost) largest = std::max(largest, std::abs(cost));
    return largest;
}

// ---- shortest paths ---------------------------------------------------------------------------------------

// Sends excess to demands on shortest paths while no residual arc has a negative reduced cost.
template <class Int>
class Balance {
  public:
    Balance(Pseudoflow<Int>& state, Distances<Int>& distances, NodeCounter& counter)
        : state_(state),
          distances_(distances),
          counter_(counter),
          current_(at(state.num_nodes())),
          seen_(at(state.num_nodes())) {}

    // Until nothing waits, or, without patience, a turn was a poor one. False: infeasible, or no time is
    // left.
    bool run(bool patient);
    bool done() const { return waiting_.empty(); }

  private:
    bool turn(bool single);
    bool round();
    void single_paths();
    void search_all();
    void search(Node source);
    bool advance(Node v);
    std::size_t send(Node source, Node target);
    void drop_served() {
        std::erase_if(waiting_, [&](Node v) { return state_.excess[at(v)] == 0; });
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

template <class Int>
bool Balance<Int>::run(bool patient) {
    state_.fill_below(0);
    waiting_.clear();
    for (Node v = 0; v < state_.num_nodes(); ++v) {
        if (state_.excess[at(v)] > 0) waiting_.push_back(v);
    }
    yield_ = {};
    tried_ = false;
    bool single = false;
    while (!waiting_.empty()) {
        const std::size_t before = waiting_.size();
        if (!turn(single)) return false;
        const std::size_t served = before - waiting_.size();
        if (!patient && !single && served * kPatience < waiting_.size()) break;
        single = tried_ ? yield_[1] > yield_[0] : served * kTry < before;
    }
    return true;
}

template <class Int>
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
    yield_[single ? 1 : 0] = {before - waiting_.size(),
                              1 + (distances_.work() - work) * (single ? 1 : kRoundArc)};
    return !counter_.stopped();
}

template <class Int>
void Balance<Int>::single_paths() {
    const std::uint64_t enough = distances_.work() + state_.num_arcs() / kTry;
    for (std::size_t i = waiting_.size(); i > 0 && distances_.work() < enough;) {
        if (state_.excess[at(waiting_[i - 1])] == 0) {
            --i;
        } else if (!distances_.send_to_nearest(waiting_[i - 1])) {
            return;
        }
    }
}

template <class Int>
bool Balance<Int>::round() {
    if (distances_.lower_prices(0, 0) != Distances<Int>::Found::all) return false;
    std::size_t before = 0;
    do {
        before = waiting_.size();
        search_all();
    } while (!waiting_.empty() && 2 * waiting_.size() < before);
    return true;
}

template <class Int>
void Balance<Int>::search_all() {
    for (Node v = 0; v < state_.num_nodes(); ++v) current_[at(v)] = state_.first(v);
    std::fill(seen_.begin(), seen_.end(), 0);
    for (const Node v : waiting_) search(v);
    drop_served();
}

// Depth first on arcs of reduced cost 0, passing by nodes from which nothing was found. Where such arcs close
// cycles this misses paths through nodes that were on the way; after a good pass another finds some.
template <class Int>
void Balance<Int>::search(Node source) {
    path_.clear();
    seen_[at(source)] = 1;
    Node v = source;
    while (state_.excess[at(source)] > 0) {
        if (state_.excess[at(v)] < 0) {
            counter_.visit(send(source, v));
            v = source;
        } else if (advance(v)) {
            path_.push_back(current_[at(v)]);
            v = state_.arc(path_.back()).head;
            seen_[at(v)] = 1;
        } else {
            if (path_.empty()) return;
            v = state_.tail(path_.back());
            path_.pop_back();
            ++current_[at(v)];
        }
    }
    seen_[at(source)] = 0;
}

// Moves a node's current arc to one that leads on.
template <class Int>
bool Balance<Int>::advance(Node v) {
    std::int32_t& a = current_[at(v)];
    for (; a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual > 0 && seen_[at(arc.head)] == 0 && state_.reduced_cost(v, arc) == 0) return true;
    }
    return false;
}

// Sends what the path takes; the number of its arcs.
template <class Int>
std::size_t Balance<Int>::send(Node source, Node target) {
    std::int64_t units = std::min(state_.excess[at(source)], -state_.excess[at(target)]);
    for (const std::int32_t a : path_) units = std::min<std::int64_t>(units, state_.arc(a).residual);
    for (const std::int32_t a : path_) {
        state_.push(a, units);
        seen_[at(state_.arc(a).head)] = 0;
    }
    const std::size_t length = path_.size();
    path_.clear();
    return length;
}

// ---- push and relabel -------------------------------------------------------------------------------------

template <class Int>
class Refine {
  public:
    Refine(Pseudoflow<Int>& state, Distances<Int>& distances, NodeCounter& counter)
        : state_(state),
          distances_(distances),
          counter_(counter),
          current_(at(state.num_nodes())),
          queue_(at(state.num_nodes())),
          queued_(at(state.num_nodes())) {}

    // To a flow that is 2^bits-optimal. False: infeasible, or no time is left.
    bool run(int bits);

  private:
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
    std::vector<std::int32_t> current_;  // by node, the arc to look at first
    std::vector<Node> queue_;            // a ring of nodes with excess, each once
    std::vector<char> queued_;           // by node, whether it is there
    std::size_t queue_head_ = 0;
    std::size_t queue_size_ = 0;
    std::array<std::int32_t, kLongest> path_{};
    std::int32_t relabels_ = 0;  // since the last price update
};

template <class Int>
bool Refine<Int>::run(int bits) {
    bits_ = bits;
    state_.fill_below(-(std::int64_t{1} << bits));
    for (Node v = 0; v < state_.num_nodes(); ++v) enqueue(v);
    relabels_ = state_.num_nodes();
    while (queue_size_ > 0) {
        if (update_due() && !update_prices()) return false;
        const Node v = dequeue();
        while (state_.excess[at(v)] > 0 && !update_due()) augment(v);
        enqueue(v);
        if (counter_.stopped()) return false;
    }
    return true;
}

template <class Int>
bool Refine<Int>::update_prices() {
    relabels_ = 0;
    if (distances_.lower_prices(bits_, 1) != Distances<Int>::Found::all) return false;
    for (Node v = 0; v < state_.num_nodes(); ++v) current_[at(v)] = state_.first(v);
    return true;
}

template <class Int>
void Refine<Int>::enqueue(Node v) {
    if (state_.excess[at(v)] <= 0 || queued_[at(v)] != 0) return;
    queued_[at(v)] = 1;
    const std::size_t end = queue_head_ + queue_size_++;
    queue_[end < queue_.size() ? end : end - queue_.size()] = v;
}

template <class Int>
Node Refine<Int>::dequeue() {
    const Node v = queue_[queue_head_];
    queue_head_ = queue_head_ + 1 == queue_.size() ? 0 : queue_head_ + 1;
    --queue_size_;
    queued_[at(v)] = 0;
    return v;
}

// Follows admissible arcs from the source until some are found in a row or a demand is reached, then pushes.
template <class Int>
void Refine<Int>::augment(Node source) {
    std::size_t length = 0;
    Node tip = source;
    while (length < kLongest && (length == 0 || state_.excess[at(tip)] >= 0) && !update_due()) {
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

// The next admissible arc of a node, or -1.
template <class Int>
std::int32_t Refine<Int>::admissible(Node v) {
    for (std::int32_t a = current_[at(v)]; a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual == 0 || state_.reduced_cost(v, arc) >= 0) continue;
        current_[at(v)] = a;
        return a;
    }
    return -1;
}

// Moves along each arc of the path whatever fits, so that units may stop on the way.
template <class Int>
void Refine<Int>::push(std::size_t length) {
    counter_.visit(length);
    for (std::size_t i = 0; i < length; ++i) {
        const Node v = state_.tail(path_[i]);
        const auto& arc = state_.arc(path_[i]);
        state_.push(path_[i], std::min<std::int64_t>(arc.residual, state_.excess[at(v)]));
        if (i > 0) enqueue(v);
        enqueue(arc.head);
    }
}

template <class Int>
void Refine<Int>::relabel(Node v) {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
    std::int64_t best = kNone;
    for (std::int32_t a = state_.first(v); a < state_.end(v); ++a) {
        const auto& arc = state_.arc(a);
        if (arc.residual > 0) best = std::max(best, state_.price[at(arc.head)] - arc.cost);
    }
    // Nothing goes on from a node without residual arcs: out of reach of others. Below what any price needs,
    // an excess that comes again and again can go nowhere else.
    if (best == kNone) {
        const bool lowest = state_.price[at(v)] <= -kMaxPotential;
        best = state_.price[at(v)] - (lowest ? 0 : std::int64_t{state_.num_nodes()} << bits_);
    }
    state_.price[at(v)] = best - (std::int64_t{1} << bits_);
    current_[at(v)] = state_.first(v);
    ++relabels_;
    counter_.visit();
}

// ---- phases -----------------------------------------------------------------------------------------------

template <class Int>
bool approximate(Pseudoflow<Int>& state, Distances<Int>& distances, NodeCounter& counter, std::int64_t cost) {
    Refine<Int> refine(state, distances, counter);
    auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(cost)));
    do {
        bits = std::max(0, bits - kAlphaBits);
        if (!refine.run(bits)) return false;
    } while (bits > 0);
    return true;
}

template <class Int>
Solution solve(const Problem& problem, NodeCounter& counter) {
    Pseudoflow<Int> state(problem);
    Distances<Int> distances(state, counter);
    Balance<Int> balance(state, distances, counter);
    bool sent = balance.run(false);
    if (sent && !balance.done())
        sent = approximate(state, distances, counter, largest_cost(problem)) && balance.run(true);
    if (!sent)
        return {
            .status = counter.stopped() ? Status::timeout : Status::infeasible, .flow = {}, .potential = {}};
    return {.status = Status::optimal, .flow = state.flow(), .potential = std::move(state.price)};
}

// Whether an arc's numbers fit half their usual size.
bool narrow(const Problem& problem) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto fits = [](std::int64_t capacity) { return capacity <= kMost; };
    return largest_cost(problem) <= kMost &&
           std::all_of(problem.capacity.begin(), problem.capacity.end(), fits);
}

}  // namespace

bool scalable(const Problem& problem) {
    return largest_cost(problem) <= kMaxPotential / 4 / (std::int64_t{problem.num_nodes} + 2);
}

// Measured: trees of the network simplex lose where most of their arcs are empty, one for each unit supplied,
// and the network is sparse, the more so where it is larger than the caches (benchmarks/bench_flow.py).
bool prefers_scaling(const Problem& problem) {
    constexpr std::size_t kLarge = 10'000;
    const std::size_t nodes = problem.supply.size();
    const auto units = static_cast<std::size_t>(std::count(problem.supply.begin(), problem.supply.end(), 1));
    const bool sparse = problem.tail.size() <= (nodes < kLarge ? 3 : 8) * nodes;
    return units * 4 >= nodes && sparse && scalable(problem);
}

Solution cost_scaling(const Problem& problem, NodeCounter& counter) {
    if (!scalable(problem)) {
        throw std::invalid_argument("cost: " + std::to_string(largest_cost(problem)) +
                                    " is too large for cost_scaling: times 4 (num_nodes + 2) it has to stay "
                                    "below 2^61; network_simplex takes it");
    }
    return narrow(problem) ? solve<std::int32_t>(problem, counter) : solve<std::int64_t>(problem, counter);
}

}  // namespace topoplace::flow
