// Bounds for all numbers of tasks of a machine, and the blocks that reach them.
#include "decide/crossing_rings.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "decide/bounded_gang.hpp"
#include "decide/set_times.hpp"
#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

constexpr std::int64_t kMostOnMachine = 64;
constexpr std::size_t kMostPhases = 6;

std::optional<PhaseRings> rings_of(std::span<const Phase> phases, std::size_t phase, std::size_t num_tasks) {
    PhaseRings found{.phase = phase, .gigabytes = kNever};
    for (const Batch& batch : phases[phase]) {
        if (!batch.is_in_channels()) continue;
        if (found.size != 0 && found.size != batch.size) return std::nullopt;
        found.size = batch.size;
        found.gigabytes = std::min(found.gigabytes, batch.least());
        found.tasks.insert(found.tasks.end(), batch.tasks.begin(), batch.tasks.end());
    }
    if (found.size < 2 || found.tasks.size() != num_tasks) return std::nullopt;
    found.ring_of.assign(num_tasks, kAbsent);
    for (std::size_t i = 0; i < num_tasks; ++i) {
        std::int32_t& ring = found.ring_of[index(found.tasks[i])];
        if (ring != kAbsent) return std::nullopt;
        ring = static_cast<std::int32_t>(i / found.size);
    }
    return found;
}

// A lower bound on the seconds of two phases together. of_one, of_other: those of each alone.
double least_of_two(const GangLimits& limits, const PhaseRings& one, const PhaseRings& other,
                    std::int64_t most, double of_one, double of_other) {
    const std::int64_t in_common = most_in_common(one, other);
    double found = kNever;
    for (std::int64_t tasks = 1; tasks <= most; ++tasks) {
        for (std::int64_t rings = one.fewest(tasks); rings <= tasks; ++rings) {
            const std::int64_t together = rings * in_common;
            const std::int64_t others = std::max(other.fewest(tasks), (tasks + together - 1) / together);
            found = std::min(found, std::max(of_one, seconds_of_passing(limits, one, tasks, rings)) +
                                        std::max(of_other, seconds_of_passing(limits, other, tasks, others)));
        }
    }
    return found;
}

// The rings of two phases as rows and columns of grids, if each cell of them has as many tasks.
class Grids {
  public:
    Grids(const PhaseRings& rows, const PhaseRings& columns)
        : rows_(rows),
          columns_(columns),
          in_cell_(static_cast<std::size_t>(most_in_common(rows, columns))),
          height_(columns.size / in_cell_),
          width_(rows.size / in_cell_) {
        for (std::size_t row = 0; row < rows.count(); ++row) {
            std::set<std::int32_t> crossed;
            for (const std::int32_t task : rows.row(row)) crossed.insert(columns.ring_of[index(task)]);
            members_[{crossed.begin(), crossed.end()}].push_back(row);
        }
        std::set<std::int32_t> seen;
        for (const auto& [own, members] : members_) {
            are_full_ =
                are_full_ && own.size() * in_cell_ == rows.size && members.size() * in_cell_ == columns.size;
            for (const std::int32_t column : own) are_full_ = are_full_ && seen.insert(column).second;
        }
    }

    bool are_full() const { return are_full_; }

    // The fastest blocks that a machine has room for, and their seconds. most: tasks on it. rooms: of all
    // machines.
    struct Best {
        std::size_t high = 0, wide = 0;
        double seconds = kNever;
    };
    Best fastest(const GangLimits& limits, std::size_t most, const std::vector<std::int64_t>& rooms) const {
        Best best;
        for (std::size_t high = 1; high * in_cell_ <= most && high <= height_; ++high) {
            for (std::size_t wide = 1; high * wide * in_cell_ <= most && wide <= width_; ++wide) {
                if (height_ % high != 0 || width_ % wide != 0) continue;
                const auto tasks = static_cast<std::int64_t>(high * wide * in_cell_);
                const double seconds =
                    seconds_of_passing(limits, rows_, tasks, static_cast<std::int64_t>(high)) +
                    seconds_of_passing(limits, columns_, tasks, static_cast<std::int64_t>(wide));
                if (tasks > 1 && seconds < best.seconds && have_room(rooms, tasks))
                    best = {high, wide, seconds};
            }
        }
        return best;
    }

