// The time of rings of two phases that have few tasks in common, as those of two dimensions of a job have.
//
// A machine with k tasks is passed by p rings of one phase and q of the other. If any two of them have at
// most c tasks in common, p q c is at least k. So rings of one phase are inside machines, or few pass them,
// only if many of the other phase do; and they share the adapters of k GPUs.
#include <algorithm>
#include <numeric>
#include <optional>

#include "decide/bounded_gang.hpp"
#include "decide/set_times.hpp"
#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

constexpr std::int64_t kMostOnMachine = 64;

// Rings of a phase, of equal size, one of which each task is in.
struct Rings {
    std::size_t phase = 0;
    std::size_t size = 0;
    double gigabytes = 0.0;               // of a ring, at least
    std::vector<std::int32_t> tasks{};    // ring after ring
    std::vector<std::int32_t> ring_of{};  // of each task

    std::size_t count() const { return tasks.size() / size; }
    std::span<const std::int32_t> row(std::size_t ring) const {
        return std::span(tasks).subspan(ring * size, size);
    }
};

std::optional<Rings> rings_of(const BoundedGang& gang, std::size_t phase) {
    Rings found{.phase = phase, .gigabytes = kNever};
    for (const Batch& batch : gang.phases[phase]) {
        if (!batch.is_in_channels()) continue;
        if (found.size != 0 && found.size != batch.size) return std::nullopt;
        found.size = batch.size;
        found.gigabytes = std::min(found.gigabytes, batch.least());
        found.tasks.insert(found.tasks.end(), batch.tasks.begin(), batch.tasks.end());
    }
    if (found.size < 2 || found.tasks.size() != gang.unit_of.size()) return std::nullopt;
    found.ring_of.assign(found.tasks.size(), -1);
    for (std::size_t i = 0; i < found.tasks.size(); ++i) {
        std::int32_t& ring = found.ring_of[index(found.tasks[i])];
        if (ring >= 0) return std::nullopt;
        ring = static_cast<std::int32_t>(i / found.size);
    }
    return found;
}

// The most tasks that a ring of one phase has in common with one of the other.
std::int64_t most_in_common(const Rings& one, const Rings& other) {
    std::vector<std::int64_t> counts(other.count(), 0);
    std::int64_t most = 0;
    for (std::size_t ring = 0; ring < one.count(); ++ring) {
        for (const std::int32_t task : one.row(ring))
            most = std::max(most, ++counts[index(other.ring_of[index(task)])]);
        for (const std::int32_t task : one.row(ring)) counts[index(other.ring_of[index(task)])] = 0;
    }
    return most;
}

// Some machine has no more tasks than this, as larger ones have too little room together; 0 without room.
std::int64_t most_of_some_machine(const BoundedGang& gang) {
    std::vector<std::int64_t> rooms = gang.room.tasks.back();
    std::ranges::sort(rooms, std::ranges::greater{});
    std::int64_t left = gang.num_tasks();
    for (const std::int64_t room : rooms) {
        left -= room;
        if (left <= 0) return room;
    }
    return 0;
}

class Crossing {
  public:
    Crossing(const BoundedGang& gang, const Rings& one, const Rings& other)
        : gang_(gang), one_(one), other_(other), in_common_(most_in_common(one, other)) {}

    // Of both phases, each of which takes at least so long in any case.
    double least(std::int64_t most, double of_one, double of_other) const {
        double found = kNever;
        for (std::int64_t tasks = 1; tasks <= most; ++tasks) {
            for (std::int64_t rings = fewest(one_, tasks); rings <= tasks; ++rings) {
                const std::int64_t together = rings * in_common_;
                const std::int64_t others =
                    std::max(fewest(other_, tasks), (tasks + together - 1) / together);
                found = std::min(found, std::max(of_one, seconds(one_, tasks, rings)) +
                                            std::max(of_other, seconds(other_, tasks, others)));
            }
        }
        return found;
    }

  private:
    static std::int64_t fewest(const Rings& rings, std::int64_t tasks) {
        const auto size = static_cast<std::int64_t>(rings.size);
        return (tasks + size - 1) / size;
    }
    // If a machine has so many tasks of so many rings: those that are not inside pass its adapters. One of
    // them has no more tasks there than rings have on average, and uses the adapters of these.
    double seconds(const Rings& rings, std::int64_t tasks, std::int64_t count) const {
        const auto size = static_cast<std::int64_t>(rings.size);
        const std::int64_t leaving = count - std::min(count, (tasks - count) / (size - 1));
        if (leaving == 0) return 0.0;
        return std::max(rings.gigabytes / gang_.limits.of_unit(0, tasks / count),
                        static_cast<double>(leaving) * rings.gigabytes / gang_.limits.of_unit(0, tasks));
    }

    const BoundedGang& gang_;
    const Rings &one_, &other_;
    std::int64_t in_common_;
};

}  // namespace

double least_of_crossing_rings(const BoundedGang& gang, std::span<const double> least) {
    const double sum = std::accumulate(least.begin(), least.end(), 0.0);
    const bool have_channels = gang.limits.all_have_adapters && !gang.limits.join_machines &&
                               std::ranges::find(gang.own_class, 1) == gang.own_class.end();
    if (!have_channels || least.size() < 2) return sum;
    const std::int64_t most = most_of_some_machine(gang);
    if (most == 0 || most > kMostOnMachine) return sum;
    std::vector<Rings> phases;
    for (std::size_t i = 0; i < least.size(); ++i) {
        if (std::optional<Rings> rings = rings_of(gang, i)) phases.push_back(std::move(*rings));
    }
    double found = sum;
    for (std::size_t i = 0; i < phases.size(); ++i) {
        for (std::size_t j = i + 1; j < phases.size(); ++j) {
            const double one = least[phases[i].phase], other = least[phases[j].phase];
            const Crossing crossing(gang, phases[i], phases[j]);
            found = std::max(found, sum - one - other + crossing.least(most, one, other));
        }
    }
    return found;
}

}  // namespace topoplace::decide
