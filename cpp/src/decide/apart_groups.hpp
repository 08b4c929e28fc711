// Groups whose level crosses others, beside those that the tree of domains can hold.
#pragma once

#include "topoplace/task_packing.hpp"

namespace topoplace::decide {

// The groups of a forest in domains of this room; balanced: a level, or -1.
groups::PackResult packed(const DomainTree& tree, std::span<const std::int32_t> room,
                          const TaskForest& forest, std::int32_t balanced, StopCondition stop);

// As pack_tasks; some groups are apart. Even shares are not asked for then.
TaskPacking pack_apart(const TaskPackingParams& params);

}  // namespace topoplace::decide
