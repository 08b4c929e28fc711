// Ring packing: the most rings of equal rate through all chosen terminals that fit the links together.
//
// A ring visits every chosen terminal once and comes back. From one terminal to the next it takes the route
// of that pair, which uses links; rings of rate r use r of the capacity of each link, or a little more where
// a link is less efficient on a route. A link has one direction. Of a pair's routes the first counts whose
// relay, a third terminal, is chosen, too (or which has none). Routes have levels, the nearest connection
// first, and a packing is free to use those up to a level.
//
// `pack_rings` finds the most rings of one rate, `best_channels` the rate and level that carry the most
// together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::collective {

struct LinkUse {
    std::int32_t link = 0;
    std::int32_t thousandths = 1000;  // of the rate
};

struct Route {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int32_t relay = -1;
    std::int32_t level = 0;
    std::vector<LinkUse> uses{};
};

// Every route from a terminal in `near` to one outside it uses one of `links`.
struct LinkCut {
    std::uint64_t near = 0;  // a bit for each terminal
    std::vector<std::int32_t> links{};
};

class RingNetwork {
  public:
    static constexpr std::int32_t kMaxTerminals = 64;
    static constexpr std::int32_t kMaxLevel = 15;
    static constexpr std::int64_t kMaxCapacity = std::int64_t{1} << 40;

    // The first entry that is out of range, or a cut that some route avoids.
    [[nodiscard]] static Fault check(std::int32_t num_terminals, std::span<const std::int64_t> capacities,
                                     std::span<const Route> routes, std::span<const LinkCut> cuts);
    // Routes of a pair are listed with the preferred one first. The cuts only make the search faster; those
    // around single terminals are known without being listed.
    RingNetwork(std::int32_t num_terminals, std::vector<std::int64_t> capacities, std::vector<Route> routes,
                std::vector<LinkCut> cuts);
    RingNetwork(const RingNetwork&) = delete;  // hops refer to routes
    RingNetwork& operator=(const RingNetwork&) = delete;

    std::int32_t num_terminals() const { return num_terminals_; }
    std::span<const std::int64_t> capacities() const { return capacities_; }
    std::span<const LinkCut> cuts() const { return cuts_; }
    // Of an ordered pair, the preferred one first.
    std::span<const Route> routes(std::int32_t from, std::int32_t to) const;

    // A route as searches need it.
    struct Hop {
        std::int32_t relay = -1;
        std::int32_t level = 0;
        std::int64_t fastest = 0;         // rate that its links can carry
        std::span<const LinkUse> uses{};  // of the route
    };
    std::span<const Hop> hops(std::int32_t from, std::int32_t to) const;

  private:
    void sort_routes();
    void add_cuts_around_terminals();

    std::int32_t num_terminals_;
    std::vector<std::int64_t> capacities_;
    std::vector<Route> routes_;        // by pair
    std::vector<Hop> hops_;            // of each route
    std::vector<std::int32_t> first_;  // route of each pair, and their number at the end
    std::vector<LinkCut> cuts_;
};

struct PackParams {
    std::int64_t rate = 1;
    std::int32_t level = RingNetwork::kMaxLevel;  // of the routes that may be used
    std::int32_t max_rings = 16;
    bool equal = false;  // all rings are the same one
    StopCondition stop{};
};

struct Ring {
    std::vector<std::int32_t> terminals{};  // in order, beginning with the smallest
    std::int32_t count = 1;

    friend bool operator==(const Ring&, const Ring&) = default;
};

struct RingPacking {
    std::vector<Ring> rings{};
    std::int32_t count = 0;  // of rings, copies included
    std::int32_t bound = 0;  // no packing has more
    bool optimal = false;    // `count` equals `bound`
    bool complete = true;    // false: the search was stopped
    std::uint64_t nodes = 0;
};

// How a collective library looks for channels, as NCCL does: rates from the fastest down, for each the levels
// from the nearest up, and no further than the level at which anything was found.
struct ChannelParams {
    std::span<const std::int64_t> rates{};  // descending
    std::int32_t max_channels = 16;
    // Looks at slower rates while they are more than this many thousandths of the best one's.
    std::int32_t slowest_thousandths = 490;
    // Channels of at least this rate are split into twice as many; but more than `whole_count` channels of
    // less than `whole_rate` are not.
    std::int64_t split_rate = std::int64_t{1} << 60;
    std::int64_t whole_rate = 0;
    std::int32_t whole_count = 0;
    std::int32_t equal_level = RingNetwork::kMaxLevel + 1;  // from this level on all rings are the same one
    // Where routes up to this level put the terminals into exactly two groups of several, there are at least
    // two channels. A terminal is in the group of the last one before it that it has such a route from.
    std::int32_t group_level = -1;
    StopCondition stop{};  // `max_nodes`: of each packing
};

struct Channels {
    std::int32_t count = 0;  // 0: no ring fits even the slowest rate
    std::int64_t rate = 0;   // of each
    std::int32_t level = 0;  // of the farthest route in use
    std::vector<Ring> rings{};
    bool complete = true;  // false: a search was stopped
    std::uint64_t nodes = 0;

    std::int64_t total() const { return count * rate; }
};

// `chosen` that are not two or more distinct terminals, a rate or a limit that is not positive, and rates
// that do not descend.
[[nodiscard]] Fault check(const RingNetwork& network, std::span<const std::int32_t> chosen);
[[nodiscard]] Fault check(const PackParams& params);
[[nodiscard]] Fault check(const ChannelParams& params);

// Equal input gives equal output.
RingPacking pack_rings(const RingNetwork& network, std::span<const std::int32_t> chosen,
                       const PackParams& params);
Channels best_channels(const RingNetwork& network, std::span<const std::int32_t> chosen,
                       const ChannelParams& params);

// Checks rings by the definition alone: each visits the chosen terminals once over routes up to the level,
// and together they fit the links.
Fault verify_rings(const RingNetwork& network, std::span<const std::int32_t> chosen, const PackParams& params,
                   std::span<const Ring> rings);

}  // namespace topoplace::collective
