// Checks of the arguments of a gang mapping.
#include <span>
#include <string>
#include <vector>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "topoplace/gang_mapping.hpp"

namespace topoplace::gang_mapping {
namespace {

using traffic::check_ends;
using traffic::check_once;
using traffic::check_size;
using traffic::wrong;

// The places of each leaf, for items of `size` tasks.
Fault check_places(const GangParams& params, std::size_t size) {
    const auto& room = params.items.tree.room;
    if (auto fault = check_size("leaf_ends", params.leaf_ends.size(), room.size())) return fault;
    if (auto fault = check_ends("leaf_ends", params.leaf_ends, params.places.size())) return fault;
    if (auto fault = check_once("places", params.places, index(params.network->ports().num_vertices())))
        return fault;
    std::int64_t begin = 0;
    for (std::size_t leaf = 0; leaf < room.size(); ++leaf) {
        const auto places = static_cast<std::size_t>(params.leaf_ends[leaf] - begin);
        begin = params.leaf_ends[leaf];
        if (index(room[leaf]) > places / size)
            return wrong("room", leaf, room[leaf], "more items than its places have");
    }
    return std::nullopt;
}

}  // namespace

Fault check(const GangParams& params) {
    if (auto fault = tree_mapping::check(params.items)) return fault;
    if (params.network == nullptr) return "network is missing";
    const std::size_t items = index(params.items.items.num_items), tasks = params.tasks.size();
    if (items == 0 ? tasks > 0 : tasks == 0 || tasks % items != 0) {
        return "tasks has " + std::to_string(tasks) + " entries, not equally many for " +
               std::to_string(items) + " items";
    }
    if (auto fault = check_once("tasks", params.tasks, tasks)) return fault;
    if (auto fault = traffic::check(params.job, tasks)) return fault;
    return check_places(params, items == 0 ? 1 : tasks / items);
}

}  // namespace topoplace::gang_mapping
