#include "flow/general/residual.hpp"

#include <algorithm>

namespace topoplace::flow {

Residual::Residual(const Problem& problem)
    : first_(static_cast<std::size_t>(problem.num_nodes) + 1),
      excess_(problem.supply.begin(), problem.supply.end()) {
    for (std::size_t arc = 0; arc < problem.tail.size(); ++arc) {
        head_.push_back(static_cast<std::size_t>(problem.head[arc]));
        head_.push_back(static_cast<std::size_t>(problem.tail[arc]));
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
    Total units = std::min(excess_[begin], -excess_[end]);
    for (std::size_t node = end; node != begin; node = tail(arc_into[node])) {
        units = std::min<Total>(units, left_[arc_into[node]]);
    }
    for (std::size_t node = end; node != begin; node = tail(arc_into[node])) {
        push(arc_into[node], static_cast<std::int64_t>(units));
    }
}

std::vector<std::int64_t> Residual::flow() const {
    std::vector<std::int64_t> flow;
    for (std::size_t arc = 1; arc < num_arcs(); arc += 2) flow.push_back(left_[arc]);
    return flow;
}

}  // namespace topoplace::flow
