// The tree and the items as the search uses them: ancestors by depth, neighbours by item.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "topoplace/stop_condition.hpp"
#include "topoplace/tree_mapping.hpp"

namespace topoplace::tree_mapping {

using Index = std::int32_t;

inline std::size_t at(Index index) { return static_cast<std::size_t>(index); }

struct Neighbour {
    Index item;
    Index phase;
    double half;  // GB in one direction
};

struct Problem {
    // The arguments that the spans of the parameters refer to have to outlive it.
    explicit Problem(const TreeMapParams& params);
    [[nodiscard]] static Fault check(const TreeMapParams& params);

    // Fills `neighbours`; false if the search has to stop before. They are the dearest to read of all.
    bool list_neighbours(WorkMeter& meter);

    Index depth = 0;  // of leaves
    Index leaves = 0;
    Index items = 0;
    Index phases = 0;
    Index classes = 0;
    bool has_enough_room = false;  // otherwise, what follows of the items is left out
    std::vector<Index> parent{};
    std::vector<std::vector<Index>> children{};
    std::vector<std::vector<Index>> above{};  // [depth][leaf] its domain there
    std::vector<Index> room{};                // of each leaf
    std::vector<Index> leaf_of_domain{};      // -1 where the domain is none
    std::vector<Index> port_of{};             // of each domain: its uplink's number from 0, or -1
    std::vector<double> per_gb{};             // seconds of one GB through each of these uplinks
    std::vector<Index> own_class{};           // of each depth
    std::vector<double> own_per_gb{};         // [class * leaves + leaf]
    std::vector<std::int64_t> phase_ends{};   // of the phases with edges
    std::span<const Index> from{}, to{};
    std::span<const double> gigabytes{};
    std::vector<Index> first{};                 // of each item in `neighbours`
    std::unique_ptr<Neighbour[]> neighbours{};  // none until they are listed
    std::vector<Index> confined{};              // depth of the domain that each item may not leave
    std::vector<Index> start{};
    std::vector<double> others{};  // [phase * ports() + port] seconds of others on each uplink; empty: none
    std::vector<double> busy{};    // of each domain: those of its uplink, over all phases

    double half(std::size_t edge) const { return gigabytes[edge] / 2; }  // GB in one direction
    Index ports() const { return static_cast<Index>(per_gb.size()); }
    double own(Index port_class, Index leaf) const { return own_per_gb[at(port_class * leaves + leaf)]; }
    std::span<const Neighbour> around(Index item) const {
        return {&neighbours[at(first[at(item)])], at(first[at(item) + 1] - first[at(item)])};
    }
    // The depth of the lowest domain that has both leaves.
    Index meeting(Index one, Index other) const {
        Index found = depth;
        while (above[at(found)][at(one)] != above[at(found)][at(other)]) --found;
        return found;
    }
    bool may_go(Index item, Index from_leaf, Index to_leaf) const {
        const auto& domains = above[at(confined[at(item)])];
        return domains[at(from_leaf)] == domains[at(to_leaf)];
    }

  private:
    Problem() = default;
    // What is read is checked on the way.
    [[nodiscard]] Fault read(const TreeMapParams& params);
    [[nodiscard]] Fault read_tree(const TreeParams& tree);
    [[nodiscard]] Fault read_depths();
    [[nodiscard]] Fault read_speeds(const TreeParams& tree);
    [[nodiscard]] Fault read_items(const ItemParams& given);
    [[nodiscard]] Fault read_start(const ItemParams& given);
    [[nodiscard]] Fault read_others(const ItemParams& given);
    [[nodiscard]] Fault check_room_of_start() const;
    [[nodiscard]] Fault check_ends() const;
};

}  // namespace topoplace::tree_mapping
