// The children of each node of a tree, from the parent of each node.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "groups/wrong.hpp"
#include "topoplace/fault.hpp"

namespace topoplace::groups {

class Children {
  public:
    // Node 0 has the parent -1, all others one of a smaller number. `rule`: what is said of a node 0 with a
    // parent.
    [[nodiscard]] static Fault check(std::span<const std::int32_t> parent, const char* name,
                                     const char* rule) {
        if (parent[0] != kAbsent) return wrong(name, 0, parent[0], rule);
        for (std::size_t i = 1; i < parent.size(); ++i) {
            if (parent[i] < 0 || index(parent[i]) >= i)
                return wrong(name, i, parent[i], "must be a smaller number");
        }
        return std::nullopt;
    }
    explicit Children(std::span<const std::int32_t> parent)
        : first_(parent.size() + 1, 0), children_(parent.size() - 1) {
        for (const std::int32_t its : parent.subspan(1)) ++first_[index(its) + 1];
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
        std::vector<std::size_t> next(first_);
        for (std::size_t i = 1; i < parent.size(); ++i) {
            children_[next[index(parent[i])]++] = static_cast<std::int32_t>(i);
        }
    }

    std::span<const std::int32_t> of(std::int32_t node) const {
        return std::span(children_).subspan(first_[index(node)], count(node));
    }
    // Their order may be changed.
    std::span<std::int32_t> of(std::int32_t node) {
        return std::span(children_).subspan(first_[index(node)], count(node));
    }

  private:
    std::size_t count(std::int32_t node) const { return first_[index(node) + 1] - first_[index(node)]; }

    std::vector<std::size_t> first_;
    std::vector<std::int32_t> children_;
};

}  // namespace topoplace::groups
