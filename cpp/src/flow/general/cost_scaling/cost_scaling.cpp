// Cost scaling: successive approximation by push and relabel, begun and ended by shortest paths.
//
// A pseudoflow is epsilon-optimal for prices p where every residual arc v -> w has a reduced cost
// cost + p(v) - p(w) of at least -epsilon. Refine makes it so for a smaller epsilon: it fills every arc below
// that, then sends the excess this leaves along admissible arcs, residual ones of negative reduced cost,
// lowering ("relabelling") the price of a node that has none (refine.hpp). Epsilon falls from the largest
// cost C to 1 by 16 at a time, in O(n^2 m) each.
//
// Textbooks go on to 1/n, where the flow is optimal, by multiplying all costs by n + 1. Here the rest is done
// by shortest paths: arcs of reduced cost -1 are filled, and the excess goes to the nearest demands at exact,
// whole-numbered distances (balance.hpp). Prices are potentials of the original costs at once, and what log n
// phases would do takes some ten rounds: distances after epsilon = 1 are short. Balance also comes first: it
// alone solves networks with room for everything in a few rounds, and gives up where rounds achieve little.
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
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "flow/general/algorithms.hpp"
#include "flow/general/cost_scaling/balance.hpp"
#include "flow/general/cost_scaling/refine.hpp"

namespace topoplace::flow {
namespace {

constexpr int kAlphaBits = 4;  // epsilon shrinks by 2^4 a phase

std::int64_t largest_cost(const Problem& problem) {
    std::int64_t largest = 0;
    for (const std::int64_t cost : problem.cost) largest = std::max(largest, std::abs(cost));
    return largest;
}

template <FlowNumber Int>
bool approximate(Pseudoflow<Int>& state, Distances<Int>& distances, WorkMeter& meter, std::int64_t cost) {
    Refine<Int> refine(state, distances, meter);
    auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(cost)));
    do {
        bits = std::max(0, bits - kAlphaBits);
        if (!refine.run(bits)) return false;
    } while (bits > 0);
    return true;
}

template <FlowNumber Int>
Solution solve(const Problem& problem, WorkMeter& meter) {
    Pseudoflow<Int> state(problem);
    Distances<Int> distances(state, meter);
    Balance<Int> balance(state, distances, meter);
    bool sent = balance.run(false);
    if (sent && !balance.done())
        sent = approximate(state, distances, meter, largest_cost(problem)) && balance.run(true);
    if (!sent) {
        const Status status = meter.stopped() ? Status::timeout : Status::infeasible;
        return {.status = status, .flow = {}, .potential = {}};
    }
    state.assert_no_excess();
    return {.status = Status::optimal, .flow = state.flow(), .potential = std::move(state.price)};
}

// True if the numbers of every arc fit 32 bits.
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

Fault check_scaling(const Problem& problem) {
    if (scalable(problem)) return std::nullopt;
    return "cost: " + std::to_string(largest_cost(problem)) +
           " is too large for cost_scaling: times 4 (num_nodes + 2) it has to stay below 2^61; "
           "network_simplex takes it";
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

Solution cost_scaling(const Problem& problem, WorkMeter& meter) {
    TOPOPLACE_ASSERT(scalable(problem));
    return narrow(problem) ? solve<std::int32_t>(problem, meter) : solve<std::int64_t>(problem, meter);
}

}  // namespace topoplace::flow
