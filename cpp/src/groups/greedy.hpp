// A quick packing: the largest groups first, each into the domain with the least room that it fits in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "groups/domains.hpp"
#include "groups/group_kinds.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::groups {

class Greedy {
  public:
    // `order`: the kinds, the largest groups first.
    Greedy(const Domains& domains, const GroupKinds& kinds, std::span<const std::size_t> order,
           WorkMeter& meter);

    // The groups that each of these children of a domain gets, as far as it gets some; none where not all
    // fit. The groups' depths are greater than the domain's.
    std::optional<std::vector<std::pair<std::int32_t, Counts>>> divide(std::span<const std::int32_t> children,
                                                                       const Counts& groups);

  private:
    struct Place {
        std::int32_t domain = kAbsent;
        std::int32_t room = 0;
    };

    bool put(std::span<const std::int32_t> among, std::int32_t kind);
    void look_for(Place& best, std::int32_t domain, const GroupKind& group);
    bool open(std::int32_t domain, const GroupKind& group);
    void take(std::int32_t top, std::int32_t domain, std::int32_t tasks);
    void undo(std::size_t changes);

    const Domains& domains_;
    const GroupKinds& kinds_;
    std::span<const std::size_t> order_;
    WorkMeter& meter_;
    std::vector<std::int32_t> room_;
    std::vector<std::pair<std::int32_t, std::int32_t>> taken_;  // (domain, tasks), to undo
};

}  // namespace topoplace::groups
