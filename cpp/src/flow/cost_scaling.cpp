// Cost scaling: successive approximation by push and relabel.
//
// A flow is epsilon-optimal for prices p where every residual arc v -> w has a reduced cost
// cost + p(v) - p(w) of at least -epsilon. Costs are multiplied by s = n + 1, so that a 1-optimal flow is
// optimal. Refine takes an epsilon-optimal flow to an (epsilon / alpha)-optimal one: it fills every arc of
// negative reduced cost, then sends the excess this leaves along admissible arcs, residual ones of negative
// reduced cost, lowering ("relabelling") the price of a node that has none. O(n^2 m log(n C)) for the
// largest cost C.
//
// What makes it fast: excess moves along paths of a few arcs before it looks elsewhere (partial augment);
// now and then all prices are lowered at once to the distances from the demands, in lengths of epsilon
// (price update), found with buckets; epsilon is a power of two, so that lengths are shifts; an arc and its
// residual capacity are 16 bytes where numbers allow.
//
// Prices of the scaled costs become potentials of the original ones by one division: among n + 1 residues one
// is no node's, and shifted by it every quotient rounds down to the same side (potentials() below).
//
// An excess that reaches no demand proves that not everything can be sent.
//
// Every price falls by at most (alpha + 1) n epsilon a phase (Goldberg and Tarjan, lemma 5.8), by less than
// 4 n s C in all; `scalable` keeps this below 2^61.
//
// References: Goldberg and Tarjan, "Finding minimum-cost circulations by successive approximation", Math. of
// Operations Research 15 (1990); Goldberg, "An efficient implementation of a scaling minimum-cost flow
// algorithm", J. of Algorithms 22 (1997); Bünnagel, Korte and Vygen, "Efficient implementation of the
// Goldberg-Tarjan minimum-cost flow algorithm", Optimization Methods and Software 10 (1998).
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include "flow/problem.hpp"

namespace topoplace::flow {
namespace {

constexpr int kAlphaBits = 4;        // epsilon shrinks by 2^4 a phase
constexpr std::size_t kLongest = 4;  // arcs of a partial augment
constexpr std::int32_t kFar = std::numeric_limits<std::int32_t>::max();

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

std::int64_t largest_cost(const Problem& problem) {
    std::int64_t largest = 0;
    for (const std::int64_t cost : problem.cost) largest = std::max(largest, std::abs(cost));
    return largest;
}

// Costs are multiplied by 2 to this power, which is above the number of nodes.
int scale_bits(const Problem& problem) {
    return static_cast<int>(std::bit_width(static_cast<std::uint32_t>(problem.num_nodes)));
}

// Whether prices stay below kMaxPotential where reduced costs start at no less than -largest.
bool prices_fit(const Problem& problem, Total largest) {
    return largest * 4 * (problem.num_nodes + 1) <= kMaxPotential >> scale_bits(problem);
}

bool useful_start(const Problem& problem) {
    std::int64_t largest = 0;
    for (const std::int64_t potential : problem.start_potential)
        largest = std::max(largest, potential < 0 ? -(potential + 1) : potential);
    return prices_fit(problem, Total{largest} * 2 + 2 + largest_cost(problem));
}

template <class Int>
struct Arc {
    std::int32_t head;
    std::int32_t reverse;
    Int residual;
    Int cost;  // scaled
};

template <class Int>
class Scaling {
  public:
    Scaling(const Problem& problem, NodeCounter& counter);
    Solution solve();

  private:
    void build();
    void start();
    std::int64_t largest_violation() const;
    Status refine();
    void fill_negative();
    void activate(std::int32_t v);
    void augment(std::int32_t source);
    std::int32_t extend(std::int32_t tip);
    void push(std::size_t length);
    void relabel(std::int32_t v);
    bool update_due() const { return relabels_ >= num_nodes_; }
    bool update_prices();
    void scan(std::int32_t v);
    void settle(std::int32_t v, std::int64_t distance);
    void lower_to_distances(std::int32_t last);
    bool demands_reached() const;
    // No excess is farther from its demand, except perhaps after a warm start.
    std::int32_t limit() const {
        return static_cast<std::int32_t>(std::min<std::int64_t>(kFar - 1, std::int64_t{num_nodes_} * 18 + 1));
    }
    std::vector<std::int64_t> flow() const;
    std::vector<std::int64_t> potentials() const;
    std::int64_t reduced_cost(std::int32_t v, const Arc<Int>& arc) const {
        return arc.cost + price_[at(v)] - price_[at(arc.head)];
    }

