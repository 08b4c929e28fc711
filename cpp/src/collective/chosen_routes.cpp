// Picks the routes among chosen terminals out of a network.
#include "collective/chosen_routes.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "graph/index.hpp"

namespace topoplace::collective {

ChosenRoutes::ChosenRoutes(const RingNetwork& network, std::span<const std::int32_t> chosen)
    : network_(&network), terminals_(chosen.begin(), chosen.end()) {
    TOPOPLACE_ASSERT(!check(network, chosen));
    std::uint64_t members = 0;
    for (const std::int32_t terminal : chosen) members |= std::uint64_t{1} << terminal;
    std::sort(terminals_.begin(), terminals_.end());
    take_hops(members);
    for (std::int32_t level = 0; level <= RingNetwork::kMaxLevel; ++level) {
        if ((levels_ >> level & 1U) != 0) limits_[index(level)] = limit(level);
    }
    for (const LinkCut& cut : network.cuts()) {
        if ((cut.near & members) != 0 && (members & ~cut.near) != 0) cuts_.push_back(&cut);
    }
}

Fault check(const RingNetwork& network, std::span<const std::int32_t> chosen) {
    std::uint64_t members = 0;
    const auto entry = [&](std::size_t i) {
        return "chosen[" + std::to_string(i) + "] = " + std::to_string(chosen[i]);
    };
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i] < 0 || chosen[i] >= network.num_terminals()) return entry(i) + " is not a terminal";
        const std::uint64_t bit = std::uint64_t{1} << chosen[i];
        if ((members & bit) != 0) return entry(i) + " appears twice";
        members |= bit;
    }
    if (chosen.size() < 2) return "chosen has fewer than two terminals";
    return std::nullopt;
}

void ChosenRoutes::take_hops(std::uint64_t members) {
    hops_.reserve(terminals_.size() * terminals_.size());
    for (const std::int32_t from : terminals_) {
        for (const std::int32_t to : terminals_) {
            const Hop* found = nullptr;
            for (const Hop& hop : network_->hops(from, to)) {
                if (hop.relay != kAbsent && (members >> hop.relay & 1U) == 0) continue;
                found = &hop;
                levels_ |= std::uint32_t{1} << hop.level;
                break;
            }
            hops_.push_back(found);
        }
    }
}

// Each ring leaves each terminal over the first link of one of its routes.
ChosenRoutes::Limit ChosenRoutes::limit(std::int32_t level) const {
    Limit limit{RingNetwork::kMaxCapacity, std::numeric_limits<std::int64_t>::max()};
    std::array<std::int32_t, RingNetwork::kMaxTerminals> links{};
    for (std::int32_t from = 0; from < size(); ++from) {
        std::int64_t one = 0;
        std::int64_t all = 0;
        std::int32_t* end = links.data();
        for (std::int32_t to = 0; to < size(); ++to) {
            const Hop* known = hop(from, to);
            if (known == nullptr || known->level > level) continue;
            one = std::max(one, known->fastest);
            const std::int32_t link = known->uses.front().link;
            if (std::find(links.data(), end, link) != end) continue;
            *end++ = link;
            all += network_->capacities()[index(link)];
        }
        limit.one = std::min(limit.one, one);
        limit.all = std::min(limit.all, all);
    }
    return limit;
}

}  // namespace topoplace::collective
