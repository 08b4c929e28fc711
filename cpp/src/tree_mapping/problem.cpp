// Checks the parameters of a tree mapping.
#include "tree_mapping/problem.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace topoplace::tree_mapping {
namespace {

template <class T>
[[noreturn]] void refuse(const char* name, std::size_t i, T value, const char* rule) {
    throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) +
                                ": " + rule);
}

void check_size(const char* name, std::size_t size, std::size_t expected) {
    if (size != expected) {
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(size) + " entries, not " +
                                    std::to_string(expected));
    }
}

void check_range(const char* name, std::span<const Index> values, Index low, Index high) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < low || values[i] > high) refuse(name, i, values[i], "out of range");
    }
}

void check_reals(const char* name, std::span<const double> values, bool may_be_zero) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_good = may_be_zero ? values[i] >= 0.0 : values[i] > 0.0;
        if (!is_good || values[i] > 1e18) refuse(name, i, values[i], "out of range");
    }
}

template <class T>
std::vector<T> copy_of(std::span<const T> values) {
    return {values.begin(), values.end()};
}

void check_phases(std::span<const std::int64_t> ends, std::size_t edges) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] < last) refuse("phase_ends", i, ends[i], "descends");
        last = ends[i];
    }
    if (static_cast<std::size_t>(last) != edges)
        throw std::invalid_argument("phase_ends does not end at all edges");
}

}  // namespace

Problem::Problem(const TreeMapParams& params) {
    read_tree(params.tree);
    read_items(params.items);
}

void Problem::read_tree(const TreeParams& tree) {
    parent = copy_of(tree.parent);
    if (parent.empty() || parent[0] != -1) throw std::invalid_argument("parent[0] is not -1");
    children.resize(parent.size());
    for (std::size_t i = 1; i < parent.size(); ++i) {
        if (parent[i] < 0 || at(parent[i]) >= i)
            refuse("parent", i, parent[i], "not below the domain's number");
        children[at(parent[i])].push_back(static_cast<Index>(i));
    }
    room = copy_of(tree.room);
    check_range("room", tree.room, 0, INT32_MAX);
    read_depths();
    check_size("uplink", tree.uplink.size(), parent.size());
    check_reals("uplink", tree.uplink, true);
    port_of.assign(parent.size(), -1);
    for (std::size_t i = 1; i < parent.size(); ++i) {
        if (tree.uplink[i] <= 0.0) continue;
        port_of[i] = ports();
        per_gb.push_back(1.0 / tree.uplink[i]);
    }
    check_size("own_class", tree.own_class.size(), at(depth));
    classes = depth == 0 ? 0 : 1 + *std::ranges::max_element(tree.own_class);
    check_range("own_class", tree.own_class, 0, classes - 1);
    own_class = copy_of(tree.own_class);
    check_size("own", tree.own.size(), at(classes) * at(leaves));
    check_reals("own", tree.own, false);
    for (const double speed : tree.own) own_per_gb.push_back(1.0 / speed);
}

void Problem::read_depths() {
    std::vector<Index> depth_of(parent.size(), 0);
    leaf_of_domain.assign(parent.size(), -1);
    for (std::size_t i = 0; i < parent.size(); ++i) {
        if (i > 0) depth_of[i] = depth_of[at(parent[i])] + 1;
        if (depth_of[i] > kMaxDepth) refuse("parent", i, parent[i], "the tree is deeper than 1000 domains");
        if (!children[i].empty()) continue;
        if (leaves == 0) depth = depth_of[i];
        if (depth_of[i] != depth) refuse("parent", i, parent[i], "leaves have different depths");
        leaf_of_domain[i] = leaves++;
    }
    check_size("room", room.size(), at(leaves));
    above.assign(at(depth) + 1, std::vector<Index>(at(leaves)));
    for (std::size_t i = 0; i < parent.size(); ++i) {
        if (leaf_of_domain[i] < 0) continue;
        auto domain = static_cast<Index>(i);
        for (Index level = depth; level >= 0; --level) {
            above[at(level)][at(leaf_of_domain[i])] = domain;
            domain = parent[at(domain)];
        }
    }
}

void Problem::read_items(const ItemParams& given) {
    items = given.num_items;
    if (items < 0) refuse("num_items", 0, items, "below 0");
    check_size("to", given.to.size(), given.from.size());
    check_size("gigabytes", given.gigabytes.size(), given.from.size());
    check_range("from", given.from, 0, items - 1);
    check_range("to", given.to, 0, items - 1);
    check_reals("gigabytes", given.gigabytes, true);
    check_phases(given.phase_ends, given.from.size());
    phase_ends = copy_of(given.phase_ends);
    phases = static_cast<Index>(phase_ends.size());
    from = copy_of(given.from);
    to = copy_of(given.to);
    for (const double both : given.gigabytes) half.push_back(both / 2);
    confined = copy_of(given.confined);
    if (confined.empty()) confined.assign(at(items), 0);
    check_size("confined", confined.size(), at(items));
    check_range("confined", confined, 0, depth);
    start = copy_of(given.start);
    if (!start.empty()) check_size("start", start.size(), at(items));
    check_range("start", start, 0, leaves - 1);
    list_neighbours();
}

void Problem::list_neighbours() {
    first.assign(at(items) + 1, 0);
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] == to[i]) refuse("to", i, to[i], "joins an item with itself");
        ++first[at(from[i]) + 1];
        ++first[at(to[i]) + 1];
    }
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    neighbours.resize(2 * from.size());
    std::vector<Index> next(first.begin(), first.end() - 1);
    Index phase = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        while (static_cast<std::int64_t>(i) >= phase_ends[at(phase)]) ++phase;
        neighbours[at(next[at(from[i])]++)] = {to[i], phase, half[i]};
        neighbours[at(next[at(to[i])]++)] = {from[i], phase, half[i]};
    }
}

}  // namespace topoplace::tree_mapping
