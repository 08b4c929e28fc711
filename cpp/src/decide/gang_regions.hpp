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

// The domains that have much more room than the gang needs, and the machines with the most room if fewer of
// these suffice; or each domain that must have all tasks, the fullest first.
std::vector<Region> first_regions(const GangSearchParams& params);

// The numbers of offers in outermost domains that have much more room than the gang needs.
std::vector<std::size_t> in_outermost_domains(const GangSearchParams& params);

// Some of the offers.
Region region_of(const MachineOffers& offers, const std::vector<std::size_t>& numbers);

// Those for a gang for which the first ones have no room: all machines, or none.
std::vector<Region> other_regions(const GangSearchParams& params);

}  // namespace topoplace::decide
