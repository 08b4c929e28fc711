// The fewest moves if groups whose domain is not decided may be in several: a minimum-cost flow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "groups/homes.hpp"
#include "topoplace/flow.hpp"
#include "topoplace/group_repacking.hpp"

namespace topoplace::groups {

// Tasks on leaves, and their cost: that of the moves, and one for each task on a leaf that the job did not
// use.
struct Relaxed {
    std::int64_t cost = 0;
    std::vector<Share> shares{};
};

class MovesFlow {
  public:
    // kept: where tasks are, by group.
    MovesFlow(const PackParams& params, std::span<const Share> kept, const Domains& domains,
              const Homes& homes);

    // Nothing if no flow keeps to the decisions, or the search was stopped.
    std::optional<Relaxed> solve(WorkMeter& meter);
    // The cost of a packing of all tasks.
    std::int64_t cost_of(std::span<const Share> shares) const;
    bool was_stopped() const { return was_stopped_; }
    std::int64_t moves(std::int64_t cost) const { return cost / move_cost_; }

  private:
    struct Arcs;
    // Tasks of one group on their way down the tree.
    struct Portion {
        std::int32_t group = 0;
        std::int64_t tasks = 0;
    };
    using Portions = std::vector<std::vector<Portion>>;  // of each domain

    std::int32_t up(std::int32_t domain) const { return domain; }
    std::int32_t above(std::int32_t domain) const {
        const std::int32_t parent = domains_.parent(domain);
        return parent == kAbsent ? sink() : up(parent);
    }
    std::int32_t down(std::int32_t domain) const { return domains_.size() + domain; }
    std::int32_t node_of(std::int32_t group) const { return 2 * domains_.size() + group; }
    std::int32_t sink() const { return 2 * domains_.size() + homes_.num_groups(); }
    Arcs arcs() const;
    flow::FlowResult flow_through(const Arcs& arcs, const StopCondition& stop) const;
    Relaxed read(std::span<const std::int64_t> flow, WorkMeter& meter) const;
    void deal(std::int32_t domain, std::span<const std::int64_t> flow, Portions& portions,
              std::vector<std::vector<std::int32_t>>& units, WorkMeter& meter) const;
    std::int32_t unit_of(std::int32_t group) const;
    void note(std::int32_t leaf, std::int32_t group, std::vector<std::vector<std::int32_t>>& units) const;

    const PackParams& params_;
    std::span<const Share> kept_;
    const Domains& domains_;
    const Homes& homes_;
    std::vector<bool> is_used_;  // of each leaf
    std::int64_t num_tasks_;
    std::int64_t move_cost_;
    bool was_stopped_ = false;
};

}  // namespace topoplace::groups
