// The time of any placement of a gang: with whole units, or with one that is divided.
#include "topoplace/gang_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decide/bounded_gang.hpp"
#include "decide/set_times.hpp"
#include "graph/index.hpp"
#include "topoplace/exact_sum.hpp"

namespace topoplace::decide {
namespace {

// Infinite where there is no room.
double rounded(double seconds) { return std::isfinite(seconds) ? seconds * kRoundedDown : 0.0; }

// The least seconds of collectives other than rings that are not all inside domains, which have too little
// room.
double least_of_crossing_pairs(const BoundedGang& gang, const Phase& phase) {
    double least = 0.0;
    for (const Batch& batch : phase) {
        if (batch.is_ring()) continue;
        const bool are_many = are_apart(batch, gang.unit_of.size());
        const auto count = are_many ? static_cast<std::int64_t>(batch.count()) : 1;
        for (std::size_t depth = 1; depth < gang.room.tasks.size(); ++depth) {
            const auto fit = groups_that_fit(gang.room.tasks[depth], static_cast<std::int64_t>(batch.size));
            if (fit >= count) continue;
            const double crossing = fit > 0 ? batch.least() : batch.most();
            least = std::max(least, crossing / 2 / gang.fastest(depth));
            break;
        }
    }
    return least;
}

// The least seconds if a collective, whichever, is on several machines.
double least_of_one_apart(const BoundedGang& gang, const Batch& batch) {
    const double least = batch.least();
    if (!batch.is_ring()) return least / 2 / gang.fastest(gang.own_class.size());
    // Machines of an NVLink domain are no farther apart than GPUs of one.
    if (std::ranges::find(gang.own_class, 1) != gang.own_class.end()) return 0.0;
    const double channels = most_in_channels(gang, batch);
    return channels > 0.0 ? least / channels : 0.0;
}

// The least seconds if any unit is on several machines; 0 unless each unit is a collective of its own.
double least_if_divided(const BoundedGang& gang, const Phase& phase) {
    std::vector<bool> have_one(index(gang.units.count()), false);
    double least = kNever;
    for (const Batch& batch : phase) {
        if (batch.size != index(gang.units.size)) return 0.0;
        for (std::size_t i = 0; i < batch.count(); ++i) {
            const auto row = batch.row(i);
            const std::int32_t unit = gang.unit_of[index(row[0])];
            const auto is_there = [&](std::int32_t task) { return gang.unit_of[index(task)] == unit; };
            if (!std::ranges::all_of(row, is_there)) return 0.0;
            have_one[index(unit)] = true;
        }
        least = std::min(least, least_of_one_apart(gang, batch));
    }
    return std::ranges::find(have_one, false) == have_one.end() ? least : 0.0;
}

}  // namespace

Least least_seconds(const GangLimits& limits, const GangRoom& room, std::span<const std::int32_t> own_class,
                    const traffic::JobCollectives& job, const Units& units, bool machine_groups,
                    WorkMeter& meter) {
    const BoundedGang gang(limits, room, own_class, job, units);
    std::vector<double> rings;
    if (room.adapters.empty() || limits.join_machines) {
        for (const Phase& phase : gang.phases) rings.push_back(least_by_all_ports(gang, phase, meter));
        const double least = rounded(exact_sum(rings));
        return {least, least};
    }
    for (const Phase& phase : gang.phases) rings.push_back(least_of_rings(gang, phase, meter));
    const std::vector<double> of_whole = least_of_whole_units(gang, rings, meter);
    const double whole = least_of_crossing_rings(gang, of_whole);
    if (units.size == 1 || machine_groups) return {rounded(whole), rounded(whole)};
    std::vector<double> divided;
    for (std::size_t i = 0; i < rings.size(); ++i) {
        const Phase& phase = gang.phases[i];
        divided.push_back(
            std::max({rings[i], least_of_crossing_pairs(gang, phase), least_if_divided(gang, phase)}));
    }
    return {rounded(std::min(whole, least_of_crossing_rings(gang, divided))), rounded(whole)};
}

}  // namespace topoplace::decide
