// Checks a packing by the definition alone; shares no code with the search.
#include <algorithm>
#include <cstddef>

#include "graph/index.hpp"
#include "topoplace/group_packing.hpp"

namespace topoplace::groups {
namespace {

// The domain of this depth in which a leaf is; kAbsent if the leaf's depth is smaller.
std::int32_t domain_at(std::int32_t depth, std::int32_t leaf, const PackParams& params) {
    std::vector<std::int32_t> way;
    for (std::int32_t domain = leaf; domain != kAbsent; domain = params.parent[index(domain)]) {
        way.push_back(domain);
    }
    return index(depth) < way.size() ? way[way.size() - 1 - index(depth)] : kAbsent;
}

std::int32_t depth_of(std::int32_t domain, const PackParams& params) {
    std::int32_t depth = 0;
    while ((domain = params.parent[index(domain)]) != kAbsent) ++depth;
    return depth;
}

Fault fault_of(const Share& share, const PackParams& params) {
    if (share.group < 0 || index(share.group) >= params.group_parent.size())
        return "a group that is not there";
    if (share.leaf < 0 || index(share.leaf) >= params.parent.size()) return "a domain that is not there";
    for (const std::int32_t parent : params.parent) {
        if (parent == share.leaf) return "tasks on a domain that is no leaf";
    }
    if (share.tasks <= 0) return "a share without tasks";
    return std::nullopt;
}

// True if one task of a share could move to another leaf, so that the loads of two domains with tasks are
// closer.
bool is_uneven(const Share& share, const PackParams& params, std::span<const std::int64_t> load,
               std::span<const std::int32_t> home) {
    const std::int32_t from = domain_at(params.balanced, share.leaf, params);
    for (std::int32_t leaf = 0; index(leaf) < params.parent.size(); ++leaf) {
        const std::int32_t to = domain_at(params.balanced, leaf, params);
        if (to == kAbsent || load[index(to)] == 0 || load[index(to)] + 1 >= load[index(from)]) continue;
        if (domain_at(params.group_depth[index(share.group)], leaf, params) != home[index(share.group)])
            continue;
        if (std::find(params.parent.begin(), params.parent.end(), leaf) != params.parent.end()) continue;
        bool has_room = true;
        for (std::int32_t i = leaf; i != kAbsent; i = params.parent[index(i)]) {
            const bool keeps_task = i == domain_at(depth_of(i, params), share.leaf, params);
            has_room = has_room && (keeps_task || load[index(i)] < params.room[index(i)]);
        }
        if (has_room) return true;
    }
    return false;
}

}  // namespace

Fault verify_packing(const PackParams& params, std::span<const Share> shares) {
    std::vector<std::int64_t> placed(params.group_parent.size(), 0);
    std::vector<std::int64_t> load(params.parent.size(), 0);
    std::vector<std::int32_t> home(placed.size(), kAbsent);
    for (const Share& share : shares) {
        if (const Fault fault = fault_of(share, params)) return fault;
        placed[index(share.group)] += share.tasks;
        for (std::int32_t i = share.leaf; i != kAbsent; i = params.parent[index(i)])
            load[index(i)] += share.tasks;
        for (std::int32_t group = share.group; group != kAbsent; group = params.group_parent[index(group)]) {
            const std::int32_t here = domain_at(params.group_depth[index(group)], share.leaf, params);
            if (home[index(group)] == kAbsent) home[index(group)] = here;
            if (here == kAbsent || home[index(group)] != here) return "a group in several domains";
        }
    }
    for (std::size_t group = 0; group < placed.size(); ++group) {
        if (placed[group] != params.own_tasks[group]) return "not all tasks of a group";
    }
    for (std::size_t domain = 0; domain < load.size(); ++domain) {
        if (load[domain] > params.room[domain]) return "a domain with more tasks than room";
    }
    for (const Share& share : shares) {
        if (params.balanced >= 0 && is_uneven(share, params, load, home)) return "shares that are not even";
    }
    return std::nullopt;
}

}  // namespace topoplace::groups
