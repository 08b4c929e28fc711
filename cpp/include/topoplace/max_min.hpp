// Max-min fair sharing: how long the phases of a job take while other jobs send through the same ports.
//
// All jobs begin at one moment, and each runs its phases one after the other: a phase begins when all flows
// of the one before have ended. At every moment the rates of all flows are max-min fair: no flow can have
// more unless one that has no more gets less. So each flow passes a full hop on which no flow has more than
// it (Bertsekas and Gallager, Data Networks, 2nd edition, 1992, section 6.5.2).
//
// The rates change where a flow ends or a phase begins. Each time they are found by progressive filling: the
// hop with the least for each of its flows gives them that, and what they take elsewhere is gone for the
// others. With h hops of all flows and e moments, that is O(e h log h). Flows that end within 1e-9 of their
// GB end together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/port_network.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::ports {

struct SharingJob {
    std::span<const std::int64_t> phase_ends{};  // the number of flows of phases 0..k, at last of all
    Flows flows{};
    std::span<const double> at_least{};  // seconds that each phase lasts at least; or empty
};

struct MaxMinTimes {
    // Of the first job: seconds from the beginning of each phase until its last flow ends, infinity where a
    // flow has no path or a port of 0 GB/s; and the hop that held up the last flow, the lowest of several.
    std::vector<PhaseTime> phases{};
    bool complete = true;     // false: stopped before; phases that had not ended have their seconds so far
    std::uint64_t nodes = 0;  // of `WorkMeter`, one for each moment at least
};

// No job, flows that are none, or `at_least` of another length, negative or not finite.
[[nodiscard]] Fault check(const PortNetwork& network, std::span<const SharingJob> jobs);

// Jobs that share no port with the first one, nor with one that does, and so on, are left out.
MaxMinTimes max_min_times(const PortNetwork& network, std::span<const SharingJob> jobs,
                          const StopCondition& stop = {});

}  // namespace topoplace::ports