    const Problem& problem_;
    NodeCounter& counter_;
    std::int32_t num_nodes_;
    int scale_bits_;
    int epsilon_bits_ = 0;
    std::vector<std::int32_t> first_;  // by node, its first arc
    std::vector<Arc<Int>> arcs_;       // by tail
    std::vector<std::int32_t> place_;  // by arc of the problem, where it is
    std::vector<std::int64_t> price_;
    std::vector<std::int64_t> excess_;
    std::vector<std::int32_t> current_;  // by node, the arc to look at first
    std::vector<std::int32_t> queue_;    // a ring of nodes with excess, each once
    std::vector<char> queued_;           // by node, whether it is there
    std::size_t queue_head_ = 0;
    std::size_t queue_size_ = 0;
    std::array<std::int32_t, kLongest> path_{};
    std::int32_t relabels_ = 0;  // since the last price update
    // Of price updates: nodes by distance, in lists; a node that came nearer has a later entry, too.
    struct Entry {
        std::int32_t node;
        std::int32_t next;
    };
    std::vector<std::int32_t> distance_;
    std::vector<std::int32_t> bucket_;
    std::vector<Entry> entries_;
    std::int32_t unreached_ = 0;  // nodes with excess
};

template <class Int>
Scaling<Int>::Scaling(const Problem& problem, NodeCounter& counter)
    : problem_(problem),
      counter_(counter),
      num_nodes_(problem.num_nodes),
      scale_bits_(scale_bits(problem)),
      first_(at(num_nodes_) + 1),
      arcs_(2 * problem.tail.size()),
      place_(problem.tail.size()),
      price_(at(num_nodes_)),
      excess_(problem.supply),
      queue_(at(num_nodes_)),
      queued_(at(num_nodes_)),
      distance_(at(num_nodes_)) {
    build();
    if (!problem.start_potential.empty() && useful_start(problem)) start();
}

template <class Int>
void Scaling<Int>::build() {
    for (std::size_t a = 0; a < place_.size(); ++a) {
        ++first_[at(problem_.tail[a])];
        ++first_[at(problem_.head[a])];
    }
    std::int32_t sum = 0;
    for (std::int32_t& first : first_) first = sum += first;
    for (std::size_t a = place_.size(); a-- > 0;) {
        const std::int32_t forward = --first_[at(problem_.tail[a])];
        const std::int32_t backward = --first_[at(problem_.head[a])];
        const auto cost = static_cast<Int>(problem_.cost[a] * (std::int64_t{1} << scale_bits_));
        arcs_[at(forward)] = {problem_.head[a], backward, static_cast<Int>(problem_.capacity[a]), cost};
        arcs_[at(backward)] = {problem_.tail[a], forward, 0, static_cast<Int>(-cost)};
        place_[a] = forward;
    }
    current_.assign(first_.begin(), first_.end() - 1);
}

template <class Int>
void Scaling<Int>::start() {
    for (std::size_t v = 0; v < price_.size(); ++v)
        price_[v] = problem_.start_potential[v] * (std::int64_t{1} << scale_bits_);
    for (std::size_t a = 0; a < problem_.start_flow.size(); ++a) {
        Arc<Int>& arc = arcs_[at(place_[a])];
        arc.residual = static_cast<Int>(arc.residual - problem_.start_flow[a]);
        arcs_[at(arc.reverse)].residual = static_cast<Int>(problem_.start_flow[a]);
        excess_[at(problem_.tail[a])] -= problem_.start_flow[a];
        excess_[at(problem_.head[a])] += problem_.start_flow[a];
    }
}

template <class Int>
std::int64_t Scaling<Int>::largest_violation() const {
    std::int64_t least = 0;
    for (std::int32_t v = 0; v < num_nodes_; ++v) {
        for (std::int32_t a = first_[at(v)]; a < first_[at(v) + 1]; ++a) {
            if (arcs_[at(a)].residual > 0) least = std::min(least, reduced_cost(v, arcs_[at(a)]));
        }
    }
    return -least;
}

template <class Int>
Solution Scaling<Int>::solve() {
    Solution solution;
    epsilon_bits_ = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest_violation())));
    do {
        epsilon_bits_ = std::max(0, epsilon_bits_ - kAlphaBits);
        solution.status = refine();
    } while (solution.status == Status::optimal && epsilon_bits_ > 0);
    if (solution.status != Status::optimal) return solution;
    solution.flow = flow();
    solution.potential = potentials();
    return solution;
}

template <class Int>
Status Scaling<Int>::refine() {
    fill_negative();
    relabels_ = num_nodes_;
    while (queue_size_ > 0) {
        if (update_due() && !update_prices())
            return counter_.stopped() ? Status::timeout : Status::infeasible;
        const std::int32_t v = queue_[queue_head_];
        queue_head_ = queue_head_ + 1 == queue_.size() ? 0 : queue_head_ + 1;
        --queue_size_;
        queued_[at(v)] = 0;
        while (excess_[at(v)] > 0 && !update_due()) augment(v);
        activate(v);
        if (counter_.stopped()) return Status::timeout;
    }
    return Status::optimal;
}

