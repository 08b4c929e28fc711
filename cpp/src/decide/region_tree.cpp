// Domains by the machines of their leaves.
#include "decide/region_tree.hpp"

#include <algorithm>
#include <numeric>

#include "graph/index.hpp"

namespace topoplace::decide {

// Calls `take` for each domain but the whole, in order: its level, and one of its machines.
template <class Take>
void RegionTree::each_domain(const Take& take) const {
    std::size_t level = 0;
    for (std::size_t domain = 1; domain < tree_.parent.size(); ++domain) {
        while (static_cast<std::int64_t>(domain) >= tree_.level_ends[level + 1]) ++level;
        take(level, machines_[index(tree_.first_leaf[domain])]);
    }
}

RegionTree::RegionTree(const GangSearchParams& params, const Region& region)
    : params_(params),
      tree_(gang_tree(params.topology->machines, region.offers(params.offers), params.levels->codes())) {
    for (const std::int32_t offer : tree_.order) {
        machines_.push_back(region.machines[index(offer)]);
        room_.push_back(std::min(region.sizes[index(offer)], params.most) / params.units.size);
    }
    uplink_.push_back(0.0);
    each_domain([&](std::size_t level, std::int32_t machine) {
        const GangLevel& one = (*params_.levels)[level];
        uplink_.push_back(one.uplink.empty() ? 0.0 : one.uplink[index(machine)]);
    });
    add_own(params.topology->adapter_speed);
    if (std::ranges::max(params.levels->own_class()) > 0) add_own(params.topology->nvlink_speed);
}

void RegionTree::add_own(std::span<const double> speeds) {
    for (const std::int32_t machine : machines_)
        own_.push_back(speeds[index(machine)] * static_cast<double>(params_.units.size));
}

std::int64_t RegionTree::total_room() const {
    return std::accumulate(room_.begin(), room_.end(), std::int64_t{0});
}

bool RegionTree::have_equal_room() const {
    return std::ranges::all_of(room_, [&](std::int32_t one) { return one == room_.front(); });
}

std::vector<std::vector<std::int32_t>> RegionTree::first_leaves() const {
    std::vector<std::vector<std::int32_t>> found(params_.levels->size() - 1);
    for (std::size_t domain = 1; domain < tree_.parent.size(); ++domain) {
        std::size_t level = 0;
        while (static_cast<std::int64_t>(domain) >= tree_.level_ends[level + 1]) ++level;
        if (level < found.size()) found[level].push_back(static_cast<std::int32_t>(tree_.first_leaf[domain]));
    }
    return found;
}

std::vector<std::int32_t> RegionTree::start() const {
    std::vector<std::int32_t> leaf_of(index(params_.topology->machines.size()), kAbsent), found, left = room_;
    for (std::size_t leaf = 0; leaf < machines_.size(); ++leaf)
        leaf_of[index(machines_[leaf])] = static_cast<std::int32_t>(leaf);
    const std::size_t size = index(params_.units.size);
    for (std::size_t i = 0; i < params_.units.tasks.size(); i += size) {
        const auto unit = params_.units.tasks.subspan(i, size);
        const std::int32_t machine = params_.start[index(unit.front())];
        const bool is_together = std::ranges::all_of(
            unit, [&](std::int32_t task) { return params_.start[index(task)] == machine; });
        const std::int32_t leaf = leaf_of[index(machine)];
        if (!is_together || leaf == kAbsent || --left[index(leaf)] < 0) return {};
        found.push_back(leaf);
    }
    return found;
}

std::vector<std::int32_t> RegionTree::confined(std::span<const std::int32_t> start) const {
    const std::vector<std::int32_t> unit_of = unit_of_tasks(params_.units);
    std::vector<std::int32_t> found(start.size(), 0);
    for (const Together& one : params_.together) {
        const auto& domains = (*params_.levels)[one.level].domains;
        const auto domain = [&](std::int32_t task) {
            return domains[index(machines_[index(start[index(unit_of[index(task)])])])];
        };
        const std::int64_t first = domain(one.tasks.front());
        if (!std::ranges::all_of(one.tasks, [&](std::int32_t task) { return domain(task) == first; }))
            continue;
        for (const std::int32_t task : one.tasks) {
            std::int32_t& depth = found[index(unit_of[index(task)])];
            depth = std::max(depth, static_cast<std::int32_t>(one.level) + 1);
        }
    }
    return found;
}

std::vector<double> RegionTree::others() const {
    std::vector<double> found;
    if (params_.others == nullptr) return found;
    for (const double most : largest_flows(params_.job, params_.units)) {
        found.push_back(0.0);
        each_domain([&](std::size_t level, std::int32_t machine) {
            found.push_back(params_.levels->others_on_uplinks(level, machine, *params_.others, most));
        });
    }
    return found;
}

}  // namespace topoplace::decide