    GangUnits blocks(const Best& of) const {
        std::vector<std::pair<std::size_t, std::int32_t>> order;  // the block of each task
        std::size_t grid = 0;
        for (const auto& [own, members] : members_) {
            for (std::size_t row = 0; row < members.size(); ++row) {
                for (const std::int32_t task : rows_.row(members[row])) {
                    const auto column = std::ranges::lower_bound(own, columns_.ring_of[index(task)]);
                    const auto place = static_cast<std::size_t>(column - own.begin());
                    order.emplace_back((grid * height_ + row / of.high) * width_ + place / of.wide, task);
                }
            }
            ++grid;
        }
        std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first; });
        GangUnits found{.size = static_cast<std::int32_t>(of.high * of.wide * in_cell_)};
        for (const auto& [_, task] : order) found.tasks.push_back(task);
        return found;
    }

  private:
    bool have_room(const std::vector<std::int64_t>& rooms, std::int64_t size) const {
        return groups_that_fit(rooms, size) * size >= static_cast<std::int64_t>(rows_.tasks.size());
    }

    const PhaseRings &rows_, &columns_;
    std::size_t in_cell_, height_, width_;
    bool are_full_ = true;
    std::map<std::vector<std::int32_t>, std::vector<std::size_t>> members_{};  // rows by their columns
};

}  // namespace

std::vector<PhaseRings> rings_of_phases(std::span<const Phase> phases, std::size_t num_tasks) {
    std::vector<PhaseRings> found;
    for (std::size_t i = 0; i < phases.size(); ++i) {
        if (std::optional<PhaseRings> rings = rings_of(phases, i, num_tasks))
            found.push_back(std::move(*rings));
        if (found.size() <= kMostPhases) continue;
        found.erase(std::ranges::min_element(found, {}, &PhaseRings::gigabytes));
    }
    return found;
}

std::int64_t most_in_common(const PhaseRings& one, const PhaseRings& other) {
    std::vector<std::int64_t> counts(other.count(), 0);
    std::int64_t most = 0;
    for (std::size_t ring = 0; ring < one.count(); ++ring) {
        for (const std::int32_t task : one.row(ring))
            most = std::max(most, ++counts[index(other.ring_of[index(task)])]);
        for (const std::int32_t task : one.row(ring)) counts[index(other.ring_of[index(task)])] = 0;
    }
    return most;
}

std::int64_t most_of_some_machine(std::vector<std::int64_t> rooms, std::int64_t num_tasks) {
    std::ranges::sort(rooms, std::ranges::greater{});
    for (const std::int64_t room : rooms) {
        num_tasks -= room;
        if (num_tasks <= 0) return room;
    }
    return 0;
}

double seconds_of_passing(const GangLimits& limits, const PhaseRings& rings, std::int64_t tasks,
                          std::int64_t count) {
    const auto size = static_cast<std::int64_t>(rings.size);
    const std::int64_t passing = count - std::min(count, (tasks - count) / (size - 1));
    if (passing == 0) return 0.0;
    return std::max(rings.gigabytes / limits.of_unit(0, tasks / count),
                    static_cast<double>(passing) * rings.gigabytes / limits.of_unit(0, tasks));
}

double least_of_crossing_rings(const BoundedGang& gang, std::span<const double> least) {
    const double sum = std::accumulate(least.begin(), least.end(), 0.0);
    if (!exchange_by_adapters(gang.limits, gang.own_class) || least.size() < 2) return sum;
    const std::int64_t most = most_of_some_machine(gang.room.tasks.back(), gang.num_tasks());
    if (most == 0 || most > kMostOnMachine) return sum;
    const std::vector<PhaseRings> phases = rings_of_phases(gang.phases, gang.unit_of.size());
    double found = sum;
    for (std::size_t i = 0; i < phases.size(); ++i) {
        for (std::size_t j = i + 1; j < phases.size(); ++j) {
            const double one = least[phases[i].phase], other = least[phases[j].phase];
            const double both = least_of_two(gang.limits, phases[i], phases[j], most, one, other);
            found = std::max(found, sum - one - other + both);
        }
    }
    return found;
}

GangUnits block_units(const GangLimits& limits, const traffic::JobCollectives& job, std::int32_t num_tasks,
                      const std::vector<std::int64_t>& rooms) {
    const std::int64_t most = most_of_some_machine(rooms, num_tasks);
    if (most < 2 || most > kMostOnMachine) return {};
    const std::vector<PhaseRings> phases = rings_of_phases(phases_of(job), index(num_tasks));
    GangUnits found;
    double slowest = 0.0;
    for (std::size_t i = 0; i < phases.size(); ++i) {
        for (std::size_t j = i + 1; j < phases.size(); ++j) {
            const Grids grids(phases[i], phases[j]);
            if (!grids.are_full()) continue;
            const Grids::Best best = grids.fastest(limits, static_cast<std::size_t>(most), rooms);
            if (best.high == 0 || best.seconds <= slowest) continue;
            slowest = best.seconds;
            found = grids.blocks(best);
        }
    }
    return found;
}

}  // namespace topoplace::decide
