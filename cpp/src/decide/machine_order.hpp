// Offered machines in the order of a tree of their domains.
#pragma once

#include <vector>

#include "topoplace/gang_machines.hpp"

namespace topoplace::decide {

struct MachineOrder {
    std::vector<std::int32_t> order{};  // of each leaf: the offer
    std::vector<std::vector<std::int32_t>>
        firsts{};  // the first leaf of each domain, by level, machines last
};

// By the domains of the outermost level, of each further one, and by number.
MachineOrder machine_order(const MachineOffers& offers, const LevelCodes& codes);

}  // namespace topoplace::decide
