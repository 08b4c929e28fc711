// The fewest domains with narrow uplinks that have room for a gang.
#pragma once

#include <vector>

#include "topoplace/gang_search.hpp"

namespace topoplace::decide {

// The numbers of their offers; none if a gang on these GPUs is in no more, or no uplinks are narrow. The
// domains are those of the innermost level whose uplinks carry less than all adapters below them: the largest
// ones, and the smallest that has room for the rest.
std::vector<std::size_t> in_fewest_narrow_domains(const GangSearchParams& params,
                                                  std::span<const std::int32_t> gpus);

// In how many domains of a level these tasks are.
std::size_t count_domains(const GangSearchParams& params, const Together& tasks,
                          std::span<const std::int32_t> gpus);

}  // namespace topoplace::decide
