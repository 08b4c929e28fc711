// Tasks and groups that are exchanged between the leaves of a division, for less communication.
#pragma once

#include "topoplace/task_division.hpp"

namespace topoplace::decide {

// Wherever `stop` ends this, `leaf_of` keeps the shares of all groups.
void exchange_tasks(const TaskDivisionParams& params, const TaskForest& forest, const StopCondition& stop,
                    std::vector<std::int32_t>& leaf_of);

}  // namespace topoplace::decide
