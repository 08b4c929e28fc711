// Dimensions by what a pair of their tasks exchanges.
#include "topoplace/gang_units.hpp"

#include <algorithm>
#include <numeric>

#include "decide/batches.hpp"
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

using TaskRows = std::vector<std::span<const std::int32_t>>;

class UnitChoice {
  public:
    UnitChoice(const TaskGroups& groups, std::int32_t most, std::span<const std::int32_t> sizes)
        : groups_(groups), most_(index(most)), sizes_(sizes) {}

    // The units that these groups are, by rank, as rings follow it; none if they cannot be units.
    GangUnits of(const TaskRows& rows) const {
        const std::size_t size = rows.empty() ? 0 : std::ranges::max(rows, {}, length).size();
        if (size < 2 || !have_room(size)) return {};
        TaskRows units = parts(rows, size);
        std::ranges::sort(
            units, [](auto one, auto other) { return std::ranges::lexicographical_compare(one, other); });
        GangUnits found{{}, static_cast<std::int32_t>(size)};
        for (const auto unit : units) found.tasks.insert(found.tasks.end(), unit.begin(), unit.end());
        if (found.tasks.size() != index(groups_.num_tasks) || !are_whole(found.view())) return {};
        return found;
    }

  private:
    static std::size_t length(std::span<const std::int32_t> row) { return row.size(); }

    bool have_room(std::size_t size) const {
        std::size_t tasks = 0;
        for (const std::int32_t one : sizes_) tasks += std::min(index(one), most_) / size * size;
        return tasks >= index(groups_.num_tasks);
    }

    // Different ones of this size, if they have no task in common and all smaller ones are within them.
    TaskRows parts(const TaskRows& rows, std::size_t size) const {
        TaskRows found;
        std::vector<std::int32_t> part_of(index(groups_.num_tasks), kAbsent);
        const auto is_in = [&](std::span<const std::int32_t> row, std::int32_t part) {
            return std::ranges::all_of(row, [&](std::int32_t task) { return part_of[index(task)] == part; });
        };
        for (const auto row : rows) {
            if (row.size() < size ||
                (part_of[index(row[0])] != kAbsent && is_in(row, part_of[index(row[0])])))
                continue;
            if (!is_in(row, kAbsent)) return {};
            for (const std::int32_t task : row)
                part_of[index(task)] = static_cast<std::int32_t>(found.size());
            found.push_back(row);
        }
        const auto is_within = [&](auto row) { return is_in(row, part_of[index(row[0])]); };
        return std::ranges::all_of(rows, is_within) ? found : TaskRows{};
    }

    bool are_whole(const Units& units) const {
        const std::vector<std::int32_t> unit_of = unit_of_tasks(units);
        return std::ranges::all_of(groups_.in_domain, [&](const auto group) {
            std::vector<std::int32_t> own;
            for (const std::int32_t task : group) own.push_back(unit_of[index(task)]);
            std::ranges::sort(own);
            own.erase(std::unique(own.begin(), own.end()), own.end());
            return own.size() * index(units.size) == group.size();
        });
    }

    const TaskGroups& groups_;
    std::size_t most_;
    std::span<const std::int32_t> sizes_;
};

// The groups of each dimension that the job states, that in which a pair exchanges the most first.
std::vector<TaskRows> dimensions_of(const traffic::JobCollectives& job, const TaskGroups& groups) {
    std::vector<std::pair<double, TaskRows>> found;
    if (!groups.are_stated) return {};
    for (const Phase& phase : phases_of(job)) {
        auto& [most, rows] = found.emplace_back(0.0, TaskRows{});
        for (const Batch& batch : phase) {
            most = std::max(most, batch.most());
            for (std::size_t i = 0; i < batch.count(); ++i) rows.push_back(batch.row(i));
        }
    }
    std::ranges::stable_sort(found, {}, [](const auto& one) { return -one.first; });
    std::vector<TaskRows> sorted;
    for (auto& [_, rows] : found) sorted.push_back(std::move(rows));
    return sorted;
}

}  // namespace

Fault check(const TaskGroups& groups) {
    if (groups.num_tasks < 1) return traffic::wrong("num_tasks", 0, groups.num_tasks, "below 1");
    const std::size_t count = index(groups.num_tasks);
    for (const auto* some : {&groups.on_machine, &groups.in_domain}) {
        for (const auto group : *some) {
            if (group.empty()) return "a group has no tasks";
            if (auto fault = traffic::check_once("group", group, count)) return fault;
        }
    }
    return std::nullopt;
}

GangUnits single_tasks(std::int32_t num_tasks) {
    GangUnits found{std::vector<std::int32_t>(index(num_tasks)), 1};
    std::iota(found.tasks.begin(), found.tasks.end(), 0);
    return found;
}

GangUnits first_units(const traffic::JobCollectives& job, const TaskGroups& groups, std::int32_t most,
                      std::span<const std::int32_t> sizes) {
    const UnitChoice choice(groups, most, sizes);
    GangUnits found;
    if (groups.on_machine.empty()) {
        const std::vector<TaskRows> dimensions = dimensions_of(job, groups);
        if (!dimensions.empty()) found = choice.of(dimensions.front());
    } else if (groups.on_machine.front().size() * groups.on_machine.size() == index(groups.num_tasks)) {
        found = choice.of(groups.on_machine);  // each is there once
    }
    return found.tasks.empty() ? single_tasks(groups.num_tasks) : found;
}

GangUnits further_units(const traffic::JobCollectives& job, const TaskGroups& groups, std::int32_t most,
                        std::span<const std::int32_t> sizes) {
    const UnitChoice choice(groups, most, sizes);
    const std::vector<TaskRows> dimensions = dimensions_of(job, groups);
    for (std::size_t i = 1; i < dimensions.size(); ++i) {
        GangUnits found = choice.of(dimensions[i]);
        if (!found.tasks.empty()) return found;
    }
    return {};
}

}  // namespace topoplace::decide
