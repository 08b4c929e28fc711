// What a gang takes at the least by the units, or the GPUs, that one machine has of it.
#include <algorithm>
#include <bit>
#include <numeric>

#include "decide/bounded_gang.hpp"
#include "decide/set_times.hpp"
#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

constexpr std::size_t kMostInSets = 8;  // GPUs of a machine whose sets are all rated

// The units of the tasks of each collective, sorted, collective after collective.
std::vector<std::int32_t> owners_of(const BoundedGang& gang, const Batch& batch) {
    std::vector<std::int32_t> found;
    for (const std::int32_t task : batch.tasks) found.push_back(gang.unit_of[index(task)]);
    for (auto row = found.begin(); row != found.end(); row += static_cast<std::ptrdiff_t>(batch.size))
        std::sort(row, row + static_cast<std::ptrdiff_t>(batch.size));
    return found;
}

// The same of different collectives, in the order of their units.
std::vector<std::int32_t> different_owners(const BoundedGang& gang, const Batch& batch) {
    const std::vector<std::int32_t> owners = owners_of(gang, batch);
    std::vector<std::span<const std::int32_t>> rows;
    for (std::size_t i = 0; i < batch.count(); ++i)
        rows.push_back(std::span(owners).subspan(i * batch.size, batch.size));
    const auto is_less = [](auto one, auto other) {
        return std::ranges::lexicographical_compare(one, other);
    };
    const auto is_equal = [](auto one, auto other) { return std::ranges::equal(one, other); };
    std::ranges::sort(rows, is_less);
    rows.erase(std::unique(rows.begin(), rows.end(), is_equal), rows.end());
    std::vector<std::int32_t> found;
    for (const auto row : rows) found.insert(found.end(), row.begin(), row.end());
    return found;
}

std::size_t count_different(std::vector<std::int32_t> numbers) {
    std::ranges::sort(numbers);
    return static_cast<std::size_t>(std::unique(numbers.begin(), numbers.end()) - numbers.begin());
}

// Calls `take` with each unit of a ring, and the number of its tasks there.
template <class Take>
void each_run(std::span<const std::int32_t> row, const Take& take) {
    for (std::size_t begin = 0, end = 0; begin < row.size(); begin = end) {
        while (end < row.size() && row[end] == row[begin]) ++end;
        take(row[begin], static_cast<std::int64_t>(end - begin));
    }
}

// Each ring has units of different chains.
bool have_one_of_each(std::span<const std::int32_t> owners, std::size_t size,
                      std::span<const std::int32_t> chain_of) {
    for (; !owners.empty(); owners = owners.subspan(size)) {
        std::vector<std::int32_t> chains;
        each_run(owners.first(size),
                 [&](std::int32_t unit, std::int64_t) { chains.push_back(chain_of[index(unit)]); });
        if (count_different(chains) < chains.size()) return false;
    }
    return true;
}

// GB/s of the channels that leave each set of a machine's GPUs, at most.
std::vector<double> out_of_sets(const GangMachines& machines, std::int32_t machine) {
    const auto gpus = machines.gpus_of(machine);
    std::vector<double> found;
    for (std::uint32_t set = 0; set < 1U << gpus.size(); ++set) {
        std::vector<std::int32_t> adapters;
        double fastest = 0.0;
        for (std::size_t i = 0; i < gpus.size(); ++i) {
            if ((set >> i & 1U) == 0) continue;
            adapters.push_back(machines.gpu(gpus[i]).adapter);
            fastest = std::max(fastest, machines.gpu(gpus[i]).way_out);
        }
        found.push_back(static_cast<double>(count_different(std::move(adapters))) * fastest);
    }
    return found;
}

// GB/s of the rings of each set of a machine's GPUs; infinity where unknown.
std::vector<double> rings_of_sets(const Machine& machine, WorkMeter& meter) {
    std::vector<double> found(std::size_t{1} << machine.num_gpus(), kNever);
    if (machine.rated == nullptr) return found;
    std::vector<collective::GpuSet> sets(found.size() - 1);
    std::iota(sets.begin(), sets.end(), collective::GpuSet{1});
    const std::vector<double> rates = machine.rated->rated(sets, meter);
    for (std::size_t i = 0; i < rates.size(); ++i) {
        if (rates[i] > 0.0) found[i + 1] = rates[i];
    }
    return found;
}

}  // namespace

