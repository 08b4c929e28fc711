// The time of a mapping by the definition: every edge on its own, with no table that the search uses.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "topoplace/tree_mapping.hpp"
#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {
namespace {

using Path = std::vector<std::int32_t>;  // the domains from a leaf to the root

// The path of each leaf.
std::vector<Path> paths_of(const TreeParams& tree) {
    std::vector<bool> has_children(tree.parent.size(), false);
    for (std::size_t i = 1; i < tree.parent.size(); ++i) {
        has_children[static_cast<std::size_t>(tree.parent[i])] = true;
    }
    std::vector<Path> paths;
    for (std::size_t i = 0; i < tree.parent.size(); ++i) {
        if (has_children[i]) continue;
        Path path;
        for (auto domain = static_cast<std::int32_t>(i); domain >= 0;
             domain = tree.parent[static_cast<std::size_t>(domain)]) {
            path.push_back(domain);
        }
        paths.push_back(path);
    }
    return paths;
}

// GB through each port, (kind, number): an own port by its class from 1 on and its item, an uplink by 0 and
// its domain.
using Amounts = std::map<std::pair<std::int32_t, std::int32_t>, double>;

void add_edge(const TreeParams& tree, const Path& here, const Path& there, std::int32_t one,
              std::int32_t other, double half, Amounts& amounts) {
    std::size_t below = 0;
    while (here[below] != there[below]) ++below;
    if (below == 0) return;
    const std::size_t depth = here.size() - 1 - below;
    const std::int32_t own = 1 + tree.own_class[depth];
    amounts[{own, one}] += half;
    amounts[{own, other}] += half;
    for (std::size_t i = 0; i < below; ++i) {
        amounts[{0, here[i]}] += half;
        amounts[{0, there[i]}] += half;
    }
}

// others: GB of other jobs on each uplink; empty for none.
TreeTime phase_time(const TreeParams& tree, const Amounts& amounts, std::span<const std::int32_t> leaf_of,
                    std::span<const double> others) {
    TreeTime time;
    for (const auto& [port, half] : amounts) {
        const auto [kind, number] = port;
        const auto index = static_cast<std::size_t>(number);
        const auto of_class = static_cast<std::size_t>(kind - 1) * tree.room.size();
        const double speed =
            kind == 0 ? tree.uplink[index] : tree.own[of_class + static_cast<std::size_t>(leaf_of[index])];
        if (speed <= 0.0) continue;
        const double beside = kind == 0 && half > 0.0 && !others.empty() ? others[index] : 0.0;
        time.seconds = std::max(time.seconds, (half + beside) / speed);
        if (kind == 0) time.port_seconds += half / speed;
    }
    return time;
}

bool differ(double time, double claimed) { return !(std::abs(time - claimed) <= 1e-9 * time); }

}  // namespace

TreeTime tree_time(const TreeMapParams& params, std::span<const std::int32_t> leaf_of) {
    const std::vector<Path> paths = paths_of(params.tree);
    const auto path = [&](std::int32_t item) -> const Path& {
        return paths[static_cast<std::size_t>(leaf_of[static_cast<std::size_t>(item)])];
    };
    TreeTime sum;
    std::size_t i = 0;
    std::span<const double> others = params.items.others;
    for (const std::int64_t end : params.items.phase_ends) {
        Amounts amounts;
        for (; i < static_cast<std::size_t>(end); ++i) {
            const std::int32_t one = params.items.from[i], other = params.items.to[i];
            add_edge(params.tree, path(one), path(other), one, other, params.items.gigabytes[i] / 2, amounts);
        }
        const std::size_t domains = std::min(others.size(), params.tree.parent.size());
        const TreeTime phase = phase_time(params.tree, amounts, leaf_of, others.first(domains));
        others = others.subspan(domains);
        sum.seconds += phase.seconds;
        sum.port_seconds += phase.port_seconds;
    }
    return sum;
}

Fault verify_tree_mapping(const TreeMapParams& params, std::span<const std::int32_t> leaf_of,
                          const TreeTime& claimed) {
    TOPOPLACE_ASSERT(!check(params));
    const std::size_t items = static_cast<std::size_t>(params.items.num_items);
    if (leaf_of.size() != items) return "leaf_of has " + std::to_string(leaf_of.size()) + " entries";
    std::vector<std::int64_t> used(params.tree.room.size(), 0);
    const std::vector<Path> paths = paths_of(params.tree);
    for (std::size_t i = 0; i < items; ++i) {
        if (leaf_of[i] < 0 || static_cast<std::size_t>(leaf_of[i]) >= used.size()) {
            return "leaf_of[" + std::to_string(i) + "] = " + std::to_string(leaf_of[i]) + " is no leaf";
        }
        const auto leaf = static_cast<std::size_t>(leaf_of[i]);
        if (++used[leaf] > params.tree.room[leaf])
            return "leaf " + std::to_string(leaf) + " is over its room";
        if (params.items.confined.empty() || params.items.start.empty()) continue;
        const Path& first = paths[static_cast<std::size_t>(params.items.start[i])];
        const auto level = first.size() - 1 - static_cast<std::size_t>(params.items.confined[i]);
        if (first[level] != paths[leaf][level]) return "item " + std::to_string(i) + " left its domain";
    }
    const TreeTime time = tree_time(params, leaf_of);
    if (differ(time.seconds, claimed.seconds)) return "takes " + std::to_string(time.seconds) + " s";
    if (differ(time.port_seconds, claimed.port_seconds)) {
        return "takes " + std::to_string(time.port_seconds) + " port-seconds";
    }
    return std::nullopt;
}

}  // namespace topoplace::tree_mapping
