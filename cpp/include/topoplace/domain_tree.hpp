// The domains of the machines that are offered to a job as a tree, into which groups of tasks are packed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"

namespace topoplace::decide {

// The domain of each machine of a cluster.
struct TreeLevel {
    std::span<const std::int64_t> codes{};    // in the tree
    std::span<const std::int64_t> domains{};  // levels above may cut one into several codes
};

struct DomainTreeParams {
    std::vector<TreeLevel> levels{};               // the outermost first, machines last
    std::span<const std::int32_t> machines{};      // different ones
    std::span<const std::int32_t> sizes{};         // the most tasks of each of these
    std::span<const std::int32_t> socket_ends{};   // of each of these, and those before it; empty: no sockets
    std::span<const std::int32_t> socket_sizes{};  // the most tasks of each socket
};

// Domain 0 is the whole, at depth 0; the domains of level i have depth i + 1, and sockets come below
// machines. Leaves are the domains of the last depth.
class DomainTree {
  public:
    // The first parameter that is out of range.
    [[nodiscard]] static Fault check(const DomainTreeParams& params);
    // Copies parameters that pass `check`.
    explicit DomainTree(const DomainTreeParams& params);

    std::span<const std::int32_t> parent() const { return parent_; }
    std::span<const std::int32_t> room() const { return room_; }  // an inner one is limited by its children
    std::size_t num_depths() const { return firsts_.size() - 1; }
    std::size_t first_of(std::size_t depth) const { return firsts_[depth]; }
    std::size_t first_leaf() const { return firsts_[firsts_.size() - 2]; }
    std::size_t num_leaves() const { return parent_.size() - first_leaf(); }

    // The offers in the order of their machines in the tree.
    const std::vector<std::int32_t>& order() const { return order_; }
    // The place in this order of each leaf's machine.
    const std::vector<std::int32_t>& machine_of() const { return machine_of_; }
    // Of each leaf, the number from 0 of the domain at a level, without cuts. The last level may be sockets.
    std::vector<std::int32_t> domains_of(std::size_t level) const;
    // Of each leaf, the domain in the tree at the depth of a level.
    std::vector<std::int32_t> part_of(std::size_t level) const;

  private:
    void add(const TreeLevel& level, std::span<const std::int32_t> machines);
    void add_sockets(const DomainTreeParams& params);

    std::vector<std::int32_t> order_, machine_of_;
    std::vector<std::int32_t> parent_{-1}, room_;
    std::vector<std::size_t> firsts_{0, 1};           // of each depth, and the number of domains
    std::vector<std::int32_t> above_;                 // the innermost domain so far of each machine
    std::vector<std::vector<std::int64_t>> domains_;  // of each level: that of each machine, without cuts
};

}  // namespace topoplace::decide
