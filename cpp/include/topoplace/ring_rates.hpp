// Ring rates: what a collective library plans for rings among any terminals of one network, asked often.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/mutex.hpp"
#include "topoplace/ring_packing.hpp"

namespace topoplace::collective {

// Rates for channels, the fastest first, and how they are looked for.
struct ChannelRules {
    std::vector<std::int64_t> rates{};
    ChannelParams params{};  // without `rates`
};

struct RingRatesParams {
    std::span<const std::int32_t>
        class_of{};                      // of each terminal; the least one of a set decides on its rules
    std::vector<ChannelRules> rules{};   // of each class
    std::vector<ChannelRules> slower{};  // of each class, where no channel of `rules` fits
    std::array<double, RingNetwork::kMaxLevel + 1> per_unit{};  // GB/s that a unit of rate carries, by level
};

class RingRates {
  public:
    // What is out of range.
    [[nodiscard]] static Fault check(const RingNetwork& network, const RingRatesParams& params);
    // The network has to outlive it.
    RingRates(const RingNetwork& network, const RingRatesParams& params);

    std::int32_t num_terminals() const { return network_.num_terminals(); }

    // GB/s of all channels through two or more distinct terminals, given in ascending order; 0 where no ring
    // joins them. Any thread may ask.
    double gb_per_s(std::span<const std::int32_t> chosen) const;

  private:
    double searched(std::span<const std::int32_t> chosen) const;

    static constexpr std::size_t kMostKept = 1 << 16;

    const RingNetwork& network_;
    std::vector<std::int32_t> class_of_;
    std::vector<ChannelRules> rules_, slower_;
    std::array<double, RingNetwork::kMaxLevel + 1> per_unit_;
    mutable Mutex mutex_;
    mutable std::unordered_map<std::uint64_t, double> kept_;
};

}  // namespace topoplace::collective
