// Lower bounds on the communication time of a gang, over all placements on the machines with room for it.
//
// A ring among several domains runs in channels, one over each adapter, and no faster than the rings inside a
// domain with two of its tasks. Rings of one unit share the adapters of its domain. All rings that pass a
// machine share the adapters of its GPUs. What two tasks exchange otherwise passes the ports of both; where
// tasks get different amounts, `gigabytes` is the least of all pairs. Domains and their room are those of
// `GangRoom`. Each bound is rounded down by a part in 1e9.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/gang_exchanges.hpp"
#include "topoplace/gang_machines.hpp"
#include "topoplace/gang_room.hpp"
#include "topoplace/machine_sets.hpp"
#include "topoplace/made_once.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::decide {

struct GangLimitsParams {
    struct Entry {
        double of_gpu = 0.0, of_machine = 0.0;  // the largest GB/s of one GPU, and of all of a machine
    };
    std::array<Entry, 2> entries{};  // adapters, NVLinks
    double most_of_a_gpu = 0.0;      // GB/s of all ports of one GPU together
    bool has_relays = false;         // a GPU may send by the adapter of another one
    bool join_machines = false;      // GPUs of different machines have direct links
    // Of all GPUs: the largest GB/s of rings through switches, and whether each has such rings, as those in
    // domains of several machines do; the largest at which switches reduce, and the most bus GB/s of that.
    double most_switched = 0.0;
    bool are_switched = false;
    double most_reducing = 0.0, most_reduced = 0.0;
    const GangMachines* gpus = nullptr;
    std::vector<const Machine*> machines{};    // different ones
    std::span<const std::int32_t> class_of{};  // of each machine of the topology: one of these
};

[[nodiscard]] Fault check(const GangLimitsParams& params);

// What limits gangs on a topology, with the rings that the library plans. Any thread may ask.
class GangLimits {
  public:
    // The parameters pass `check`; the machines have to outlive it.
    explicit GangLimits(const GangLimitsParams& params);

    // GB/s of a unit of tasks, at most. port_class: 1 for NVLinks; who meets by these may use adapters.
    double of_unit(std::int32_t port_class, std::int64_t unit) const;
    // GB/s of the rings of `size` GPUs of a machine, at most; infinity where unknown.
    double fastest_rings(std::int64_t size, WorkMeter& meter) const;
    const Machine& machine(std::int32_t number) const {
        return *machines[static_cast<std::size_t>(class_of[static_cast<std::size_t>(number)])];
    }
    bool are_alike() const;  // on each machine, any GPUs take the same time

    const std::array<GangLimitsParams::Entry, 2> entries;
    const double most_of_a_gpu;
    const bool has_relays, join_machines;
    const double most_switched;
    const bool are_switched;
    const double most_reducing, most_reduced;
    const GangMachines& gpus;
    const std::vector<const Machine*> machines;
    const std::vector<std::int32_t> class_of;
    const bool has_adapters, all_have_adapters;  // some GPU, each GPU

  private:
    mutable std::vector<MadeOnce<double>> fastest_;  // by size
};

[[nodiscard]] Fault check(const GangRoom& room, std::span<const std::int32_t> own_class);

struct Least {
    double of_all = 0.0;    // seconds of any placement
    double of_whole = 0.0;  // of those that divide no unit
};

// If all units are whole, each phase takes as long as its rings need on the best machine, or as its ports
// need. If a unit is divided, its phase crosses machines, as do phases with more tasks than a machine has.
//
// own_class: of each depth of the room but the last, 1 if tasks that meet there use NVLinks, else 0.
// machine_groups: some group of tasks has to be within one machine. 0 where there is no room.
Least least_seconds(const GangLimits& limits, const GangRoom& room, std::span<const std::int32_t> own_class,
                    const traffic::JobCollectives& job, const Units& units, bool machine_groups,
                    WorkMeter& meter);

struct Batch;
struct BoundedGang;

// Lower bounds on the seconds of placements that divide no unit, by what one machine of the job has of it.
class MachineLimits {
  public:
    // The arguments are as for `least_seconds`; the limits have to outlive it.
    MachineLimits(const GangLimits& limits, const GangRoom& room, std::span<const std::int32_t> own_class,
                  const traffic::JobCollectives& job, const Units& units, bool machine_groups,
                  WorkMeter& meter);

    // The units are groups that one machine has to have.
    bool are_groups() const { return are_groups_; }
    // Units are tasks, and each collective is a ring of all, which leaves machines in channels.
    bool are_rings() const { return are_rings_; }
    const GangLimits& of_topology() const { return limits_; }

    // If a machine has `count` units, which are whole chains or exchange with other machines, and other
    // machines have the rest; 0 for none.
    double of_count(std::int64_t count) const;

    // If a machine has tasks on each set of its GPUs, as bit masks from 0, and others have more. Empty if
    // there are too many sets, or if all are alike, or not `are_rings`.
    std::vector<double> of_sets(std::int32_t machine, WorkMeter& meter) const;

  private:
    // What the collectives of a batch need where they leave such a machine.
    struct Leaving {
        double least = 0.0;  // GB
        bool is_ring = false;
        bool are_chains = false;        // not in rings: each joins the units of a chain
        bool have_one_of_each = false;  // rings: of each chain, one unit at most
        std::int64_t size = 0;          // tasks of a ring; 0 where nothing is known to leave
        std::int64_t together = 0;      // tasks of a ring in one unit, at most
        std::int64_t rings = 0;         // that pass a unit, at least
    };
    // The units of each chain in which they exchange, other than in rings, chain after chain.
    struct Chains {
        std::size_t size = 0;  // units of each; 0: there are none
        std::vector<std::int32_t> units{};
    };

    void find_chains(const BoundedGang& gang);
    Leaving leaving(const BoundedGang& gang, const Batch& batch) const;
    double with_few(std::int64_t count, bool is_whole) const;
    double few(const Leaving& one, std::int64_t count, bool is_whole) const;
    static double summed(const std::vector<double>& phases);

    const GangLimits& limits_;
    std::int64_t num_tasks_, unit_size_;
    bool are_groups_ = false, have_channels_ = false, are_rings_ = false;
    std::vector<double> least_{};    // of each phase
    std::vector<double> carried_{};  // of each phase: the most GB of a collective
    std::vector<std::vector<Leaving>> leaving_{};
    Chains chains_{};
};

// Of a job that fits a machine on which all GPUs are alike: either it is on one machine, or two tasks that
// communicate are on different machines. known: a machine on which it takes `seconds`; null for none.
double least_seconds_of_one(const GangLimits& limits, const JobParams& job, WorkMeter& meter,
                            const Machine* known = nullptr, double seconds = 0.0);

// Of a job on several machines; infinity if that is not worth a search: on a single machine, for jobs of many
// tasks, and if NVSwitches join the GPUs of each machine, as adapters are slower.
double least_if_split(const GangLimits& limits, const JobParams& job);

}  // namespace topoplace::decide
