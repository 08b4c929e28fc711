// GB on each hop while the flows of a phase are added, and the time that they take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "topoplace/port_network.hpp"

namespace topoplace::ports {

// Calls put(hop, GB) for all that a flow passes, both ways; false where one of them has no path.
template <class Put>
bool put_both_ways(const PortNetwork& network, std::int32_t from, std::int32_t to, double there, double back,
                   std::vector<Hop>& hops, const Put& put) {
    if (there <= 0.0 && back <= 0.0) return true;
    hops.clear();
    if (!network.has_relays()) {
        if (!network.route(from, to, hops)) return false;
        for (const Hop hop : hops) {
            put(hop, there);
            put(hop ^ 1, back);
        }
        return true;
    }
    bool has_path = there <= 0.0 || network.route(from, to, hops);
    for (const Hop hop : hops) put(hop, there);
    hops.clear();
    has_path = (back <= 0.0 || network.route(to, from, hops)) && has_path;
    for (const Hop hop : hops) put(hop, back);
    return has_path;
}

// Costs as much as hops are in use, however many the network has.
class Loads {
  public:
    struct Time {
        PhaseTime phase{};
        double all_port_seconds = 0.0;  // of uplinks and of other ports
    };

    explicit Loads(const PortNetwork& network, const FlowCounts* others = nullptr)
        : network_(network), others_(others), places_(kFirstPlaces, kNone) {}

    void add(std::int32_t from, std::int32_t to, double there, double back) {
        const auto put_one = [this](Hop hop, double gigabytes) { put(hop, gigabytes); };
        has_path_ = put_both_ways(network_, from, to, there, back, hops_, put_one) && has_path_;
    }

    // The time of what was added since the last call.
    Time take() {
        Time time;
        PhaseTime& phase = time.phase;
        for (const Load& load : loads_) {
            const double gb_per_s = network_.gb_per_s(load.hop / 2);
            const double others = others_ == nullptr ? 0.0 : others_->counted(load.hop, load.largest);
            const double seconds = load.gigabytes / gb_per_s, shared = (load.gigabytes + others) / gb_per_s;
            if (shared > phase.seconds || (shared == phase.seconds && load.hop < phase.slowest)) {
                phase.seconds = shared;
                phase.slowest = load.hop;
            }
            time.all_port_seconds += seconds;
            if (network_.is_uplink(load.hop / 2)) phase.port_seconds += seconds;
        }
        if (!has_path_) phase = {.seconds = std::numeric_limits<double>::infinity()};
        for (const Load& load : loads_) places_[load.place] = kNone;
        loads_.clear();
        has_path_ = true;
        return time;
    }

  private:
    static constexpr std::size_t kFirstPlaces = 128;

    // What was added to a hop.
    struct Load {
        Hop hop = 0;
        std::size_t place = 0;  // in `places_`
        double gigabytes = 0.0;
        double largest = 0.0;  // of one flow
    };

    void put(Hop hop, double gigabytes) {
        if (gigabytes <= 0.0) return;
        const std::size_t place = place_of(hop);
        if (places_[place] == kNone) {
            places_[place] = static_cast<std::int32_t>(loads_.size());
            loads_.push_back({.hop = hop, .place = place, .gigabytes = gigabytes, .largest = gigabytes});
            if (2 * loads_.size() > places_.size()) grow();
            return;
        }
        Load& load = loads_[static_cast<std::size_t>(places_[place])];
        load.gigabytes += gigabytes;
        load.largest = std::max(load.largest, gigabytes);
    }

    // The place of a hop in use, else the one that it would get.
    std::size_t place_of(Hop hop) const {
        const std::uint64_t spread = static_cast<std::uint64_t>(hop) * 0x9E3779B97F4A7C15U >> 32U;
        std::size_t place = spread & (places_.size() - 1);
        while (places_[place] != kNone && loads_[static_cast<std::size_t>(places_[place])].hop != hop) {
            place = (place + 1) & (places_.size() - 1);
        }
        return place;
    }

    void grow() {
        places_.assign(2 * places_.size(), kNone);
        for (std::size_t i = 0; i < loads_.size(); ++i) {
            loads_[i].place = place_of(loads_[i].hop);
            places_[loads_[i].place] = static_cast<std::int32_t>(i);
        }
    }

    const PortNetwork& network_;
    const FlowCounts* others_;
    std::vector<std::int32_t> places_;  // a power of two of them: the number of the load there, or kNone
    std::vector<Load> loads_;           // in the order in which their hops were first used
    std::vector<Hop> hops_;
    bool has_path_ = true;
};

}  // namespace topoplace::ports
