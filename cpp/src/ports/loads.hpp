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

class Loads {
  public:
    struct Time {
        PhaseTime phase{};
        double all_port_seconds = 0.0;  // of uplinks and of other ports
    };

    explicit Loads(const PortNetwork& network, const FlowCounts* others = nullptr)
        : network_(network), others_(others), gigabytes_(hops_of(network), 0.0) {
        if (others_ != nullptr) largest_.assign(hops_of(network), 0.0);
    }

    void add(std::int32_t from, std::int32_t to, double there, double back) {
        const auto put_one = [this](Hop hop, double gigabytes) { put(hop, gigabytes); };
        has_path_ = put_both_ways(network_, from, to, there, back, hops_, put_one) && has_path_;
    }

    // The time of what was added since the last call.
    Time take() {
        Time time;
        PhaseTime& phase = time.phase;
        for (const Hop hop : used_) {
            double& gigabytes = gigabytes_[static_cast<std::size_t>(hop)];
            const double gb_per_s = network_.gb_per_s(hop / 2);
            const double seconds = gigabytes / gb_per_s, shared = (gigabytes + take_others(hop)) / gb_per_s;
            if (shared > phase.seconds || (shared == phase.seconds && hop < phase.slowest)) {
                phase.seconds = shared;
                phase.slowest = hop;
            }
            time.all_port_seconds += seconds;
            if (network_.is_uplink(hop / 2)) phase.port_seconds += seconds;
            gigabytes = 0.0;
        }
        if (!has_path_) phase = {.seconds = std::numeric_limits<double>::infinity()};
        used_.clear();
        has_path_ = true;
        return time;
    }

  private:
    static std::size_t hops_of(const PortNetwork& network) {
        return 2 * static_cast<std::size_t>(network.num_ports());
    }

    void put(Hop hop, double gigabytes) {
        if (gigabytes <= 0.0) return;
        double& sum = gigabytes_[static_cast<std::size_t>(hop)];
        if (sum == 0.0) used_.push_back(hop);
        sum += gigabytes;
        if (others_ == nullptr) return;
        double& largest = largest_[static_cast<std::size_t>(hop)];
        largest = std::max(largest, gigabytes);
    }

    // GB of the other jobs that count on a hop.
    double take_others(Hop hop) {
        if (others_ == nullptr) return 0.0;
        double& largest = largest_[static_cast<std::size_t>(hop)];
        const double counted = others_->counted(hop, largest);
        largest = 0.0;
        return counted;
    }

    const PortNetwork& network_;
    const FlowCounts* others_;
    std::vector<double> gigabytes_;
    std::vector<double> largest_;  // flow on each hop, if there are others
    std::vector<Hop> used_, hops_;
    bool has_path_ = true;
};

}  // namespace topoplace::ports
