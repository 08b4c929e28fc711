// The groups of a job, sorted into kinds: groups of one kind have equal sizes, depths and groups inside.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "graph/index.hpp"
#include "groups/children.hpp"
#include "topoplace/group_packing.hpp"

namespace topoplace::groups {

// How many groups of each kind.
using Counts = std::vector<std::int32_t>;

struct GroupKind {
    std::int32_t depth = 0;
    std::int64_t size = 0;  // tasks, those of the groups inside included
    std::vector<std::pair<std::int32_t, std::int32_t>>
        inside{};  // (kind, number) of the groups directly inside
};

class GroupKinds {
  public:
    // A wrong parent, depth or number of tasks.
    [[nodiscard]] static Fault check(const PackParams& params, std::int32_t leaf_depth);
    explicit GroupKinds(const PackParams& params);

    std::size_t size() const { return kinds_.size(); }
    const GroupKind& operator[](std::int32_t kind) const { return kinds_[index(kind)]; }
    std::int32_t of(std::int32_t group) const { return of_[index(group)]; }
    // The groups directly inside a group.
    std::span<const std::int32_t> children(std::int32_t group) const { return children_.of(group); }
    std::int64_t tasks(const Counts& counts) const;
    static std::uint64_t number(const Counts& counts) {
        return static_cast<std::uint64_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    }

  private:
    void sort_kinds(const PackParams& params);

    std::vector<GroupKind> kinds_;
    std::vector<std::int32_t> of_;
    Children children_;
};

}  // namespace topoplace::groups
