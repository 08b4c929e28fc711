// Machines for a gang that may be on few of them only.
#pragma once

#include <cstdint>
#include <vector>

#include "topoplace/gang_search.hpp"

namespace topoplace::decide {

// The offers, by number, of at most `max_machines` machines that together have room for all tasks; none if
// there are none. They are the machines with the most room in one domain: of the innermost level at which any
// domain has enough, the one with the least room on such machines.
std::vector<std::size_t> on_few_machines(const GangSearchParams& params, std::int32_t num_tasks,
                                         std::int32_t max_machines);

}  // namespace topoplace::decide
