// The routes among chosen terminals, renumbered from 0, in the form that the search for rings walks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/ring_packing.hpp"

namespace topoplace::collective {

class ChosenRoutes {
  public:
    using Hop = RingNetwork::Hop;

    ChosenRoutes(const RingNetwork& network, std::span<const std::int32_t> chosen);

    const RingNetwork& network() const { return *network_; }
    std::int32_t size() const { return static_cast<std::int32_t>(terminals_.size()); }
    // Ascending.
    std::span<const std::int32_t> terminals() const { return terminals_; }
    // Null where there is none.
    const Hop* hop(std::int32_t from, std::int32_t to) const {
        return hops_[static_cast<std::size_t>(from * size() + to)];
    }
    // Which levels the routes have, as bits.
    std::uint32_t levels() const { return levels_; }
    // Over routes up to the level, no ring is faster, and no rings together are.
    std::int64_t fastest(std::int32_t level) const { return limits_[static_cast<std::size_t>(level)].one; }
    std::int64_t most(std::int32_t level) const { return limits_[static_cast<std::size_t>(level)].all; }
    // Cuts that divide the chosen terminals.
    std::span<const LinkCut* const> cuts() const { return cuts_; }

  private:
    struct Limit {
        std::int64_t one = 0;
        std::int64_t all = 0;
    };

    void take_hops(std::uint64_t members);
    Limit limit(std::int32_t level) const;

    const RingNetwork* network_;
    std::vector<std::int32_t> terminals_;
    std::vector<const Hop*> hops_;
    std::uint32_t levels_ = 0;
    std::array<Limit, RingNetwork::kMaxLevel + 1> limits_{};
    std::vector<const LinkCut*> cuts_;
};

// What a ring of this rate uses of the link.
inline std::int64_t used(const LinkUse& use, std::int64_t rate) {
    return use.thousandths == 1000 ? rate : (rate * use.thousandths + 999) / 1000;
}

}  // namespace topoplace::collective
