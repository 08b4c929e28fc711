// The domains that a search for a repacking has decided for groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "groups/domains.hpp"
#include "groups/group_kinds.hpp"

namespace topoplace::groups {

class Homes {
  public:
    // Only the job's domain is decided, the root.
    Homes(const PackParams& params, const Domains& domains, const GroupKinds& kinds)
        : params_(params),
          domains_(domains),
          kinds_(kinds),
          home_(params.group_parent.size(), kAbsent),
          decided_in_(params.parent.size(), 0) {
        home_[0] = 0;
    }

    std::int32_t num_groups() const { return static_cast<std::int32_t>(home_.size()); }
    std::int32_t depth(std::int32_t group) const { return params_.group_depth[index(group)]; }
    std::int32_t around(std::int32_t group) const { return params_.group_parent[index(group)]; }
    std::int64_t tasks_of(std::int32_t group) const { return kinds_[kinds_.of(group)].size; }
    bool is_decided(std::int32_t group) const { return home_[index(group)] != kAbsent; }
    // The decided domain of a group, or of the innermost group around it that has one.
    std::int32_t home(std::int32_t group) const {
        while (!is_decided(group)) group = around(group);
        return home_[index(group)];
    }
    // The group, or the outermost one around it below those that are decided; kAbsent if it is decided.
    std::int32_t undecided(std::int32_t group) const {
        std::int32_t found = kAbsent;
        for (; !is_decided(group); group = around(group)) found = group;
        return found;
    }
    // How many groups are decided in a domain and those inside it.
    std::int32_t decided_in(std::int32_t domain) const { return decided_in_[index(domain)]; }

    void decide(std::int32_t group, std::int32_t domain) {
        home_[index(group)] = domain;
        count(domain, 1);
    }
    void undo(std::int32_t group) {
        count(home_[index(group)], -1);
        home_[index(group)] = kAbsent;
    }

    // True for the group `outer` and those inside it.
    bool is_part(std::int32_t group, std::int32_t outer) const {
        while (group > outer) group = around(group);
        return group == outer;
    }
    // False if the decisions, or too little room for a whole group, forbid a group's tasks on a leaf.
    bool may_have(std::int32_t leaf, std::int32_t group) const {
        for (; group != kAbsent; group = around(group)) {
            const std::int32_t here = domains_.at_depth(leaf, depth(group));
            if (is_decided(group) ? home_[index(group)] != here : domains_.capacity(here) < tasks_of(group))
                return false;
        }
        return true;
    }
    // True if the whole group may be in a domain of its depth.
    bool may_decide(std::int32_t group, std::int32_t domain) const {
        if (domains_.capacity(domain) < tasks_of(group) || !domains_.is_inside(domain, home(group)))
            return false;
        for (std::int32_t inner = group + 1; inner < num_groups(); ++inner) {
            if (is_decided(inner) && is_part(inner, group) && !domains_.is_inside(home(inner), domain))
                return false;
        }
        return true;
    }

  private:
    void count(std::int32_t domain, std::int32_t sign) {
        for (; domain != kAbsent; domain = domains_.parent(domain)) decided_in_[index(domain)] += sign;
    }

    const PackParams& params_;
    const Domains& domains_;
    const GroupKinds& kinds_;
    std::vector<std::int32_t> home_;
    std::vector<std::int32_t> decided_in_;
};

}  // namespace topoplace::groups
