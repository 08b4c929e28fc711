// Reads the tree of domains, bottom up.
#include "groups/domains.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "groups/refusal.hpp"

namespace topoplace::groups {

Domains::Domains(std::span<const std::int32_t> parent, std::span<const std::int32_t> room)
    : parent_(parent.begin(), parent.end()) {
    if (parent.empty()) throw std::invalid_argument("parent is empty: there must be a root");
    if (room.size() != parent.size()) throw std::invalid_argument("room must have a number for each domain");
    for (std::size_t i = 0; i < room.size(); ++i) {
        if (room[i] < 0) refuse("room", i, room[i], "must not be negative");
    }
    read();
    add_up(room);
    sort_kinds();
}

void Domains::read() {
    const std::size_t count = parent_.size();
    if (parent_[0] != kAbsent) refuse("parent", 0, parent_[0], "the root has none, -1");
    depth_.assign(count, 0);
    first_.assign(count + 1, 0);
    for (std::size_t i = 1; i < count; ++i) {
        if (parent_[i] < 0 || index(parent_[i]) >= i)
            refuse("parent", i, parent_[i], "must be a smaller number");
        depth_[i] = depth_[index(parent_[i])] + 1;
        ++first_[index(parent_[i]) + 1];
    }
    leaf_depth_ = *std::max_element(depth_.begin(), depth_.end());
    for (std::size_t i = 0; i < count; ++i) {
        if ((first_[i + 1] == 0) != (depth_[i] == leaf_depth_)) {
            refuse("parent", i, parent_[i], "all leaves must have the same depth");
        }
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    children_.resize(count - 1);
    std::vector<std::size_t> next(first_);
    for (std::size_t i = 1; i < count; ++i) {
        children_[next[index(parent_[i])]++] = static_cast<std::int32_t>(i);
    }
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
        const auto begin = children_.begin() + static_cast<std::ptrdiff_t>(first_[i]);
        const auto end = children_.begin() + static_cast<std::ptrdiff_t>(first_[i + 1]);
        std::sort(begin, end, [&](std::int32_t a, std::int32_t b) {
            return std::tuple(capacity(a), kind(a), a) < std::tuple(capacity(b), kind(b), b);
        });
        inside.clear();
        std::for_each(begin, end, [&](std::int32_t child) { inside.push_back(kind(child)); });
        const Key key{depth_[i], capacity_[i], inside};
        kind_[i] = kinds.emplace(key, static_cast<std::int32_t>(kinds.size())).first->second;
    }
}

}  // namespace topoplace::groups
