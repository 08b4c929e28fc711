// The tree of domains: how many tasks each one takes, and which ones are alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "groups/children.hpp"
#include "topoplace/group_packing.hpp"

namespace topoplace::groups {

class Domains {
  public:
    // A wrong parent or room.
    [[nodiscard]] static Fault check(std::span<const std::int32_t> parent,
                                     std::span<const std::int32_t> room);
    Domains(std::span<const std::int32_t> parent, std::span<const std::int32_t> room);

    std::int32_t size() const { return static_cast<std::int32_t>(depth_.size()); }
    std::int32_t depth(std::int32_t domain) const { return depth_[index(domain)]; }
    std::int32_t parent(std::int32_t domain) const { return parent_[index(domain)]; }
    std::int32_t leaf_depth() const { return leaf_depth_; }
    // The domain of this depth around a domain; itself if it is not deeper.
    std::int32_t at_depth(std::int32_t domain, std::int32_t depth) const {
        while (this->depth(domain) > depth) domain = parent(domain);
        return domain;
    }
    bool is_inside(std::int32_t domain, std::int32_t around) const {
        return at_depth(domain, depth(around)) == around;
    }
    bool is_leaf(std::int32_t domain) const { return depth(domain) == leaf_depth_; }
    // The most tasks that fit in the domain.
    std::int32_t capacity(std::int32_t domain) const { return capacity_[index(domain)]; }
    // Equal for domains between which no search can tell a difference.
    std::int32_t kind(std::int32_t domain) const { return kind_[index(domain)]; }
    // By ascending capacity, alike ones together.
    std::span<const std::int32_t> children(std::int32_t domain) const { return children_.of(domain); }

  private:
    void read();
    void add_up(std::span<const std::int32_t> room);
    void sort_kinds();

    std::vector<std::int32_t> parent_;
    std::vector<std::int32_t> depth_;
    std::vector<std::int32_t> capacity_;
    std::vector<std::int32_t> kind_;
    Children children_;
    std::int32_t leaf_depth_ = 0;
};

}  // namespace topoplace::groups
