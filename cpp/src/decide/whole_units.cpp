// The time of phases in which each unit is on one machine: of what pairs of units exchange, on a small tree
// with the room of the real one, and of the rings of a unit, which share the adapters of its domain.
#include <algorithm>

#include "decide/bounded_gang.hpp"
#include "decide/joined_units.hpp"
#include "graph/index.hpp"
#include "topoplace/tree_mapping.hpp"

namespace topoplace::decide {
namespace {

// Domains of the most room at each depth, one inside the other, and beside each as many leaves as the domain
// around it has room for.
struct RoomTree {
    std::vector<std::int32_t> parent{-1}, room{};
    std::vector<double> uplink{}, own{};

    void add_beside(std::int32_t spine, std::size_t depths, std::int64_t items) {
        room.push_back(static_cast<std::int32_t>(items));
        parent.push_back(spine);
        for (; depths > 1; --depths) parent.push_back(static_cast<std::int32_t>(parent.size()) - 1);
    }
};

RoomTree tree_of(const BoundedGang& gang) {
    std::vector<std::int64_t> most;  // items in a domain of each depth
    for (const auto& tasks : gang.room.tasks) {
        const std::int64_t largest = tasks.empty() ? 0 : *std::ranges::max_element(tasks);
        most.push_back(std::min<std::int64_t>(gang.units.count(), largest / gang.units.size));
    }
    RoomTree tree;
    std::int32_t spine = 0;
    const std::int64_t step = std::max<std::int64_t>(1, most.back());
    for (std::size_t depth = 0; depth + 1 < most.size(); ++depth) {
        const std::int64_t beside = most[depth] - most[depth + 1];
        for (std::int64_t first = 0; first < beside; first += step)
            tree.add_beside(spine, most.size() - depth - 1, std::min(most.back(), beside - first));
        tree.parent.push_back(spine);
        spine = static_cast<std::int32_t>(tree.parent.size()) - 1;
    }
    tree.room.push_back(static_cast<std::int32_t>(most.back()));
    tree.uplink.assign(tree.parent.size(), 0.0);
    const std::int32_t last_class = gang.own_class.empty() ? 0 : std::ranges::max(gang.own_class);
    // Where tasks that meet anywhere may use NVLinks, a unit may use these and adapters at once.
    const bool by_both = !gang.own_class.empty() && gang.own_class.front() == 1;
    const double beside = by_both ? gang.limits.of_unit(0, gang.units.size) : 0.0;
    for (std::int32_t one = 0; one <= last_class; ++one)
        tree.own.insert(tree.own.end(), tree.room.size(), beside + gang.limits.of_unit(one, gang.units.size));
    return tree;
}

// Some of these pairs are in different domains of each depth, as these have too little room.
double least_of_pairs_apart(const BoundedGang& gang, const Exchanges& exchanges, std::size_t begin,
                            std::size_t end) {
    std::vector<UnitPair> pairs;
    for (std::size_t i = begin; i < end; ++i)
        pairs.push_back({exchanges.from[i], exchanges.to[i], exchanges.gigabytes[i]});
    sort_by_most(pairs);
    const bool by_both = !gang.own_class.empty() && gang.own_class.front() == 1;
    const double beside = by_both ? gang.limits.of_unit(0, gang.units.size) : 0.0;
    double least = 0.0;
    for (std::size_t depth = 1; depth < gang.room.tasks.size(); ++depth) {
        std::vector<std::int64_t> rooms = gang.room.tasks[depth];
        for (std::int64_t& room : rooms) room /= gang.units.size;
        const double gigabytes = least_apart(pairs, gang.units.count(), rooms);
        const double fastest = beside + gang.fastest(depth, gang.units.size);
        if (gigabytes > 0.0 && fastest > 0.0) least = std::max(least, gigabytes / 2 / fastest);
    }
    return least;
}

std::vector<double> least_of_pairs(const BoundedGang& gang, WorkMeter& meter) {
    const Exchanges pairs = exchanges_of(gang.job, gang.units, false);
    if (pairs.from.empty()) return std::vector<double>(gang.phases.size(), 0.0);
    const RoomTree tree = tree_of(gang);
    tree_mapping::TreeMapParams params;
    params.tree = {tree.parent, tree.room, tree.uplink, gang.own_class, tree.own};
    params.items = {.num_items = gang.units.count(),
                    .phase_ends = pairs.phase_ends,
                    .from = pairs.from,
                    .to = pairs.to,
                    .gigabytes = pairs.gigabytes};
    params.stop = meter.deadline();
    auto found = tree_mapping::tree_bound(params);
    meter.look_at_clock();
    std::size_t begin = 0;
    for (std::size_t i = 0; i < found.phases.size(); ++i) {
        const auto end = static_cast<std::size_t>(pairs.phase_ends[i]);
        found.phases[i] = std::max(found.phases[i], least_of_pairs_apart(gang, pairs, begin, end));
        begin = end;
    }
    return std::move(found.phases);
}

// Adds the GB of each ring that crosses domains, as these have `most` units at the most, to all its units.
void add_crossing(const BoundedGang& gang, const Batch& batch, std::int64_t most, std::vector<double>& load) {
    std::vector<std::size_t> last(load.size(), 0);  // 1 + the last ring of each unit
    std::vector<std::int32_t> passed;
    for (std::size_t i = 0; i < batch.count(); ++i) {
        passed.clear();
        for (const std::int32_t task : batch.row(i)) {
            const std::int32_t unit = gang.unit_of[index(task)];
            if (last[index(unit)] != i + 1) passed.push_back(unit);
            last[index(unit)] = i + 1;
        }
        if (static_cast<std::int64_t>(passed.size()) <= most) continue;
        for (const std::int32_t unit : passed) load[index(unit)] += batch.gigabytes[i];
    }
}

double least_of_shared_adapters(const BoundedGang& gang, const Phase& phase) {
    std::int64_t most = 0;
    for (const std::int64_t tasks : gang.room.ring_tasks) most = std::max(most, tasks / gang.units.size);
    std::vector<double> load(index(gang.units.count()), 0.0);
    for (const Batch& batch : phase) {
        if (batch.is_in_channels()) add_crossing(gang, batch, most, load);
    }
    const double largest = std::ranges::max(load);
    const double fastest = largest > 0.0 ? most_of_adapters(gang.room) : 0.0;
    return fastest > 0.0 ? largest / fastest : 0.0;
}

}  // namespace

std::vector<double> least_of_whole_units(const BoundedGang& gang, std::vector<double> rings,
                                         WorkMeter& meter) {
    const std::vector<double> pairs = least_of_pairs(gang, meter);
    for (std::size_t i = 0; i < rings.size(); ++i)
        rings[i] = std::max({rings[i], least_of_shared_adapters(gang, gang.phases[i]), pairs[i]});
    return rings;
}

}  // namespace topoplace::decide
