// The decision about a gang: its GPUs by the fastest of several searches (gang_search.hpp).
//
// Whole units are searched for first. Where that is not proven to be the fastest, more are compared: the
// fastest division by what each machine can have; other units; and, where GPUs are not all alike, one socket
// of each machine. Each counts only if it is faster by more than the slack. Then a gang that is in more
// domains with narrow uplinks than it needs goes into fewer, if its step hardly takes longer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/gang_search.hpp"
#include "topoplace/gang_units.hpp"

namespace topoplace::decide {

// A gang that starts from machines is decided in several calls: domains, and the machines in them, are not
// chosen here. So are jobs of roles, which also start from machines that have whole roles.
struct GangDecisionParams {
    // Without units, these are chosen; the share of the work, `may_leave` and `machine_groups` do not count.
    GangSearchParams search{};
    TaskGroups groups{};
    std::int32_t max_machines = 0;  // 0: any number
    bool is_bound = false;          // groups, balance or a number of machines bind where tasks are
    bool is_last = true;            // false: another call follows

    // What an earlier call found. Then the last call goes on from there, and others search from the machines
    // of `start`, which tasks may leave.
    const GangFound* known = nullptr;

    double compact = 0.0;  // share by which a step may take longer in fewer narrow domains; 0: none may
    std::vector<Together> preferred{};      // tasks that should be in one domain
    double tflop = 0.0;                     // of a step of a task; 0: unknown
    std::span<const double> tflop_per_s{};  // of each GPU; empty without `tflop`
    const GangFound* instead = nullptr;     // what was found on all offers: these are the fewest domains
};

struct GangDecision {
    GangFound best{};
    bool is_open = false;              // not proven, and time is left
    std::vector<std::size_t> fewer{};  // offers among which a further call may find a gang `instead`
};

[[nodiscard]] Fault check(const GangDecisionParams& params);

// A decision that is stopped has a mapping, if there is room. The parameters pass `check`.
GangDecision place_gang(const GangDecisionParams& params);

}  // namespace topoplace::decide
