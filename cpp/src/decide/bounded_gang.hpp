// A gang and the machines with room for it, as its bounds ask.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "decide/batches.hpp"
#include "topoplace/gang_bounds.hpp"

namespace topoplace::decide {

inline constexpr double kRoundedDown = 1 - 1e-9;

// Whether machines exchange by adapters alone, so that rings leave them in channels. own_class: as in
// `least_seconds`.
inline bool exchange_by_adapters(const GangLimits& limits, std::span<const std::int32_t> own_class) {
    return limits.all_have_adapters && !limits.join_machines &&
           std::ranges::find(own_class, 1) == own_class.end();
}

struct BoundedGang {
    BoundedGang(const GangLimits& limits_of, const GangRoom& room_of, std::span<const std::int32_t> classes,
                const traffic::JobCollectives& collectives, const Units& of_tasks)
        : limits(limits_of),
          room(room_of),
          own_class(classes),
          job(collectives),
          units(of_tasks),
          unit_of(unit_of_tasks(of_tasks)),
          phases(phases_of(collectives)) {}

    // GB/s of a unit of tasks in exchanges that meet at this depth or further out, at most.
    double fastest(std::size_t depth, std::int64_t unit = 1) const {
        double most = 0.0;
        for (const std::int32_t one : own_class.first(depth))
            most = std::max(most, limits.of_unit(one, unit));
        return most;
    }
    std::int64_t num_tasks() const { return static_cast<std::int64_t>(units.tasks.size()); }

    const GangLimits& limits;
    const GangRoom& room;
    std::span<const std::int32_t> own_class;
    const traffic::JobCollectives& job;
    Units units;
    std::vector<std::int32_t> unit_of;
    std::vector<Phase> phases;
};

// GB/s of a ring over several domains: number of channels x slowest channel, at most.
double most_in_channels(const BoundedGang& gang, const Batch& batch);

// The least seconds of the rings of a phase, each inside one domain or over several.
double least_of_rings(const BoundedGang& gang, const Phase& phase, WorkMeter& meter);

// The least seconds of a phase where tasks on different machines have direct links, or no path.
double least_by_all_ports(const BoundedGang& gang, const Phase& phase, WorkMeter& meter);

// A lower bound on the seconds of all phases together. least: that of each phase alone. The bound is above
// their sum if the rings of two phases cannot both be inside machines.
double least_of_crossing_rings(const BoundedGang& gang, std::span<const double> least);

// The least seconds of each phase if no unit is divided; rings: those that its rings need.
std::vector<double> least_of_whole_units(const BoundedGang& gang, std::vector<double> rings,
                                         WorkMeter& meter);

}  // namespace topoplace::decide
