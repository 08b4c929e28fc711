// How full the domains of a cluster are, level by level, and the machine to take so that domains stay whole.
//
// Not synchronised: one thread at a time, the same as changes the state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/machine_conditions.hpp"

namespace topoplace {

class DomainFill {
  public:
    // `domain_of[level][machine]`: the levels of the cluster as a tree, the outermost first; each domain is
    // in one of the level before.
    [[nodiscard]] static Fault check(std::int32_t num_machines,
                                     const std::vector<std::vector<std::int32_t>>& domain_of);
    // The conditions must outlive this object.
    DomainFill(MachineConditions& conditions, const std::vector<std::vector<std::int32_t>>& domain_of);

    std::int32_t num_levels() const { return levels_; }

    // Looks at the changes of the state since the last call; call it before each query, after the
    // conditions'.
    void refresh();

    // Of the machines in `candidates`, conditions with a rank each, that have at least these amounts free:
    // one in the domain of the outermost level with the fewest free GPUs that has such a machine, inside it
    // in that of the next level, and so on; then that of the lowest rank, then the lowest. kAbsent where
    // there is none.
    std::int32_t fullest(std::span<const std::int32_t> candidates, std::span<const std::int32_t> ranks,
                         const HostAmounts& needs);

    // The free GPUs of each domain of a level, by its number.
    std::vector<std::int64_t> free_of_level(std::int32_t level) const;

  private:
    struct Node {
        std::int64_t free = 0;
        std::vector<std::int32_t> children;  // nodes, or machines where it is of the innermost level
    };

    std::int64_t free_gpus(std::int32_t machine) const;
    void add(std::int32_t machine, std::int64_t free);
    void count_all();
    bool comes_before(std::int32_t one, std::int32_t other) const;
    bool is_candidate(std::int32_t machine, const HostAmounts& needs) const;
    std::int32_t among(std::span<const std::int32_t> candidates, const HostAmounts& needs) const;
    std::int32_t inside(std::int32_t node, std::int32_t level, const HostAmounts& needs) const;
    std::int32_t best_machine(const Node& node, const HostAmounts& needs) const;

    MachineConditions* conditions_;
    std::int32_t levels_;
    std::vector<Node> nodes_;                         // the root first
    std::vector<std::vector<std::int32_t>> node_of_;  // [level][machine]
    std::vector<std::vector<std::int32_t>> numbers_;  // [level] the nodes of its domains, by their numbers
    std::vector<std::int64_t> free_;                  // of each machine
    std::vector<std::int32_t> rank_;                  // of each condition; -1 for no candidate
    std::uint64_t seen_ = 0;
};

}  // namespace topoplace
