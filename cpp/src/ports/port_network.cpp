// Routes of a port network, and the checks of its parameters.
#include "topoplace/port_network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace topoplace::ports {
namespace {

std::string wrong(const char* name, std::size_t i, const std::string& value, const char* rule) {
    return std::string(name) + "[" + std::to_string(i) + "] = " + value + ": " + rule;
}

// So many, each from `low` to below `count`.
struct Entries {
    const char* name;
    std::span<const std::int32_t> values;
    std::size_t size;
    std::int32_t low;
    std::size_t count;
};

Fault check_entries(const Entries& given) {
    const auto& [name, values, size, low, count] = given;
    if (values.size() != size) {
        return std::string(name) + " has " + std::to_string(values.size()) + " entries, not " +
               std::to_string(size);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < low || (values[i] >= 0 && static_cast<std::size_t>(values[i]) >= count))
            return wrong(name, i, std::to_string(values[i]), "out of range");
    }
    return std::nullopt;
}

Fault check_links(const NetworkParams& params) {
    const auto links = params.links;
    const auto n = static_cast<std::size_t>(params.num_vertices);
    if (links.size() != params.is_slower.size() * 3) {
        return "links has " + std::to_string(links.size()) + " entries, not " +
               std::to_string(params.is_slower.size() * 3);
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
        const std::size_t count = i % 3 == 2 ? params.gb_per_s.size() : n;
        if (links[i] < 0 || static_cast<std::size_t>(links[i]) >= count)
            return wrong("links", i / 3, std::to_string(links[i]), "out of range");
    }
    for (std::size_t i = 0; i < links.size(); i += 3) {
        const bool repeats =
            i > 0 && (links[i] < links[i - 3] || (links[i] == links[i - 3] && links[i + 1] <= links[i - 2]));
        if (links[i] >= links[i + 1] || repeats) {
            return wrong("links", i / 3, std::to_string(links[i]) + ", " + std::to_string(links[i + 1]),
                         "pairs are ascending and sorted");
        }
    }
    return std::nullopt;
}

template <class T>
std::vector<T> copy_of(std::span<const T> values) {
    return {values.begin(), values.end()};
}

}  // namespace

Fault PortNetwork::check(const NetworkParams& params) {
    if (params.num_vertices < 0)
        return wrong("num_vertices", 0, std::to_string(params.num_vertices), "below 0");
    const auto n = static_cast<std::size_t>(params.num_vertices);
    const std::size_t levels = params.segment_of.size(), ports = params.gb_per_s.size();
    const std::size_t segments = n == 0 ? 0 : params.entry.size() / n;
    const std::size_t lanes = params.group.empty() && params.lane.empty() ? 0 : n;
    constexpr auto kMost = static_cast<std::size_t>(INT32_MAX);
    const std::array<Entries, 7> given{{
        {"entry", params.entry, segments * n, kNone, ports},
        {"segment_of", params.segment_of, levels, 0, segments},
        {"domain", params.domain, levels * n, kNone, kMost},
        {"uplink", params.uplink, levels * n, kNone, ports},
        {"access", params.access, params.access.empty() ? 0 : n, kNone, ports},
        {"group", params.group, lanes, kNone, kMost},
        {"lane", params.lane, lanes, kNone, kMost},
    }};
    for (const Entries& entries : given) {
        if (auto fault = check_entries(entries)) return fault;
    }
    if (!std::ranges::is_sorted(params.segment_of)) return "segment_of is not sorted";
    if (auto fault = check_links(params)) return fault;
    for (std::size_t i = 0; i < ports; ++i) {
        if (!(params.gb_per_s[i] >= 0.0) || std::isinf(params.gb_per_s[i])) {
            return wrong("gb_per_s", i, std::to_string(params.gb_per_s[i]),
                         "not a finite number of 0 or above");
        }
    }
    return std::nullopt;
}

PortNetwork::PortNetwork(const NetworkParams& params) : num_vertices_(params.num_vertices) {
    TOPOPLACE_ASSERT(!check(params));
    gb_per_s_ = copy_of(params.gb_per_s);
    entry_ = copy_of(params.entry);
    segment_of_ = copy_of(params.segment_of);
    domain_ = copy_of(params.domain);
    uplink_ = copy_of(params.uplink);
    is_slower_ = copy_of(params.is_slower);
    access_ = copy_of(params.access);
    is_uplink_.assign(gb_per_s_.size(), 0);
    for (const std::int32_t port : uplink_) {
        if (port != kNone) is_uplink_[static_cast<std::size_t>(port)] = 1;
    }
    first_link_.assign(static_cast<std::size_t>(num_vertices_) + 1, 0);
    for (std::size_t i = 0; i < params.links.size(); i += 3) {
        ++first_link_[static_cast<std::size_t>(params.links[i]) + 1];
        link_end_.push_back(params.links[i + 1]);
        link_port_.push_back(params.links[i + 2]);
    }
    for (std::size_t i = 1; i < first_link_.size(); ++i) first_link_[i] += first_link_[i - 1];
    add_relays(params);
}

void PortNetwork::add_relays(const NetworkParams& params) {
    group_ = copy_of(params.group);
    lane_ = copy_of(params.lane);
    for (std::int32_t vertex = 0; vertex < num_vertices_ && !group_.empty(); ++vertex) {
        const auto place = static_cast<std::size_t>(vertex);
        if (group_[place] != kNone) relays_.push_back({group_[place], lane_[place], vertex});
    }
    std::ranges::sort(relays_);
}

