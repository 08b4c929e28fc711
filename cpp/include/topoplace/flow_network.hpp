// A network that is kept and changed between solutions: each `solve` starts from the flow and prices of the
// last one.
//
// Nodes and arcs keep their numbers until they are removed; the numbers are then used again. `network()` is
// the network by these numbers, for `verify_flow` and the other solvers: a removed node has no supply, a
// removed arc no capacity.
//
// A scheduling graph (cpp/src/flow/scheduling/infrastructure.hpp) stays an assignment: tasks that come, go or
// change their costs, jobs' unscheduled nodes that come and go, changed capacities and costs of places each
// cost a search that is as long as the way the change travels. Any other change, such as a new machine behind
// a rack, is solved from scratch. A network of any other kind is solved by cost scaling from the last flow
// and prices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "topoplace/flow.hpp"

namespace topoplace::flow {

class FlowNetwork {
  public:
    FlowNetwork();
    ~FlowNetwork();
    FlowNetwork(FlowNetwork&&) noexcept;
    FlowNetwork& operator=(FlowNetwork&&) noexcept;

    // All of these name the parameter, the index and the value that is out of range, and have then changed
    // nothing. `added`: the numbers of what is new.
    [[nodiscard]] Fault add_nodes(std::span<const std::int64_t> supply, std::vector<std::int32_t>& added);
    [[nodiscard]] Fault add_arcs(std::span<const std::int32_t> tail, std::span<const std::int32_t> head,
                                 std::span<const std::int64_t> capacity, std::span<const std::int64_t> cost,
                                 std::vector<std::int32_t>& added);
    [[nodiscard]] Fault remove_nodes(std::span<const std::int32_t> nodes);  // and all their arcs
    [[nodiscard]] Fault remove_arcs(std::span<const std::int32_t> arcs);
    [[nodiscard]] Fault set_supply(std::span<const std::int32_t> nodes, std::span<const std::int64_t> supply);
    [[nodiscard]] Fault set_capacity(std::span<const std::int32_t> arcs,
                                     std::span<const std::int64_t> capacity);
    [[nodiscard]] Fault set_cost(std::span<const std::int32_t> arcs, std::span<const std::int64_t> cost);

    Network network() const;
    std::int32_t num_nodes() const;  // that there are now
    std::int32_t num_arcs() const;
    std::uint64_t version() const;  // counts the changes

    // Of the parameters, `start_flow` and `start_potential` are not used: the network remembers. After a
    // timeout, the next call goes on where this one stopped.
    FlowResult solve(const FlowParams& params);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace topoplace::flow
