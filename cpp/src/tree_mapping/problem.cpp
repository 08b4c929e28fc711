// Checks the parameters of a tree mapping.
#include "tree_mapping/problem.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace topoplace::tree_mapping {
namespace {

template <class T>
std::string wrong(const char* name, std::size_t i, T value, const char* rule) {
    return std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) + ": " + rule;
}

Fault check_size(const char* name, std::size_t size, std::uint64_t expected) {
    if (size == expected) return std::nullopt;
    return std::string(name) + " has " + std::to_string(size) + " entries, not " + std::to_string(expected);
}

Fault check_range(const char* name, std::span<const Index> values, Index low, Index high) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < low || values[i] > high) return wrong(name, i, values[i], "out of range");
    }
    return std::nullopt;
}

constexpr std::uint64_t kStepsPerEnd = 50;  // of `WorkMeter`, each a fifth of a nanosecond
constexpr double kMostPorts = 1 << 28;      // a number is kept for each, in each phase

// GB are 0 or above; speeds are such that no time is infinite, and 0 where that is no limit.
Fault check_gigabytes(const char* name, std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] >= 0.0 && values[i] <= 1e18)) return wrong(name, i, values[i], "not in 0..1e18");
    }
    return std::nullopt;
}
Fault check_speeds(const char* name, std::span<const double> values, bool may_be_zero) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] >= 1e-18 && values[i] <= 1e18) continue;
        if (!may_be_zero || values[i] != 0.0) return wrong(name, i, values[i], "not in 1e-18..1e18");
    }
    return std::nullopt;
}

template <class T>
std::vector<T> copy_of(std::span<const T> values) {
    return {values.begin(), values.end()};
}

Fault check_phases(std::span<const std::int64_t> ends, std::size_t edges) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] < last) return wrong("phase_ends", i, ends[i], "descends");
        last = ends[i];
    }
    if (static_cast<std::size_t>(last) == edges) return std::nullopt;
    return "phase_ends ends at " + std::to_string(last) + " of " + std::to_string(edges) + " edges";
}

Fault check_exchanges(const ItemParams& given) {
    if (given.num_items < 0) return wrong("num_items", 0, given.num_items, "below 0");
    if (auto fault = check_size("end of exchanges", given.to.size(), given.from.size())) return fault;
    if (auto fault = check_size("gigabytes", given.gigabytes.size(), given.from.size())) return fault;
    if (auto fault = check_range("start of exchanges", given.from, 0, given.num_items - 1)) return fault;
    if (auto fault = check_range("end of exchanges", given.to, 0, given.num_items - 1)) return fault;
    if (auto fault = check_gigabytes("gigabytes", given.gigabytes)) return fault;
    return check_phases(given.phase_ends, given.from.size());
}

}  // namespace

Fault check(const TreeMapParams& params) { return Problem::check(params); }

Fault Problem::check(const TreeMapParams& params) { return Problem().read(params); }

Problem::Problem(const TreeMapParams& params) {
    [[maybe_unused]] const Fault fault = read(params);
    TOPOPLACE_ASSERT(!fault);
}

Fault Problem::read(const TreeMapParams& params) {
    if (auto fault = read_tree(params.tree)) return fault;
    return read_items(params.items);
}

Fault Problem::read_tree(const TreeParams& tree) {
    parent = copy_of(tree.parent);
    if (parent.empty() || parent[0] != -1) return "parent[0] is not -1";
    children.resize(parent.size());
    for (std::size_t i = 1; i < parent.size(); ++i) {
        if (parent[i] < 0 || at(parent[i]) >= i)
            return wrong("parent", i, parent[i], "not below the domain's number");
        children[at(parent[i])].push_back(static_cast<Index>(i));
    }
    room = copy_of(tree.room);
    if (auto fault = check_range("room", tree.room, 0, INT32_MAX)) return fault;
    if (auto fault = read_depths()) return fault;
    return read_speeds(tree);
}

Fault Problem::read_speeds(const TreeParams& tree) {
    if (auto fault = check_size("uplink", tree.uplink.size(), parent.size())) return fault;
    if (auto fault = check_speeds("uplink", tree.uplink, true)) return fault;
    port_of.assign(parent.size(), -1);
    for (std::size_t i = 1; i < parent.size(); ++i) {
        if (tree.uplink[i] <= 0.0) continue;
        port_of[i] = ports();
        per_gb.push_back(1.0 / tree.uplink[i]);
    }
    if (auto fault = check_size("own_class", tree.own_class.size(), at(depth))) return fault;
    classes = static_cast<Index>(tree.own.size() / at(leaves));
    if (auto fault = check_size("own", tree.own.size(), at(classes) * at(leaves))) return fault;
    if (auto fault = check_range("own_class", tree.own_class, 0, classes - 1)) return fault;
    own_class = copy_of(tree.own_class);
    if (auto fault = check_speeds("own", tree.own, false)) return fault;
    for (const double speed : tree.own) own_per_gb.push_back(1.0 / speed);
    return std::nullopt;
}

