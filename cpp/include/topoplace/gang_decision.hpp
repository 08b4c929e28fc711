// The decision about a gang: its GPUs by the fastest of several searches (gang_search.hpp).
//
// A gang that groups bind starts from a division among machines (task_division.hpp). Jobs of roles also start
// from machines that have whole roles.
//
// Blocks of two dimensions of rings are searched for first, then whole units. Where that is not proven to be
// the fastest, more are compared: the fastest division by what each machine can have; other units; and, where
// GPUs are not all alike, one socket of each machine. Each counts only if it is faster by more than the
// slack. Then a gang that is in more domains with narrow uplinks than it needs goes into fewer, if its step
// hardly takes longer. A gang on more machines than it may be on gets those with the most room of an
// innermost domain.
#pragma once

#include <cstdint>
#include <span>

#include "topoplace/gang_groups.hpp"
#include "topoplace/gang_search.hpp"
#include "topoplace/gang_units.hpp"

namespace topoplace::decide {

struct GangDecisionParams {
    // Without units and machines to start from: these are chosen.
    GangSearchParams search{};
    TaskGroups groups{};
    GangGroups bound{};
    bool may_divide = true;         // false: groups that are on one machine are units, others do not count
    std::int32_t max_machines = 0;  // 0: any number
    // A division that groups need is searched for until then, whatever the time of the search.
    StopCondition until_found{};

    double compact = 0.0;  // share by which a step may take longer in fewer narrow domains; 0: none may
    double tflop = 0.0;    // of a step of a task; 0: unknown
    std::span<const double> tflop_per_s{};  // of each GPU; empty without `tflop`
};

[[nodiscard]] Fault check(const GangDecisionParams& params);

// A decision that is stopped has a mapping, if there is room. The parameters pass `check`.
GangFound place_gang(const GangDecisionParams& params);

// Whether `place_gang` is certain to find a mapping on these offers.
bool can_place_gang(const GangDecisionParams& params);

}  // namespace topoplace::decide
