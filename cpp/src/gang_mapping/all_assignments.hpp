// All assignments of the tasks of a small gang to places.
#pragma once

#include <vector>

#include "topoplace/gang_mapping.hpp"
#include "tree_mapping/problem.hpp"

namespace topoplace::gang_mapping {

using tree_mapping::Index;

struct Assignment {
    std::vector<std::int32_t> vertex_of{};  // of each task
    Index leaves = 0;                       // in use
};

// Empty if there may be more than `most`.
std::vector<Assignment> all_assignments(const GangParams& params, const tree_mapping::Problem& problem,
                                        std::size_t most);

}  // namespace topoplace::gang_mapping