Fault Problem::read_depths() {
    std::vector<Index> depth_of(parent.size(), 0);
    leaf_of_domain.assign(parent.size(), -1);
    for (std::size_t i = 0; i < parent.size(); ++i) {
        if (i > 0) depth_of[i] = depth_of[at(parent[i])] + 1;
        if (depth_of[i] > kMaxDepth)
            return wrong("parent", i, parent[i], "the tree is deeper than 64 domains");
        if (!children[i].empty()) continue;
        if (leaves == 0) depth = depth_of[i];
        if (depth_of[i] != depth) return wrong("parent", i, parent[i], "leaves have different depths");
        leaf_of_domain[i] = leaves++;
    }
    if (auto fault = check_size("room", room.size(), at(leaves))) return fault;
    above.assign(at(depth) + 1, std::vector<Index>(at(leaves)));
    for (std::size_t i = 0; i < parent.size(); ++i) {
        if (leaf_of_domain[i] < 0) continue;
        auto domain = static_cast<Index>(i);
        for (Index level = depth; level >= 0; --level) {
            above[at(level)][at(leaf_of_domain[i])] = domain;
            domain = parent[at(domain)];
        }
    }
    return std::nullopt;
}

Fault Problem::read_items(const ItemParams& given) {
    if (auto fault = check_exchanges(given)) return fault;
    items = given.num_items;
    for (const std::int64_t end : given.phase_ends) {  // phases without edges take no time
        if (end > (phase_ends.empty() ? 0 : phase_ends.back())) phase_ends.push_back(end);
    }
    phases = static_cast<Index>(phase_ends.size());
    if (auto fault = read_start(given)) return fault;
    if (auto fault = read_others(given)) return fault;
    has_enough_room = std::accumulate(room.begin(), room.end(), std::int64_t{0}) >= items;
    if (!has_enough_room) return std::nullopt;
    const double width = static_cast<double>(classes) * items + ports();
    if (std::max<double>(items, width * phases) > kMostPorts ||
        static_cast<double>(given.from.size()) > kMostPorts) {
        return wrong("num_items", 0, items, "more than 2^28 edges, or ports in all phases");
    }
    from = given.from;
    to = given.to;
    gigabytes = given.gigabytes;
    if (confined.empty()) confined.assign(at(items), 0);
    if (auto fault = check_room_of_start()) return fault;
    return check_ends();
}

Fault Problem::read_start(const ItemParams& given) {
    start = copy_of(given.start);
    confined = copy_of(given.confined);
    if (!start.empty()) {
        if (auto fault = check_size("start", start.size(), at(items))) return fault;
    }
    if (auto fault = check_range("start", start, 0, leaves - 1)) return fault;
    if (!confined.empty()) {
        if (auto fault = check_size("confined", confined.size(), at(items))) return fault;
    }
    if (auto fault = check_range("confined", confined, 0, depth)) return fault;
    if (start.empty() && !confined.empty()) return "confined needs start";
    return std::nullopt;
}

Fault Problem::read_others(const ItemParams& given) {
    busy.assign(parent.size(), 0.0);
    const std::uint64_t phases_given = given.others.empty() ? 0 : given.phase_ends.size();
    if (auto fault = check_size("others", given.others.size(), phases_given * parent.size())) return fault;
    if (auto fault = check_gigabytes("others", given.others)) return fault;
    const bool is_used = std::ranges::any_of(given.others, [](double gb) { return gb > 0.0; });
    if (!is_used) return std::nullopt;
    others.assign(at(phases) * at(ports()), 0.0);
    std::size_t phase = 0;
    for (std::size_t row = 0; row < given.phase_ends.size(); ++row) {
        if (given.phase_ends[row] == (row == 0 ? 0 : given.phase_ends[row - 1])) continue;
        for (std::size_t domain = 1; domain < parent.size(); ++domain) {
            if (port_of[domain] < 0) continue;
            const auto port = at(port_of[domain]);
            const double seconds = given.others[row * parent.size() + domain] * per_gb[port];
            others[phase * per_gb.size() + port] = seconds;
            busy[domain] += seconds;
        }
        ++phase;
    }
    return std::nullopt;
}

Fault Problem::check_room_of_start() const {
    std::vector<Index> used(at(leaves), 0);
    for (std::size_t i = 0; i < start.size(); ++i) {
        if (++used[at(start[i])] > room[at(start[i])])
            return wrong("start", i, start[i], "has no room for so many");
    }
    return std::nullopt;
}

Fault Problem::check_ends() const {
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] == to[i]) return wrong("end of exchanges", i, to[i], "joins an item with itself");
    }
    return std::nullopt;
}

bool Problem::list_neighbours(WorkMeter& meter) {
    first.assign(at(items) + 1, 0);
    for (std::size_t i = 0; i < from.size(); ++i) {
        ++first[at(from[i]) + 1];
        ++first[at(to[i]) + 1];
    }
    if (meter.pass_time(kStepsPerEnd * from.size())) return false;
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    neighbours = std::make_unique_for_overwrite<Neighbour[]>(2 * from.size());
    std::vector<Index> next(first.begin(), first.end() - 1);
    Index phase = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (meter.pass_time(kStepsPerEnd)) break;
        while (static_cast<std::int64_t>(i) >= phase_ends[at(phase)]) ++phase;
        neighbours[at(next[at(from[i])]++)] = {to[i], phase, half(i)};
        neighbours[at(next[at(to[i])]++)] = {from[i], phase, half(i)};
    }
    if (meter.stopped()) neighbours.reset();
    return !meter.stopped();
}

}  // namespace topoplace::tree_mapping
