// Exchanges of units from those of their tasks, summed in the order of collectives.
#include "topoplace/gang_exchanges.hpp"

#include <algorithm>

#include "decide/batches.hpp"
#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

struct Exchanged {
    std::int64_t pair = 0;  // the lower unit x the number of units + the other one
    double gigabytes = 0.0;
};

void add_pairs(const Batch& batch, std::span<const std::int32_t> unit_of, std::int64_t count,
               std::vector<Exchanged>& found) {
    for (std::size_t i = 0; i < batch.count(); ++i) {
        const auto row = batch.row(i);
        each_pair(batch.kind, batch.size, [&](std::size_t here, std::size_t there) {
            const auto [low, high] = std::minmax(unit_of[index(row[here])], unit_of[index(row[there])]);
            if (low != high) found.push_back({low * count + high, batch.gigabytes[i]});
        });
    }
}

// Appends each pair once, ascending.
void append_sums(std::vector<Exchanged>& of_phase, std::int64_t count, Exchanges& found) {
    if (!std::ranges::is_sorted(of_phase, {}, &Exchanged::pair))
        std::ranges::stable_sort(of_phase, {}, &Exchanged::pair);
    std::int64_t last = -1;
    for (const Exchanged& one : of_phase) {
        if (one.pair == last) {
            found.gigabytes.back() += one.gigabytes;
            continue;
        }
        last = one.pair;
        found.from.push_back(static_cast<std::int32_t>(one.pair / count));
        found.to.push_back(static_cast<std::int32_t>(one.pair % count));
        found.gigabytes.push_back(one.gigabytes);
    }
    found.phase_ends.push_back(static_cast<std::int64_t>(found.from.size()));
}

bool is_inside(std::span<const std::int32_t> row, std::span<const std::int32_t> unit_of) {
    return std::ranges::all_of(
        row, [&](std::int32_t task) { return unit_of[index(task)] == unit_of[index(row[0])]; });
}

}  // namespace

Fault check(const traffic::JobCollectives& job, const Units& units) {
    const std::size_t count = units.tasks.size();
    if (units.size < 1 || count == 0 || count % index(units.size) != 0)
        return "units of " + std::to_string(units.size) + " of " + std::to_string(count) + " tasks";
    std::vector<bool> seen(count, false);
    for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t task = units.tasks[i];
        const bool is_new = task >= 0 && index(task) < count && !seen[index(task)];
        if (!is_new)
            return "units[" + std::to_string(i) + "] = " + std::to_string(task) + ": not each task once";
        seen[index(task)] = true;
    }
    return traffic::check(job, count);
}

std::vector<std::int32_t> unit_of_tasks(const Units& units) {
    std::vector<std::int32_t> found(units.tasks.size());
    for (std::size_t i = 0; i < found.size(); ++i)
        found[index(units.tasks[i])] = static_cast<std::int32_t>(i / index(units.size));
    return found;
}

Exchanges exchanges_of(const traffic::JobCollectives& job, const Units& units, bool rings) {
    const std::vector<std::int32_t> unit_of = unit_of_tasks(units);
    const std::int64_t count = units.count();
    Exchanges found;
    std::vector<Exchanged> of_phase;
    for (const Phase& phase : phases_of(job)) {
        of_phase.clear();
        for (const Batch& batch : phase) {
            if (rings || !batch.is_ring()) add_pairs(batch, unit_of, count, of_phase);
        }
        append_sums(of_phase, count, found);
    }
    return found;
}

std::vector<double> largest_flows(const traffic::JobCollectives& job, const Units& units) {
    const std::vector<std::int32_t> unit_of = unit_of_tasks(units);
    std::vector<double> found;
    for (const Phase& phase : phases_of(job)) {
        double& largest = found.emplace_back(0.0);
        for (const Batch& batch : phase) {
            const double share = batch.is_ring() ? 1.0 : 0.5;
            for (std::size_t i = 0; i < batch.count(); ++i) {
                if (share * batch.gigabytes[i] > largest && !is_inside(batch.row(i), unit_of))
                    largest = share * batch.gigabytes[i];
            }
        }
    }
    return found;
}

}  // namespace topoplace::decide