// Makes the flow optimal for the prices, at the expense of conservation.
template <class Int>
void Scaling<Int>::fill_negative() {
    for (std::int32_t v = 0; v < num_nodes_; ++v) {
        for (std::int32_t a = first_[at(v)]; a < first_[at(v) + 1]; ++a) {
            Arc<Int>& arc = arcs_[at(a)];
            if (arc.residual == 0 || reduced_cost(v, arc) >= 0) continue;
            arcs_[at(arc.reverse)].residual =
                static_cast<Int>(arcs_[at(arc.reverse)].residual + arc.residual);
            excess_[at(v)] -= arc.residual;
            excess_[at(arc.head)] += arc.residual;
            arc.residual = 0;
        }
    }
    for (std::int32_t v = 0; v < num_nodes_; ++v) activate(v);
}

template <class Int>
void Scaling<Int>::activate(std::int32_t v) {
    if (excess_[at(v)] <= 0 || queued_[at(v)] != 0) return;
    queued_[at(v)] = 1;
    const std::size_t end = queue_head_ + queue_size_++;
    queue_[end < queue_.size() ? end : end - queue_.size()] = v;
}

// Follows admissible arcs from the source until some are found in a row or a demand is reached, then pushes.
template <class Int>
void Scaling<Int>::augment(std::int32_t source) {
    std::size_t length = 0;
    std::int32_t tip = source;
    while (length < kLongest && (length == 0 || excess_[at(tip)] >= 0) && !update_due()) {
        const std::int32_t a = extend(tip);
        if (a >= 0) {
            path_[length++] = a;
            tip = arcs_[at(a)].head;
        } else {
            relabel(tip);
            if (length > 0) tip = arcs_[at(arcs_[at(path_[--length])].reverse)].head;
        }
    }
    push(length);
}

// The next admissible arc of a node, or -1.
template <class Int>
std::int32_t Scaling<Int>::extend(std::int32_t tip) {
    const std::int64_t price = price_[at(tip)];
    const std::int32_t end = first_[at(tip) + 1];
    for (std::int32_t a = current_[at(tip)]; a < end; ++a) {
        const Arc<Int>& arc = arcs_[at(a)];
        if (arc.residual == 0 || arc.cost + price - price_[at(arc.head)] >= 0) continue;
        current_[at(tip)] = a;
        return a;
    }
    return -1;
}

template <class Int>
void Scaling<Int>::push(std::size_t length) {
    counter_.visit(length);
    for (std::size_t i = 0; i < length; ++i) {
        Arc<Int>& arc = arcs_[at(path_[i])];
        Arc<Int>& reverse = arcs_[at(arc.reverse)];
        std::int64_t& from = excess_[at(reverse.head)];
        const auto units = static_cast<Int>(std::min<std::int64_t>(arc.residual, from));
        arc.residual = static_cast<Int>(arc.residual - units);
        reverse.residual = static_cast<Int>(reverse.residual + units);
        from -= units;
        excess_[at(arc.head)] += units;
        if (i > 0) activate(reverse.head);
        activate(arc.head);
    }
}

template <class Int>
void Scaling<Int>::relabel(std::int32_t v) {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
    std::int64_t best = kNone;
    for (std::int32_t a = first_[at(v)]; a < first_[at(v) + 1]; ++a) {
        const Arc<Int>& arc = arcs_[at(a)];
        if (arc.residual > 0) best = std::max(best, price_[at(arc.head)] - arc.cost);
    }
    // From a node without residual arcs nothing goes on: out of reach of others.
    if (best == kNone) best = price_[at(v)] - (std::int64_t{num_nodes_} << epsilon_bits_);
    price_[at(v)] = best - (std::int64_t{1} << epsilon_bits_);
    current_[at(v)] = first_[at(v)];
    ++relabels_;
    counter_.visit();
}

// Lowers every price to what the nearest demand costs. False: an excess reaches none, or the time is over.
template <class Int>
bool Scaling<Int>::update_prices() {
    relabels_ = 0;
    entries_.clear();
    bucket_.clear();
    unreached_ = 0;
    distance_.assign(distance_.size(), kFar);
    for (std::int32_t v = 0; v < num_nodes_; ++v) {
        if (excess_[at(v)] < 0) settle(v, 0);
        if (excess_[at(v)] > 0) ++unreached_;
    }
    std::int32_t last = 0;
    for (std::int32_t distance = 0; at(distance) < bucket_.size() && unreached_ > 0; ++distance) {
        last = distance;
        while (bucket_[at(distance)] >= 0 && unreached_ > 0) {
            const Entry entry = entries_[at(bucket_[at(distance)])];
            bucket_[at(distance)] = entry.next;
            if (distance_[at(entry.node)] == distance) scan(entry.node);
        }
    }
    if (unreached_ > 0) {
        if (!demands_reached()) return false;
        last = limit();
    }
    lower_to_distances(last);
    return !counter_.stopped();
}

