// The machines among which a gang is searched for.
#pragma once

#include "topoplace/gang_search.hpp"

namespace topoplace::decide {

// Some of the offers, with the same kinds.
struct Region {
    std::vector<std::int32_t> machines{}, kind_of{}, sizes{};

    MachineOffers offers(const MachineOffers& all) const {
        return {machines, kind_of, sizes, all.usable, all.bytes};
    }
};

// The most promising ones first: the domains that have much more room than the gang needs, then all; or each
// domain that must have all tasks, the fullest first.
std::vector<Region> regions_of(const GangSearchParams& params);

}  // namespace topoplace::decide