MachineLimits::MachineLimits(const GangLimits& limits, const GangRoom& room,
                             std::span<const std::int32_t> own_class, const traffic::JobCollectives& job,
                             const Units& units, bool machine_groups, WorkMeter& meter)
    : limits_(limits),
      num_tasks_(static_cast<std::int64_t>(units.tasks.size())),
      unit_size_(units.size),
      are_groups_(units.size > 1 && machine_groups),
      have_channels_(exchange_by_adapters(limits, own_class)) {
    if (!have_channels_) return;
    const BoundedGang gang(limits, room, own_class, job, units);
    for (const Phase& phase : gang.phases) least_.push_back(least_of_rings(gang, phase, meter));
    least_ = least_of_whole_units(gang, std::move(least_), meter);
    find_chains(gang);
    are_rings_ = units.size == 1;
    for (const Phase& phase : gang.phases) {
        double& carried = carried_.emplace_back(0.0);
        std::vector<Leaving>& leaving_phase = leaving_.emplace_back();
        for (const Batch& batch : phase) {
            carried = std::max(carried, batch.most());
            leaving_phase.push_back(leaving(gang, batch));
            are_rings_ = are_rings_ && batch.is_in_channels() && batch.size == gang.unit_of.size();
        }
    }
}

// The first batch other than of rings that has each unit once.
void MachineLimits::find_chains(const BoundedGang& gang) {
    const auto count = index(gang.units.count());
    for (const Phase& phase : gang.phases) {
        for (const Batch& batch : phase) {
            if (batch.is_ring()) continue;
            std::vector<std::int32_t> units = different_owners(gang, batch);
            if (units.size() != count || count_different(units) != count) continue;
            chains_ = {batch.size, std::move(units)};
            return;
        }
    }
}

MachineLimits::Leaving MachineLimits::leaving(const BoundedGang& gang, const Batch& batch) const {
    Leaving found{.least = batch.least(), .is_ring = batch.is_ring()};
    if (!batch.is_ring()) {
        const bool is_alike = batch.size == chains_.size;
        found.are_chains = is_alike && different_owners(gang, batch) == chains_.units;
        return found;
    }
    const std::vector<std::int32_t> owners = owners_of(gang, batch);
    std::vector<std::int64_t> rings(index(gang.units.count()), 0);
    for (std::size_t i = 0; i < batch.count(); ++i) {
        each_run(std::span(owners).subspan(i * batch.size, batch.size),
                 [&](std::int32_t unit, std::int64_t tasks) {
                     ++rings[index(unit)];
                     found.together = std::max(found.together, tasks);
                 });
    }
    found.rings = std::ranges::min(rings);
    if (!batch.is_in_channels() || found.rings == 0) return found;
    found.size = static_cast<std::int64_t>(batch.size);
    if (chains_.size == 0) return found;
    const Units chains{chains_.units, static_cast<std::int32_t>(chains_.size)};
    found.have_one_of_each = decide::have_one_of_each(owners, batch.size, unit_of_tasks(chains));
    return found;
}

double MachineLimits::of_count(std::int64_t count) const {
    if (count == 0) return 0.0;
    if (!have_channels_) return summed(least_);
    const double apart = with_few(count, false);
    const auto chain = static_cast<std::int64_t>(chains_.size);
    return chain == 0 || count % chain != 0 ? apart : std::min(apart, with_few(count, true));
}

// The units on such a machine are whole chains, or are not.
double MachineLimits::with_few(std::int64_t count, bool is_whole) const {
    std::vector<double> least = least_;
    for (std::size_t i = 0; i < least.size(); ++i) {
        for (const Leaving& one : leaving_[i]) least[i] = std::max(least[i], few(one, count, is_whole));
    }
    return summed(least);
}

double MachineLimits::few(const Leaving& one, std::int64_t count, bool is_whole) const {
    if (!one.is_ring) return one.are_chains && !is_whole ? one.least / 2 / limits_.of_unit(0, 1) : 0.0;
    const bool is_divided = is_whole && one.have_one_of_each;
    const std::int64_t of_ring = is_divided ? count / static_cast<std::int64_t>(chains_.size) : count;
    const std::int64_t most = of_ring * one.together;
    if (one.size <= most) return 0.0;
    return std::max(one.least / limits_.of_unit(0, most),
                    static_cast<double>(one.rings) * one.least / limits_.of_unit(0, count * unit_size_));
}

double MachineLimits::summed(const std::vector<double>& phases) {
    return std::accumulate(phases.begin(), phases.end(), 0.0) * kRoundedDown;
}

std::vector<double> MachineLimits::of_sets(std::int32_t machine, WorkMeter& meter) const {
    const Machine& own = limits_.machine(machine);
    if (!are_rings_ || own.num_gpus() > kMostInSets || own.are_alike) return {};
    const std::vector<double> inside = rings_of_sets(own, meter);
    const std::vector<double> out = out_of_sets(limits_.gpus, machine);
    std::vector<double> found, least;
    for (std::size_t set = 0; set < out.size(); ++set) {
        const bool is_all = std::popcount(set) >= num_tasks_;  // then no ring leaves the machine
        const double speed = std::min(is_all ? kNever : out[set], inside[set]);
        least = least_;
        for (std::size_t i = 0; i < least.size() && speed > 0.0; ++i)
            least[i] = std::max(least[i], carried_[i] / speed);
        found.push_back(summed(least));
    }
    return found;
}

}  // namespace topoplace::decide
