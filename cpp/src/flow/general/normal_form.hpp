// A network as a problem for the general algorithms, and the way back.
//
// Lower bounds are sent first, loops of negative cost filled, and one more node fills up demands in excess of
// the supplies. Capacities larger than any flow are lowered: an optimal flow is made of paths from supplies
// to demands and of cycles of negative cost, and where no such cycle is all infinite, each holds an arc whose
// capacity bounds it. A capacity above what all these may carry together is lowered to one unit more, which
// no potential can distinguish from the original, since there is an optimal flow that does not fill it.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/general/problem.hpp"

namespace topoplace::flow {

// What min_cost_flow refuses of networks, but for what their normal form shows.
[[nodiscard]] Fault check(const Network& network, const FlowParams& params);

// Made of a network that `check` has passed. Arcs and nodes keep their numbers; where demands exceed
// supplies, one more node fills them up, over arcs that follow the network's.
class NormalForm {
  public:
    NormalForm(const Network& network, const FlowParams& params);

    const Problem& problem() const { return problem_; }
    // True if more is supplied than all demands take.
    bool oversupplied() const { return oversupplied_; }
    // Capacities that flow may fill are too large together.
    const Fault& fault() const { return fault_; }
    // The solution of the problem as one of the network.
    FlowResult restore(Solution&& solution) const;

  private:
    void send_lower_bounds();
    void fill_loops();
    void fill_demands();
    void limit_capacities();
    void start_from(const FlowParams& params);

    const Network& network_;
    Problem problem_;
    std::vector<std::int64_t> sent_;  // by arc: its flow where the problem's is 0; empty: 0
    bool oversupplied_ = false;
    Fault fault_;
};

}  // namespace topoplace::flow
