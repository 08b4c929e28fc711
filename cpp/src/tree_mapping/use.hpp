// What a mapping uses of the tree besides time.
#pragma once

#include <cstdint>
#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

struct Use {
    Use(const Problem& problem, const std::vector<Index>& leaf_of);

    // On fewer leaves, or else in fewer domains, or else in domains of less room, the uppermost first, or
    // else beside less of others, without more GB through the uplinks of any depth, or more of others beside
    // them.
    bool is_fuller_than(const Use& other) const;

  private:
    void count(const Problem& problem, const std::vector<Index>& leaf_of);
    void measure(const Problem& problem, const std::vector<Index>& leaf_of);

    std::vector<double> amounts_;  // through the uplinks of each depth; at last, seconds of others on them
    std::vector<std::int64_t> sizes_;  // leaves, then domains and their room at each depth from the top down
};

}  // namespace topoplace::tree_mapping
