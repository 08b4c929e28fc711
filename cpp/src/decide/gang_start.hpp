// The machines from which the search for a gang starts whose tasks are bound by groups.
#pragma once

#include <optional>
#include <vector>

#include "topoplace/gang_decision.hpp"

namespace topoplace::decide {

// The search from a division among machines.
struct GangStart {
    std::vector<std::int32_t> machine_of{};  // of each task
    GangUnits units{};
    std::vector<Together> together{};
    std::vector<std::size_t> whole{};

    GangSearchParams of(GangSearchParams search, bool is_balanced) const;
};

class BoundGang {
  public:
    BoundGang(const GangDecisionParams& params, const GangSearchParams& search);

    // Groups, or the fewest domains alone, decide which machines get which tasks.
    bool needs_division() const;
    // Where a division is needed, it; over domains whose uplinks no other job uses if it is no wider.
    std::optional<GangStart> start() const;
    // Among these offers, from machines that have a whole role each, as many as can be.
    std::optional<GangStart> from_roles(const GangSearchParams& among) const;
    // The machine of each task of a division, as in `start` but without regard to others.
    std::vector<std::int32_t> division() const;
    Units units() const { return units_.view(); }

  private:
    using Ints = std::vector<std::int32_t>;

    Ints divided(const GangSearchParams& search) const;
    Ints divided(const GangSearchParams& search, std::vector<Together> required,
                 std::vector<Together> preferred) const;
    bool tasks_are_alike() const;
    Ints in_rank_order(const Ints& machine_of) const;
    std::vector<std::size_t> beside_no_others() const;
    bool are_whole(const Ints& machine_of) const;  // each unit on one machine
    std::vector<std::size_t> widths(const Ints& machine_of) const;
    GangStart start_from(Ints machine_of) const;

    const GangDecisionParams& params_;
    const GangSearchParams& search_;
    const GangGroups& bound_;
    GangUnits units_;
};

}  // namespace topoplace::decide