// Finds what is nearer to a demand by way of this node.
template <class Int>
void Scaling<Int>::scan(std::int32_t v) {
    counter_.visit();
    if (excess_[at(v)] > 0) --unreached_;
    for (std::int32_t a = first_[at(v)]; a < first_[at(v) + 1]; ++a) {
        const Arc<Int>& arc = arcs_[at(a)];
        if (distance_[at(arc.head)] <= distance_[at(v)] || arcs_[at(arc.reverse)].residual == 0) continue;
        settle(arc.head, distance_[at(v)] + (-reduced_cost(v, arc) >> epsilon_bits_) + 1);
    }
}

template <class Int>
void Scaling<Int>::settle(std::int32_t v, std::int64_t distance) {
    if (distance >= distance_[at(v)] || distance > limit()) return;
    distance_[at(v)] = static_cast<std::int32_t>(distance);
    const auto place = static_cast<std::size_t>(distance);
    if (place >= bucket_.size()) bucket_.resize(place + 1, -1);
    entries_.push_back({v, bucket_[place]});
    bucket_[place] = static_cast<std::int32_t>(entries_.size()) - 1;
}

template <class Int>
void Scaling<Int>::lower_to_distances(std::int32_t last) {
    for (std::size_t v = 0; v < price_.size(); ++v)
        price_[v] -= std::int64_t{std::min(distance_[v], last)} << epsilon_bits_;
    std::copy(first_.begin(), first_.end() - 1, current_.begin());
}

// Whether every excess can go to some demand, at whatever cost.
template <class Int>
bool Scaling<Int>::demands_reached() const {
    std::vector<char> reached(at(num_nodes_));
    std::vector<std::int32_t> found;
    const auto reach = [&](std::int32_t v) {
        if (reached[at(v)] != 0) return;
        reached[at(v)] = 1;
        found.push_back(v);
    };
    for (std::int32_t v = 0; v < num_nodes_; ++v) {
        if (excess_[at(v)] < 0) reach(v);
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (std::int32_t a = first_[at(found[i])]; a < first_[at(found[i]) + 1]; ++a) {
            if (arcs_[at(arcs_[at(a)].reverse)].residual > 0) reach(arcs_[at(a)].head);
        }
    }
    for (std::int32_t v = 0; v < num_nodes_; ++v) {
        if (excess_[at(v)] > 0 && reached[at(v)] == 0) return false;
    }
    return true;
}

template <class Int>
std::vector<std::int64_t> Scaling<Int>::flow() const {
    std::vector<std::int64_t> flow(place_.size());
    for (std::size_t a = 0; a < flow.size(); ++a) flow[a] = arcs_[at(arcs_[at(place_[a])].reverse)].residual;
    return flow;
}

// With scaled costs c s: c s + p(v) - p(w) >= -1 on residual arcs, so p(w) / s <= c + (p(v) + 1) / s, and the
// same of both sides rounded down, where p(v) + 1 divides as p(v) does: unless p(v) = -1 modulo s.
template <class Int>
std::vector<std::int64_t> Scaling<Int>::potentials() const {
    const std::int64_t mask = (std::int64_t{1} << scale_bits_) - 1;
    std::vector<char> taken(static_cast<std::size_t>(mask) + 1);
    for (const std::int64_t price : price_) taken[static_cast<std::size_t>(price & mask)] = 1;
    const std::int64_t shift = mask - (std::find(taken.begin(), taken.end(), 0) - taken.begin());
    std::vector<std::int64_t> potentials;
    potentials.reserve(price_.size());
    for (const std::int64_t price : price_) potentials.push_back((price + shift) >> scale_bits_);
    return potentials;
}

// Whether an arc's numbers fit half their usual size.
bool narrow(const Problem& problem) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto fits = [](std::int64_t capacity) { return capacity <= kMost; };
    return largest_cost(problem) <= kMost >> scale_bits(problem) &&
           std::all_of(problem.capacity.begin(), problem.capacity.end(), fits);
}

}  // namespace

bool scalable(const Problem& problem) { return prices_fit(problem, largest_cost(problem)); }

Solution cost_scaling(const Problem& problem, NodeCounter& counter) {
    if (!scalable(problem))
        throw std::invalid_argument(
            "cost: " + std::to_string(largest_cost(problem)) +
            " is too large for cost_scaling: times 4 (num_nodes + 1)^2 it has to stay "
            "below 2^61; network_simplex takes it");
    if (narrow(problem)) return Scaling<std::int32_t>(problem, counter).solve();
    return Scaling<std::int64_t>(problem, counter).solve();
}

}  // namespace topoplace::flow
