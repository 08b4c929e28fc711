// Reads the tree of domains, bottom up.
#include "groups/domains.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "groups/wrong.hpp"

namespace topoplace::groups {

Fault Domains::check(std::span<const std::int32_t> parent, std::span<const std::int32_t> room) {
    if (parent.empty()) return "parent is empty: there must be a root";
    if (room.size() != parent.size()) return "room must have a number for each domain";
    for (std::size_t i = 0; i < room.size(); ++i) {
        if (room[i] < 0) return wrong("room", i, room[i], "must not be negative");
    }
    if (auto fault = Children::check(parent, "parent", "the root has none, -1")) return fault;
    std::vector<std::int32_t> depth(parent.size(), 0);
    std::vector<bool> is_leaf(parent.size(), true);
    for (std::size_t i = 1; i < parent.size(); ++i) {
        is_leaf[index(parent[i])] = false;
        depth[i] = depth[index(parent[i])] + 1;
        if (depth[i] > kMaxDepth)
            return wrong("parent", i, parent[i], "the tree is deeper than 1000 domains");
    }
    const std::int32_t deepest = *std::max_element(depth.begin(), depth.end());
    for (std::size_t i = 0; i < parent.size(); ++i) {
        if (is_leaf[i] != (depth[i] == deepest))
            return wrong("parent", i, parent[i], "all leaves must have the same depth");
    }
    return std::nullopt;
}

Domains::Domains(std::span<const std::int32_t> parent, std::span<const std::int32_t> room)
    : parent_(parent.begin(), parent.end()), children_(parent) {
    TOPOPLACE_ASSERT(!check(parent, room));
    read();
    add_up(room);
    sort_kinds();
}

void Domains::read() {
    depth_.assign(parent_.size(), 0);
    for (std::size_t i = 1; i < parent_.size(); ++i) depth_[i] = depth_[index(parent_[i])] + 1;
    leaf_depth_ = *std::max_element(depth_.begin(), depth_.end());
}

void Domains::add_up(std::span<const std::int32_t> room) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    std::vector<std::int64_t> sum(parent_.size(), 0);
    capacity_.assign(parent_.size(), 0);
    for (std::size_t i = parent_.size(); i-- > 0;) {
        const std::int64_t inside = depth_[i] == leaf_depth_ ? kMost : sum[i];
        capacity_[i] = static_cast<std::int32_t>(std::min<std::int64_t>(inside, room[i]));
        if (i > 0) sum[index(parent_[i])] += capacity_[i];
    }
}

void Domains::sort_kinds() {
    using Key = std::tuple<std::int32_t, std::int32_t, std::vector<std::int32_t>>;
    std::map<Key, std::int32_t> kinds;
    kind_.assign(depth_.size(), 0);
    std::vector<std::int32_t> inside;
    for (std::size_t i = depth_.size(); i-- > 0;) {
        const auto children = children_.of(static_cast<std::int32_t>(i));
        std::sort(children.begin(), children.end(), [&](std::int32_t a, std::int32_t b) {
            return std::tuple(capacity(a), kind(a), a) < std::tuple(capacity(b), kind(b), b);
        });
        inside.clear();
        for (const std::int32_t child : children) inside.push_back(kind(child));
        const Key key{depth_[i], capacity_[i], inside};
        kind_[i] = kinds.emplace(key, static_cast<std::int32_t>(kinds.size())).first->second;
    }
}

}  // namespace topoplace::groups
