// The machines of a region as a tree of domains with the speeds of their ports.
#pragma once

#include "decide/gang_regions.hpp"
#include "topoplace/gang_tree.hpp"

namespace topoplace::decide {

class RegionTree {
  public:
    // The parameters have to outlive it.
    RegionTree(const GangSearchParams& params, const Region& region);

    // Of each leaf: the most items.
    const std::vector<std::int32_t>& room() const { return room_; }
    std::int64_t total_room() const;
    bool have_equal_room() const;

    // Of each level around machines, the first leaf of each domain.
    std::vector<std::vector<std::int32_t>> first_leaves() const;

    // The leaf of each item from which to search; empty where some item is on several machines, or on one
    // that is not offered or has too little room.
    std::vector<std::int32_t> start() const;
    // The depth of the domain that each item may not leave, so that tasks stay together.
    std::vector<std::int32_t> confined(std::span<const std::int32_t> start) const;
    // (phases, domains) GB of others on the uplinks of each domain; empty without others.
    std::vector<double> others() const;

    // For mappings of items; room: of each leaf.
    tree_mapping::TreeParams params(std::span<const std::int32_t> room) const {
        return {tree_.parent, room, uplink_, params_.levels->own_class(), own_};
    }
    std::span<const std::int64_t> place_ends() const { return tree_.place_ends; }
    std::span<const std::int32_t> places() const { return tree_.places; }

  private:
    template <class Take>
    void each_domain(const Take& take) const;
    void add_own(std::span<const double> speeds);

    const GangSearchParams& params_;
    GangTree tree_;
    std::vector<std::int32_t> machines_{}, room_{};  // of each leaf
    std::vector<double> uplink_{};                   // GB/s of each domain
    std::vector<double> own_{};                      // (classes, leaves) GB/s of an item
};

}  // namespace topoplace::decide
