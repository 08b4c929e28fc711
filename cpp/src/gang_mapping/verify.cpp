// A mapping by the definition: its places one by one, and the time of all flows that its collectives send.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/gang_mapping.hpp"

namespace topoplace::gang_mapping {
namespace {

// Where each place is.
std::map<std::int32_t, std::size_t> leaves_of_places(const GangParams& params) {
    std::map<std::int32_t, std::size_t> leaf_of;
    std::size_t leaf = 0;
    for (std::size_t i = 0; i < params.places.size(); ++i) {
        while (static_cast<std::int64_t>(i) >= params.leaf_ends[leaf]) ++leaf;
        leaf_of[params.places[i]] = leaf;
    }
    return leaf_of;
}

// The domains from each leaf up to the root.
std::vector<std::vector<std::int32_t>> paths_of(std::span<const std::int32_t> parent) {
    std::vector<bool> has_children(parent.size(), false);
    for (const std::int32_t domain : parent.subspan(1)) has_children[static_cast<std::size_t>(domain)] = true;
    std::vector<std::vector<std::int32_t>> paths;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(parent.size()); ++i) {
        if (has_children[static_cast<std::size_t>(i)]) continue;
        paths.emplace_back();
        for (std::int32_t domain = i; domain >= 0; domain = parent[static_cast<std::size_t>(domain)]) {
            paths.back().push_back(domain);
        }
    }
    return paths;
}

std::string with_number(const char* what, std::size_t number) {
    return std::string(what) + " " + std::to_string(number);
}

// Every task on a place of its own, and the tasks of an item on one leaf, which `leaf_of_item` gets.
Fault fault_of_places(const GangParams& params, std::span<const std::int32_t> vertex_of,
                      std::vector<std::size_t>& leaf_of_item) {
    std::map<std::int32_t, std::size_t> free = leaves_of_places(params);
    const std::size_t items = leaf_of_item.size(), size = items == 0 ? 1 : params.tasks.size() / items;
    for (std::size_t i = 0; i < params.tasks.size(); ++i) {
        const auto task = static_cast<std::size_t>(params.tasks[i]);
        const auto place = free.find(vertex_of[task]);
        if (place == free.end()) return with_number("no free place for task", task);
        if (i % size == 0) leaf_of_item[i / size] = place->second;
        if (place->second != leaf_of_item[i / size]) return with_number("two leaves for item", i / size);
        free.erase(place);
    }
    return std::nullopt;
}

// No leaf over its room, and no item outside the domain that it may not leave.
Fault fault_of_leaves(const tree_mapping::TreeMapParams& given, std::span<const std::size_t> leaf_of_item) {
    std::vector<std::int64_t> used(given.tree.room.size(), 0);
    for (const std::size_t leaf : leaf_of_item) {
        if (++used[leaf] > given.tree.room[leaf]) return with_number("too little room on leaf", leaf);
    }
    if (given.items.confined.empty()) return std::nullopt;
    const auto paths = paths_of(given.tree.parent);
    for (std::size_t item = 0; item < leaf_of_item.size(); ++item) {
        const auto& first = paths[static_cast<std::size_t>(given.items.start[item])];
        const auto& now = paths[leaf_of_item[item]];
        const std::size_t up = first.size() - 1 - static_cast<std::size_t>(given.items.confined[item]);
        if (first[up] != now[up]) return with_number("outside its domain is item", item);
    }
    return std::nullopt;
}

bool differ(double time, double claimed) {
    return time != claimed && !(std::abs(time - claimed) <= 1e-9 * time);
}

Fault fault_of_times(const GangParams& params, std::span<const std::int32_t> vertex_of, double seconds,
                     double port_seconds) {
    const traffic::JobFlows flows = traffic::flows_of(*params.network, params.job, vertex_of);
    const auto times =
        ports::phase_times(params.network->ports(), flows.phase_ends, flows.flows(), params.others);
    double sum = 0.0, sum_of_ports = 0.0;
    for (std::size_t i = 0; i < times.size(); ++i) {
        sum += std::max(times[i].seconds, flows.rings[i].seconds);
        sum_of_ports += times[i].port_seconds;
    }
    if (differ(sum, seconds)) return "takes " + std::to_string(sum) + " s";
    if (differ(sum_of_ports, port_seconds)) return "takes " + std::to_string(sum_of_ports) + " port-seconds";
    return std::nullopt;
}

}  // namespace

Fault verify_gang(const GangParams& params, std::span<const std::int32_t> vertex_of, double seconds,
                  double port_seconds) {
    TOPOPLACE_ASSERT(!check(params));
    if (vertex_of.size() != params.tasks.size()) {
        return "vertex_of has " + std::to_string(vertex_of.size()) + " entries";
    }
    std::vector<std::size_t> leaf_of_item(static_cast<std::size_t>(params.items.items.num_items));
    if (Fault fault = fault_of_places(params, vertex_of, leaf_of_item)) return fault;
    if (Fault fault = fault_of_leaves(params.items, leaf_of_item)) return fault;
    constexpr double kUntimed = std::numeric_limits<double>::infinity();
    if (seconds == kUntimed && port_seconds == kUntimed) return std::nullopt;
    return fault_of_times(params, vertex_of, seconds, port_seconds);
}

}  // namespace topoplace::gang_mapping
