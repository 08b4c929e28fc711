// Depth-first search for the most rings of one rate.
//
// Rings are built hop by hop, near terminals first, and taken as often as they fit; then the search goes on
// with the rings that come later in that order, so that each multiset of rings is met once. A branch ends
// where the links that are left cannot hold more rings than the best packing has: by the cuts, or because
// they join the terminals no more.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "collective/chosen_routes.hpp"
#include "graph/index.hpp"
#include "topoplace/ring_packing.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::collective {

class RingSearch {
  public:
    explicit RingSearch(const ChosenRoutes& routes);

    // Begins a search. Returns a bound: no packing has more rings; 0 where the terminals are not joined.
    // Where the bound is below `least`, run() must not follow.
    std::int32_t begin(const PackParams& params, std::int64_t least = 0);
    RingPacking run();

  private:
    struct Amount {
        std::int32_t link = 0;  // by its number in `left_`
        std::int64_t amount = 0;
    };
    struct Hop {
        std::int32_t first = 0;
        std::int32_t end = 0;
        std::int32_t rank = 0;
        bool usable = false;
    };
    struct Frame {
        std::array<std::int8_t, RingNetwork::kMaxTerminals> path{};
        std::int32_t copies = 0;
        std::vector<std::uint64_t> next{};  // terminals after a terminal, by rank
    };

    void number_links();
    void number_cuts();
    void take_hops();
    void take_slots();
    bool proven_before() const;
    std::int32_t local(std::int32_t link);
    std::int32_t room(std::int64_t useless) const;
    bool open(Frame& frame) const;
    bool joined(const std::vector<std::uint64_t>& next) const;

    void search(std::int32_t depth);
    void walk(std::int32_t depth, std::int32_t position, std::uint64_t visited, bool tight);
    std::uint64_t candidates(std::int32_t depth, std::int32_t position, std::int32_t rank, bool tight) const;
    void close(std::int32_t depth, bool tight);
    void record(std::int32_t depth);

    const Hop& hop(std::int32_t from, std::int32_t to) const {
        return hops_[static_cast<std::size_t>(from * size_ + to)];
    }
    bool take(const Hop& hop);
    void give(const Hop& hop);
    bool take_ring(const Frame& frame);
    void give_ring(const Frame& frame);

    const ChosenRoutes& routes_;
    PackParams params_{};
    WorkMeter meter_{StopCondition{}};
    std::int32_t size_;
    std::int32_t num_ranks_ = 0;
    std::vector<Hop> hops_;
    std::vector<Amount> amounts_;
    std::vector<std::int32_t> number_;  // of a link in `left_`, -1 for one that is not used
    std::vector<std::int64_t> capacities_;
    std::vector<std::int64_t> left_;   // capacity
    std::vector<std::int64_t> least_;  // that one hop uses of a link
    std::vector<std::int64_t> slots_;  // of links: rings that each holds
    bool alike_ = true;                // each link is used alike by all hops
    std::int32_t proven_ = 0;          // the most rings of an earlier search, over
    std::vector<std::int64_t> proven_slots_;
    std::int32_t proven_level_ = kAbsent;
    std::int32_t proven_limit_ = 0;
    std::vector<std::int32_t> cut_links_;
    std::vector<std::size_t> cut_ends_;  // of each cut's links
    std::vector<Frame> frames_;
    std::vector<Ring> best_;
    std::int32_t total_ = 0;
    std::int32_t most_ = 0;
    std::int32_t bound_ = 0;
};

}  // namespace topoplace::collective
