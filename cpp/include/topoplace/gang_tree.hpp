// The machines that are offered to a gang as the leaves of a tree of domains (tree_mapping.hpp), with their
// GPUs as the places of the leaves (gang_mapping.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "topoplace/gang_machines.hpp"

namespace topoplace::decide {

// Domains are listed level by level, the whole first and machines last.
struct GangTree {
    std::vector<std::int32_t> order{};       // of each leaf: the offer
    std::vector<std::int32_t> parent{};      // of each domain; -1 for the whole
    std::vector<std::int32_t> first_leaf{};  // of each domain
    std::vector<std::int64_t> level_ends{};  // domains of each level and those before it
    std::vector<std::int64_t> place_ends{};  // places of each leaf and those before it
    std::vector<std::int32_t> places{};      // the GPUs that each leaf offers
};

// The arguments pass their checks.
GangTree gang_tree(const GangMachines& machines, const MachineOffers& offers, const LevelCodes& codes);

}  // namespace topoplace::decide
