// Checks of the arguments of a gang mapping, but for those of its tree, which `Problem` checks.
#include "gang_mapping/check.hpp"

#include <stdexcept>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::gang_mapping {
namespace {

using traffic::check_ends;
using traffic::check_range;
using traffic::check_size;
using traffic::refuse;

// The number of tasks of an item.
std::size_t check_items(const GangParams& params, std::size_t items) {
    const std::size_t tasks = params.tasks.size();
    if (items == 0 ? tasks > 0 : tasks == 0 || tasks % items != 0) {
        throw std::invalid_argument("tasks has " + std::to_string(tasks) + " entries, not equally many for " +
                                    std::to_string(items) + " items");
    }
    return items == 0 ? 1 : tasks / items;
}

// Each number below `count` at most once.
void check_once(const char* name, std::span<const std::int32_t> numbers, std::size_t count) {
    check_range(name, numbers, 0, count);
    std::vector<std::uint8_t> seen(count, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (seen[index(numbers[i])] != 0) refuse(name, i, numbers[i], "listed twice");
        seen[index(numbers[i])] = 1;
    }
}

}  // namespace

void check(const GangParams& params, const tree_mapping::Problem& problem) {
    if (params.network == nullptr) throw std::invalid_argument("network is missing");
    const std::size_t size = check_items(params, index(problem.items));
    check_once("tasks", params.tasks, params.tasks.size());
    traffic::check_job(params.job, params.tasks.size());
    check_size("leaf_ends", params.leaf_ends.size(), index(problem.leaves));
    check_ends("leaf_ends", params.leaf_ends, params.places.size());
    check_once("places", params.places, index(params.network->ports().num_vertices()));
    std::int64_t begin = 0;
    for (std::size_t leaf = 0; leaf < params.leaf_ends.size(); ++leaf) {
        const auto places = static_cast<std::size_t>(params.leaf_ends[leaf] - begin);
        begin = params.leaf_ends[leaf];
        if (index(problem.room[leaf]) > places / size) {
            refuse("room", leaf, problem.room[leaf], "more items than its places have");
        }
    }
}

}  // namespace topoplace::gang_mapping
