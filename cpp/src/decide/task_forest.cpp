// Groups are joined from the deepest level up.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "graph/index.hpp"
#include "topoplace/task_packing.hpp"

namespace topoplace::decide {
namespace {

// Tasks that were joined so far, each set under the name of one of them.
class JoinedTasks {
  public:
    explicit JoinedTasks(std::int32_t num_tasks) : name_(index(num_tasks)), members_(index(num_tasks)) {
        std::iota(name_.begin(), name_.end(), 0);
    }

    // The name of the set of all these; -1 where they were one set before.
    std::int32_t join(std::span<const std::int32_t> tasks) {
        std::vector<std::int32_t> names;
        for (const std::int32_t task : tasks) names.push_back(name_[index(task)]);
        std::ranges::sort(names);
        names.erase(std::unique(names.begin(), names.end()), names.end());
        if (names.size() < 2) return kAbsent;
        const std::int32_t largest = *std::ranges::max_element(
            names, {}, [&](std::int32_t one) { return members_[index(one)].size(); });
        std::vector<std::int32_t>& all = of(largest);
        for (const std::int32_t other : names) {
            if (other == largest) continue;
            for (const std::int32_t task : of(other)) {
                name_[index(task)] = largest;
                all.push_back(task);
            }
            members_[index(other)].clear();
        }
        return largest;
    }
    // Ascending.
    std::vector<std::int32_t> members(std::int32_t name) {
        std::vector<std::int32_t> found = of(name);
        std::ranges::sort(found);
        return found;
    }
    std::int32_t name_of(std::int32_t task) const { return name_[index(task)]; }

  private:
    std::vector<std::int32_t>& of(std::int32_t name) {
        std::vector<std::int32_t>& found = members_[index(name)];
        if (found.empty()) found.push_back(name);
        return found;
    }

    std::vector<std::int32_t> name_;
    std::vector<std::vector<std::int32_t>> members_;  // empty: the task of this name alone
};

struct Nested {
    std::int32_t depth = 0;
    std::vector<std::int32_t> tasks{};
};

std::vector<Nested> nested(std::span<const Together> together, const std::vector<bool>& counts,
                           std::int32_t num_tasks) {
    std::vector<const Together*> deepest_first;
    for (const Together& one : together) deepest_first.push_back(&one);
    std::ranges::stable_sort(deepest_first, std::ranges::greater{}, &Together::level);
    JoinedTasks joined(num_tasks);
    std::vector<Nested> found;
    for (std::size_t i = 0; i < deepest_first.size();) {
        const std::size_t level = deepest_first[i]->level;
        std::vector<std::int32_t> grown;
        for (; i < deepest_first.size() && deepest_first[i]->level == level; ++i) {
            std::vector<std::int32_t> own;
            for (const std::int32_t task : deepest_first[i]->tasks) {
                if (counts[index(task)]) own.push_back(task);
            }
            const std::int32_t name = joined.join(own);
            if (name != kAbsent) grown.push_back(name);
        }
        for (std::int32_t& name : grown) name = joined.name_of(name);
        std::ranges::sort(grown);
        grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
        for (const std::int32_t name : grown)
            found.push_back({static_cast<std::int32_t>(level) + 1, joined.members(name)});
    }
    std::ranges::sort(found, {}, [](const Nested& one) {
        return std::tuple(-static_cast<std::int64_t>(one.tasks.size()), one.depth, one.tasks);
    });
    return found;
}

}  // namespace

TaskForest::TaskForest(std::span<const Together> together, std::span<const Together> apart,
                       std::span<const std::int32_t> tasks, std::int32_t num_tasks)
    : inner(index(num_tasks), kAbsent) {
    for (const std::int32_t task : tasks) inner[index(task)] = 0;
    std::vector<bool> counts(index(num_tasks), true);
    for (const Together& group : apart) {
        for (const std::int32_t task : group.tasks) {
            inner[index(task)] = kAbsent;
            counts[index(task)] = false;
        }
    }
    for (const Nested& one : nested(together, counts, num_tasks))
        add(inner[index(one.tasks.front())], one.depth, one.tasks);
}

void TaskForest::add(std::int32_t around, std::int32_t depth_of_domain, std::span<const std::int32_t> tasks) {
    for (const std::int32_t task : tasks) inner[index(task)] = static_cast<std::int32_t>(parent.size());
    parent.push_back(around);
    depth.push_back(depth_of_domain);
}

std::vector<std::int32_t> TaskForest::own() const {
    std::vector<std::int32_t> found(size(), 0);
    for (const std::int32_t group : inner) found[index(std::max(group, 0))] += group >= 0 ? 1 : 0;
    return found;
}

}  // namespace topoplace::decide
