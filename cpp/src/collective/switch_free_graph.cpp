// Edge splitting: evenly where the neighbours of a vertex are alike, otherwise by the most that each pair of
// arcs may give.
//
// With a source that feeds `per_root` into every terminal, all trees exist iff a flow of terminals * per_root
// reaches each terminal. Splitting count of u-w and w-t into u-t takes it from the cuts that separate w from
// both u and t, so the most is the slack of these cuts.
#include "collective/switch_free_graph.hpp"

#include <algorithm>
#include <numeric>

namespace topoplace::collective {

namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 60;

}  // namespace

SwitchFreeGraph::SwitchFreeGraph(std::int32_t size, std::int32_t terminals, std::int64_t per_root,
                                 WorkMeter& meter)
    : size_(size),
      terminals_(terminals),
      per_root_(per_root),
      meter_(meter),
      capacity_(index(size) * index(size), 0),
      ways_(capacity_.size()),
      arcs_(capacity_.size(), kAbsent),
      flow_(size + 1) {}

void SwitchFreeGraph::add(std::int32_t from, std::int32_t to, std::int64_t capacity, std::int32_t named_from,
                          std::int32_t named_to) {
    if (capacity == 0) return;
    capacity_[at(from, to)] += capacity;
    ways_[at(from, to)].push_back({{named_from, named_to}, capacity});
}

bool SwitchFreeGraph::split_all() {
    for (std::int32_t vertex = terminals_; vertex < size_; ++vertex) {
        if (!split_evenly(vertex) && !split_exactly(vertex)) return false;
    }
    return true;
}

std::vector<HopWay> SwitchFreeGraph::take(std::int32_t from, std::int32_t to, std::int64_t count) {
    std::vector<HopWay> taken;
    auto& ways = ways_[at(from, to)];
    capacity_[at(from, to)] -= count;
    while (count > 0) {
        HopWay& last = ways.back();
        const std::int64_t some = std::min(count, last.count);
        taken.push_back({last.vertices, some});
        last.count -= some;
        count -= some;
        if (last.count == 0) ways.pop_back();
    }
    return taken;
}

std::vector<std::int32_t> SwitchFreeGraph::neighbours(std::int32_t vertex) const {
    std::vector<std::int32_t> found;
    for (std::int32_t v = 0; v < size_; ++v) {
        if (capacity_[at(vertex, v)] > 0 || capacity_[at(v, vertex)] > 0) found.push_back(v);
    }
    return found;
}

// The neighbours of a vertex, those together that have a path without it.
std::vector<std::vector<std::int32_t>> SwitchFreeGraph::groups(std::int32_t without) const {
    std::vector<std::int32_t> left = neighbours(without);
    std::vector<std::vector<std::int32_t>> found;
    while (!left.empty()) {
        std::vector<bool> reached(index(size_), false);
        std::vector<std::int32_t> queue{left.front()};
        reached[index(left.front())] = true;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (std::int32_t v = 0; v < size_; ++v) {
                if (v == without || reached[index(v)] || capacity_[at(queue[i], v)] == 0) continue;
                reached[index(v)] = true;
                queue.push_back(v);
            }
        }
        const auto rest = std::stable_partition(left.begin(), left.end(),
                                                [&](std::int32_t v) { return reached[index(v)]; });
        found.emplace_back(left.begin(), rest);
        left.erase(left.begin(), rest);
    }
    return found;
}

// Whether groups have one size and all members this capacity from and to the vertex.
bool SwitchFreeGraph::alike(const std::vector<std::vector<std::int32_t>>& groups, std::int32_t vertex,
                            std::int64_t capacity) const {
    return std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
        return group.size() == groups.front().size() &&
               std::all_of(group.begin(), group.end(), [&](std::int32_t v) {
                   return capacity_[at(v, vertex)] == capacity && capacity_[at(vertex, v)] == capacity;
               });
    });
}

// Neighbours in groups of one size, all of one capacity: each sends equally much to every other group, or to
// every other member of the only one. What is left of a division goes to shifts that are evenly apart. Empty
// where neighbours are not alike.
std::vector<SwitchFreeGraph::Pair> SwitchFreeGraph::even_pairs(std::int32_t vertex) const {
    const auto parts = groups(vertex);
    const std::int64_t capacity = capacity_[at(vertex, parts.front().front())];
    if (!alike(parts, vertex, capacity)) return {};
    const auto members = static_cast<std::int32_t>(parts.front().size());
    const auto count = static_cast<std::int32_t>(parts.size());
    std::vector<Pair> pairs;
    // Sends `amount` from each member of a group to the one at its place in another group.
    const auto spread = [&](std::int32_t shift, std::int64_t amount) {
        for (std::int32_t group = 0; group < count && amount > 0; ++group) {
            const auto& to = parts[index((group + shift) % count)];
            for (std::size_t i = 0; i < to.size(); ++i)
                pairs.push_back({parts[index(group)][i], to[i], amount});
        }
    };
    const std::int32_t shifts = count > 1 ? count - 1 : members - 1;
    if (shifts == 0) return {};
    std::vector<std::int64_t> amounts(index(shifts) + 1, capacity / shifts);
    const std::int64_t rest = capacity % shifts;
    for (std::int64_t j = 1; j <= rest; ++j)
        ++amounts[static_cast<std::size_t>(j * (shifts + 1) / (rest + 1))];
    for (std::int32_t shift = 1; shift <= shifts; ++shift) {
        if (count > 1) {
            spread(shift, amounts[index(shift)]);
            continue;
        }
        for (std::int32_t i = 0; i < members && amounts[index(shift)] > 0; ++i) {
            pairs.push_back(
                {parts[0][index(i)], parts[0][index((i + shift) % members)], amounts[index(shift)]});
        }
    }
    return pairs;
}

