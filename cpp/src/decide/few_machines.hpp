// Machines for a gang that may be on few of them only.
#pragma once

#include <cstdint>
#include <vector>

#include "topoplace/gang_search.hpp"

namespace topoplace::decide {

// The numbers of the offers of so many machines with room for all tasks; none if there are none. They are in
// one of the innermost domains that have such, in the one with the least room on them: those with the most.
std::vector<std::size_t> on_few_machines(const GangSearchParams& params, std::int32_t num_tasks,
                                         std::int32_t max_machines);

}  // namespace topoplace::decide