std::size_t PortNetwork::link_between(std::int32_t from, std::int32_t to) const {
    const auto low = static_cast<std::size_t>(std::min(from, to));
    const auto begin = link_end_.begin() + first_link_[low], end = link_end_.begin() + first_link_[low + 1];
    const auto found = std::lower_bound(begin, end, std::max(from, to));
    const bool exists = found != end && *found == std::max(from, to);
    return exists ? static_cast<std::size_t>(found - link_end_.begin()) : link_end_.size();
}

// The first level at which both vertices are in one domain and can enter; the number of levels if there is
// none.
std::size_t PortNetwork::meeting(std::int32_t from, std::int32_t to) const {
    std::size_t level = 0;
    for (; level < segment_of_.size(); ++level) {
        const std::int32_t domain = domain_[at(level, from)];
        if (domain == kNone || domain != domain_[at(level, to)]) continue;
        const auto segment = static_cast<std::size_t>(segment_of_[level]);
        if (entry_[at(segment, from)] != kNone && entry_[at(segment, to)] != kNone) break;
    }
    return level;
}

// Appends the ports between a vertex and the level at which it meets the other one.
void PortNetwork::climb(std::size_t level, std::int32_t vertex, std::int32_t other, Hop direction,
                        std::vector<Hop>& hops) const {
    const std::int32_t segment = segment_of_[level];
    enter(level, vertex, direction, hops);
    for (std::size_t below = level; below-- > 0 && segment_of_[below] == segment;) {
        const std::int32_t port = uplink_[at(below, vertex)];
        if (port != kNone && port != uplink_[at(below, other)]) hops.push_back(2 * port + direction);
    }
}

// Appends the ports between a vertex and the segment of a level.
void PortNetwork::enter(std::size_t level, std::int32_t vertex, Hop direction, std::vector<Hop>& hops) const {
    const std::int32_t segment = segment_of_[level];
    if (!access_.empty() && segment == segment_of_.back()) {
        const std::int32_t port = access_[static_cast<std::size_t>(vertex)];
        if (port != kNone) hops.push_back(2 * port + direction);
    }
    hops.push_back(2 * entry_[at(static_cast<std::size_t>(segment), vertex)] + direction);
}

std::int32_t PortNetwork::num_approaches() const {
    const std::size_t levels = segment_of_.size();
    const bool has_others = !link_end_.empty() || has_relays() || levels > kMostLevels;
    return has_others ? 0 : static_cast<std::int32_t>(levels << levels);
}

// The level at which they meet, and a bit for each level below where their uplinks differ.
std::int32_t PortNetwork::approach(std::int32_t from, std::int32_t to) const {
    const std::size_t level = meeting(from, to);
    if (level == segment_of_.size()) return kNone;
    std::size_t bits = 0;
    for (std::size_t below = level; below-- > 0 && segment_of_[below] == segment_of_[level];) {
        if (uplink_[at(below, from)] != uplink_[at(below, to)]) bits |= std::size_t{1} << below;
    }
    return static_cast<std::int32_t>((level << segment_of_.size()) | bits);
}

void PortNetwork::approach_hops(std::int32_t approach, std::int32_t vertex, std::vector<Hop>& hops) const {
    const auto number = static_cast<std::size_t>(approach);
    const std::size_t level = number >> segment_of_.size();
    enter(level, vertex, 0, hops);
    for (std::size_t below = 0; below < level; ++below) {
        const std::int32_t port = uplink_[at(below, vertex)];
        if ((number >> below & 1U) != 0 && port != kNone) hops.push_back(2 * port);
    }
}

// The vertex through which one vertex sends to another; kNone for none.
std::int32_t PortNetwork::relay_between(std::int32_t from, std::int32_t to) const {
    const auto here = static_cast<std::size_t>(from), there = static_cast<std::size_t>(to);
    const bool is_crossing = group_[here] != kNone && group_[there] != kNone &&
                             group_[here] != group_[there] && lane_[here] != lane_[there];
    if (!is_crossing || is_before_last(meeting(from, to))) return kNone;
    const Relay wanted{group_[here], lane_[there], 0};
    const auto found = std::ranges::lower_bound(relays_, wanted);
    if (found == relays_.end() || found->group != wanted.group || found->lane != wanted.lane) return kNone;
    const bool is_near = is_before_last(meeting(from, found->vertex));
    return is_near && meeting(found->vertex, to) < segment_of_.size() ? found->vertex : kNone;
}

// Whether a level is of a segment before the last.
bool PortNetwork::is_before_last(std::size_t level) const {
    return level < segment_of_.size() && segment_of_[level] < segment_of_.back();
}

bool PortNetwork::route(std::int32_t from, std::int32_t to, std::vector<Hop>& hops) const {
    const std::int32_t relay = relays_.empty() ? kNone : relay_between(from, to);
    if (relay == kNone) return direct_route(from, to, hops);
    return direct_route(from, relay, hops) && direct_route(relay, to, hops);
}

bool PortNetwork::direct_route(std::int32_t from, std::int32_t to, std::vector<Hop>& hops) const {
    if (from == to) return true;
    const std::size_t link = link_between(from, to);
    const bool has_link = link < link_end_.size();
    if (has_link) {
        hops.push_back(2 * link_port_[link] + (from < to ? 0 : 1));
        if (is_slower_[link] == 0) return true;
    }
    const std::size_t level = meeting(from, to);
    if (level == segment_of_.size()) return has_link;
    climb(level, from, to, 0, hops);
    climb(level, to, from, 1, hops);
    return true;
}

}  // namespace topoplace::ports
