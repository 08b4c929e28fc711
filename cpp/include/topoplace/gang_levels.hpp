// The levels of domains around the machines of a topology, as a tree, and the uplinks of these domains.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/gang_machines.hpp"
#include "topoplace/port_network.hpp"

namespace topoplace::decide {

// Arrays of m have an entry for each machine.
struct GangLevelParams {
    std::span<const std::int64_t> codes{};    // (m) its domain in the tree
    std::span<const std::int64_t> domains{};  // (m) its domain, which levels above may cut into several codes
    std::span<const double> uplink{};         // (m) GB/s of the uplinks of its domain; empty without uplinks
    std::span<const std::int64_t> uplinks{};  // (k, 2) a machine and one of these ports; ascending
    bool is_switched = false;                 // NVLinks join the machines of a domain
};

struct GangLevel {
    std::vector<std::int64_t> codes{}, domains{};
    std::vector<double> uplink{};
    std::vector<std::int64_t> uplinks{};
    bool is_switched = false;
};

// The first argument that is out of range; machines: how many the topology has.
Fault check(const GangLevelParams& level, std::int32_t machines, const ports::PortNetwork& network);

class GangLevels {
  public:
    // levels: the outermost first, machines last, each of which passes `check`. meet_anywhere: tasks may meet
    // in an NVLink domain that is none of these.
    GangLevels(std::span<const GangLevelParams> levels, bool meet_anywhere);

    // Levels around machines, then machines themselves.
    std::size_t size() const { return levels_.size(); }
    const GangLevel& operator[](std::size_t i) const { return levels_[i]; }
    std::int64_t num_ports() const { return num_ports_; }  // up to the last uplink
    // Without machines.
    LevelCodes codes() const;
    // Of each depth of the tree but that of machines: 1 where tasks that meet there use NVLinks, else 0.
    const std::vector<std::int32_t>& own_class() const { return own_class_; }
    // The same for bounds: 1 wherever tasks may use NVLinks.
    const std::vector<std::int32_t>& bound_class() const { return bound_class_; }

    // GB of others on the uplinks of a machine's domain, in the busier direction; each flow counts up to
    // `most` GB.
    double others_on_uplinks(std::size_t level, std::int32_t machine, const ports::FlowCounts& others,
                             double most) const;
    // The numbers of those of these machines of whose domains, of this level and inside it, others use no
    // uplink.
    std::vector<std::size_t> beside_no_others(std::size_t level, std::span<const std::int32_t> machines,
                                              const ports::FlowCounts& others, double most) const;

  private:
    std::vector<GangLevel> levels_;
    std::vector<std::int32_t> own_class_, bound_class_;
    std::int64_t num_ports_ = 0;
};

}  // namespace topoplace::decide
