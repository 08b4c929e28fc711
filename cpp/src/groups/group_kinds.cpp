// Reads the groups, bottom up.
#include "groups/group_kinds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "groups/wrong.hpp"

namespace topoplace::groups {

Fault GroupKinds::check(const PackParams& params, std::int32_t leaf_depth) {
    const auto& parent = params.group_parent;
    const auto& depth = params.group_depth;
    if (parent.empty()) return "group_parent is empty: group 0 is the job";
    if (depth.size() != parent.size()) return "group_depth must have one for each group";
    if (params.own_tasks.size() != parent.size()) return "own_tasks must have a number for each group";
    if (auto fault = Children::check(parent, "group_parent", "the job has none, -1")) return fault;
    if (depth[0] != 0) return wrong("group_depth", 0, depth[0], "that of the job is 0");
    std::int64_t tasks = 0;
    for (std::size_t i = 0; i < depth.size(); ++i) {
        if (params.own_tasks[i] < 0)
            return wrong("own_tasks", i, params.own_tasks[i], "must not be negative");
        if (i > 0 && (depth[i] <= depth[index(parent[i])] || depth[i] > leaf_depth))
            return wrong("group_depth", i, depth[i],
                         "must be more than the parent's and at most the leaves'");
        tasks += params.own_tasks[i];
    }
    if (tasks <= std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    return "own_tasks has more than 2**31 - 1 tasks in all";
}

GroupKinds::GroupKinds(const PackParams& params) : children_(params.group_parent) { sort_kinds(params); }

void GroupKinds::sort_kinds(const PackParams& params) {
    using Inside = std::vector<std::pair<std::int32_t, std::int32_t>>;
    std::map<std::tuple<std::int32_t, std::int32_t, Inside>, std::int32_t> known;
    of_.assign(params.group_parent.size(), 0);
    for (std::size_t i = of_.size(); i-- > 0;) {
        std::map<std::int32_t, std::int32_t> numbers;
        std::int64_t size = params.own_tasks[i];
        for (const std::int32_t child : children(static_cast<std::int32_t>(i))) {
            ++numbers[of(child)];
            size += (*this)[of(child)].size;
        }
        Inside inside(numbers.begin(), numbers.end());
        const auto [found, is_new] = known.try_emplace({params.group_depth[i], params.own_tasks[i], inside},
                                                       static_cast<std::int32_t>(kinds_.size()));
        of_[i] = found->second;
        if (is_new) kinds_.push_back({params.group_depth[i], size, std::move(inside)});
    }
}

std::int64_t GroupKinds::tasks(const Counts& counts) const {
    std::int64_t sum = 0;
    for (std::size_t kind = 0; kind < counts.size(); ++kind) sum += counts[kind] * kinds_[kind].size;
    return sum;
}

}  // namespace topoplace::groups
