// How fast rings are at best: inside a domain, as the library plans them or as switches reduce; over several,
// in channels.
#include <algorithm>

#include "decide/bounded_gang.hpp"
#include "decide/set_times.hpp"

namespace topoplace::decide {
namespace {

// GB/s of `size` tasks in one domain, at most; infinity where unknown.
double most_inside(const BoundedGang& gang, const Batch& batch, std::int64_t size, WorkMeter& meter) {
    const GangLimits& limits = gang.limits;
    double found = limits.most_switched;
    if (!limits.are_switched) found = std::max(found, limits.fastest_rings(size, meter));
    if (batch.kind != traffic::Kind::kReduce || limits.most_reducing <= 0.0) return found;
    return std::max(found, traffic::reduced_bandwidth(size, limits.most_reducing, limits.most_reduced));
}

// The same of any number of tasks.
double most_inside(const BoundedGang& gang, const Batch& batch) {
    const GangLimits& limits = gang.limits;
    const double found = limits.are_switched ? limits.most_switched : kNever;
    if (batch.kind != traffic::Kind::kReduce || limits.most_reducing <= 0.0) return found;
    std::int64_t size = 2;
    for (const std::int64_t one : gang.room.ring_tasks) size = std::max(size, one);
    return std::max(found, traffic::reduced_bandwidth(size, limits.most_reducing, limits.most_reduced));
}

// Seconds of one GB of a ring over several domains, at least.
double least_apart(const BoundedGang& gang, const Batch& batch) {
    const double channels = most_in_channels(gang, batch);
    const double seconds = channels > 0.0 ? 1.0 / channels : kNever;
    if (batch.size <= gang.room.ring_tasks.size()) return seconds;
    const double inside = most_inside(gang, batch);  // then some domain has two tasks or more
    return std::max(seconds, inside > 0.0 ? 1.0 / inside : 0.0);
}

double least_of_rings(const BoundedGang& gang, const Batch& batch, WorkMeter& meter) {
    const auto size = static_cast<std::int64_t>(batch.size);
    const std::int64_t fit = groups_that_fit(gang.room.ring_tasks, size);
    const double apart = least_apart(gang, batch), largest = batch.most();
    const double inside = fit > 0 ? most_inside(gang, batch, size, meter) : 0.0;
    const double found = largest * std::min(apart, inside > 0.0 ? 1.0 / inside : kNever);
    // Those with tasks in common may be in one domain.
    const bool are_many = are_apart(batch, gang.unit_of.size());
    if (fit >= (are_many ? static_cast<std::int64_t>(batch.count()) : 1)) return found;
    return std::max(found, (fit > 0 ? batch.least() : largest) * apart);
}

}  // namespace

double most_in_channels(const BoundedGang& gang, const Batch& batch) {
    // The first domain of a chain gets nothing by its own adapters.
    const bool is_relayed = batch.kind == traffic::Kind::kChain && gang.limits.has_relays;
    return most_of_channels(gang.room, static_cast<std::int64_t>(batch.size),
                            is_relayed ? gang.limits.entries[0].of_gpu : 0.0);
}

double least_of_rings(const BoundedGang& gang, const Phase& phase, WorkMeter& meter) {
    double least = 0.0;
    for (const Batch& batch : phase) {
        if (batch.is_ring()) least = std::max(least, least_of_rings(gang, batch, meter));
    }
    return least;
}

// A ring among tasks that are all on different machines, or on one, leaves each of them; else it may be in
// channels, but then there are rings inside machines besides.
double least_by_all_ports(const BoundedGang& gang, const Phase& phase, WorkMeter& meter) {
    double least = 0.0;
    for (const Batch& batch : phase) {
        double fastest = gang.limits.most_of_a_gpu;
        const auto size = static_cast<std::int64_t>(batch.is_ring() ? batch.size : 0);
        for (std::int64_t n = 2; n <= size; ++n)
            fastest = std::max(fastest, most_inside(gang, batch, n, meter));
        const double one_way = batch.is_ring() ? batch.most() : batch.most() / 2;
        if (fastest > 0.0) least = std::max(least, one_way / fastest);
    }
    return least;
}

}  // namespace topoplace::decide
