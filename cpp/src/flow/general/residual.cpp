// The residual graph in compressed rows: arcs sorted by tail, each next to its reverse.
#include "flow/general/residual.hpp"

#include <algorithm>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

Residual::Residual(const Problem& problem)
    : first_(index(problem.num_nodes) + 1), excess_(problem.supply.begin(), problem.supply.end()) {
    for (std::size_t arc = 0; arc < problem.tail.size(); ++arc) {
        head_.push_back(index(problem.head[arc]));
        head_.push_back(index(problem.tail[arc]));
        cost_.push_back(problem.cost[arc]);
        cost_.push_back(-problem.cost[arc]);
        left_.push_back(problem.capacity[arc]);
        left_.push_back(0);
    }
    for (std::size_t arc = 0; arc < num_arcs(); ++arc) ++first_[tail(arc) + 1];
    for (std::size_t node = 0; node < num_nodes(); ++node) first_[node + 1] += first_[node];
    order_.resize(num_arcs());
    std::vector<std::size_t> next = first_;
    for (std::size_t arc = 0; arc < num_arcs(); ++arc) order_[next[tail(arc)]++] = arc;
}

void Residual::push(std::size_t arc, std::int64_t units) {
    TOPOPLACE_ASSERT(0 <= units && units <= left_[arc]);
    left_[arc] -= units;
    left_[arc ^ 1] += units;
    excess_[tail(arc)] -= units;
    excess_[head(arc)] += units;
}

void Residual::fill_negative() {
    for (std::size_t arc = 0; arc < num_arcs(); arc += 2) {
        if (cost_[arc] < 0) push(arc, left_[arc]);
    }
}

void Residual::augment(const std::vector<std::size_t>& arc_into, std::size_t begin, std::size_t end) {
    TOPOPLACE_ASSERT(excess_[begin] > 0 && excess_[end] < 0);
    Total units = std::min(excess_[begin], -excess_[end]);
    for (std::size_t node = end; node != begin; node = tail(arc_into[node])) {
        TOPOPLACE_ASSERT(head(arc_into[node]) == node);
        units = std::min<Total>(units, left_[arc_into[node]]);
    }
    TOPOPLACE_ASSERT(units > 0);
    for (std::size_t node = end; node != begin; node = tail(arc_into[node])) {
        push(arc_into[node], static_cast<std::int64_t>(units));
    }
}

void Residual::assert_optimal_for(std::span<const std::int64_t> potential) const {
    if constexpr (!kAssertionsOn) return;
    for (std::size_t arc = 0; arc < num_arcs(); ++arc) {
        const Total reduced_cost = Total{cost_[arc]} + potential[tail(arc)] - potential[head(arc)];
        TOPOPLACE_ASSERT(left_[arc] == 0 || reduced_cost >= 0);
    }
}

std::vector<std::int64_t> Residual::flow() const {
    std::vector<std::int64_t> flow;
    for (std::size_t arc = 1; arc < num_arcs(); arc += 2) flow.push_back(left_[arc]);
    return flow;
}

}  // namespace topoplace::flow
