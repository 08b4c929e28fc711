// The GPUs of the tasks that one machine has of a gang, by the rule for one machine.
#pragma once

#include "topoplace/gang_search.hpp"

namespace topoplace::decide {

// The GPU of each task by this rule, where a mapping gives its machine the first GPUs of its offer; empty
// where the search is stopped.
std::vector<std::int32_t> by_the_rule_for_machines(const GangSearchParams& params,
                                                   std::span<const std::int32_t> vertex_of);

}  // namespace topoplace::decide