bool SwitchFreeGraph::split_evenly(std::int32_t vertex) {
    if (neighbours(vertex).empty()) return true;
    const std::vector<Pair> pairs = even_pairs(vertex);
    if (pairs.empty()) return false;
    const auto capacity = capacity_;
    const auto ways = ways_;
    for (const Pair& pair : pairs) split(pair.from, vertex, pair.to, pair.count);
    if (reaches_all()) return true;
    capacity_ = capacity;
    ways_ = ways;
    return false;
}

bool SwitchFreeGraph::split_exactly(std::int32_t vertex) {
    begin_flows();
    for (const std::int32_t to : neighbours(vertex)) {
        // A way back to where it came from is given up, if anything else has been tried.
        for (const bool back : {false, true}) {
            for (const std::int32_t from : neighbours(vertex)) {
                if ((from == to) != back) continue;
                const std::int64_t most = std::min(capacity(from, vertex), capacity(vertex, to));
                if (most == 0) continue;
                if (meter_.visit()) return false;
                split(from, vertex, to, slack(from, vertex, to, most));
            }
        }
    }
    return true;
}

void SwitchFreeGraph::split(std::int32_t from, std::int32_t over, std::int32_t to, std::int64_t count) {
    if (count == 0) return;
    std::vector<HopWay> first = take(from, over, count);
    std::vector<HopWay> second = take(over, to, count);
    if (from == to) return;
    capacity_[at(from, to)] += count;
    if (!in_use_.empty()) arc(from, to);
    auto& ways = ways_[at(from, to)];
    for (std::size_t i = 0, j = 0; i < first.size() && j < second.size();) {
        const std::int64_t some = std::min(first[i].count, second[j].count);
        HopWay way{first[i].vertices, some};
        way.vertices.insert(way.vertices.end(), second[j].vertices.begin() + 1, second[j].vertices.end());
        ways.push_back(std::move(way));
        if ((first[i].count -= some) == 0) ++i;
        if ((second[j].count -= some) == 0) ++j;
    }
}

// How much the cuts with `over` on one side, `from` and `to` on the other, have more than is needed.
std::int64_t SwitchFreeGraph::slack(std::int32_t from, std::int32_t over, std::int32_t to,
                                    std::int64_t most) {
    for (std::int32_t v = 0; v < terminals_ && most > 0; ++v) {
        if (v != from && v != to) {
            load();
            flow_.reset(feeds_[index(from)], kPlenty);
            flow_.reset(feeds_[index(to)], kPlenty);
            flow_.reset(arc(over, v), kPlenty);
            most = std::min(most, flow_to(v, needed() + most) - needed());
        }
        load();
        flow_.reset(feeds_[index(over)], kPlenty);
        if (from != v) flow_.reset(arc(from, v), kPlenty);
        if (to != v) flow_.reset(arc(to, v), kPlenty);
        most = std::min(most, flow_to(v, needed() + most) - needed());
    }
    return most;
}

bool SwitchFreeGraph::reaches_all() {
    begin_flows();
    for (std::int32_t v = 0; v < terminals_; ++v) {
        load();
        if (flow_to(v, needed()) < needed()) return false;
    }
    return true;
}

// A flow network without the arcs that were given up.
void SwitchFreeGraph::begin_flows() {
    flow_ = MaxFlow(size_ + 1);
    feeds_.clear();
    for (std::int32_t v = 0; v < size_; ++v) feeds_.push_back(flow_.add(size_, v));
    std::fill(arcs_.begin(), arcs_.end(), kAbsent);
    in_use_.clear();
}

std::int32_t SwitchFreeGraph::arc(std::int32_t from, std::int32_t to) {
    std::int32_t& number = arcs_[at(from, to)];
    if (number == kAbsent) {
        number = flow_.add(from, to);
        in_use_.push_back(at(from, to));
    }
    return number;
}

void SwitchFreeGraph::load() {
    for (std::int32_t u = 0; u < size_; ++u) flow_.reset(feeds_[index(u)], u < terminals_ ? per_root_ : 0);
    if (in_use_.empty()) {
        for (std::int32_t u = 0; u < size_; ++u) {
            for (std::int32_t v = 0; v < size_; ++v) {
                if (capacity(u, v) > 0) arc(u, v);
            }
        }
    }
    for (const std::size_t pair : in_use_) flow_.reset(arcs_[pair], capacity_[pair]);
}

std::int64_t SwitchFreeGraph::flow_to(std::int32_t sink, std::int64_t most) {
    ++flows_;
    return flow_.run(size_, sink, most);
}

}  // namespace topoplace::collective
