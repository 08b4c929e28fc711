// GB on each hop while the flows of a phase are added, and the time that they take.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "topoplace/port_network.hpp"

namespace topoplace::ports {

// Throws std::invalid_argument naming a phase that does not end at a flow, a flow between what is none of
// `count` vertices or tasks, or GB that are negative or not finite.
void check_flows(std::span<const std::int64_t> phase_ends, const Flows& flows, std::int32_t count);

class Loads {
  public:
    struct Time {
        PhaseTime phase{};
        double all_port_seconds = 0.0;  // of uplinks and of other ports
    };

    explicit Loads(const PortNetwork& network)
        : network_(network), gigabytes_(2 * static_cast<std::size_t>(network.num_ports()), 0.0) {}

    void add(std::int32_t from, std::int32_t to, double there, double back) {
        if (there <= 0.0 && back <= 0.0) return;
        hops_.clear();
        has_path_ = network_.route(from, to, hops_) && has_path_;
        for (const Hop hop : hops_) {
            put(hop, there);
            put(hop ^ 1, back);
        }
    }

    // The time of what was added since the last call.
    Time take() {
        Time time;
        PhaseTime& phase = time.phase;
        for (const Hop hop : used_) {
            double& gigabytes = gigabytes_[static_cast<std::size_t>(hop)];
            const double seconds = gigabytes / network_.gb_per_s(hop / 2);
            if (seconds > phase.seconds || (seconds == phase.seconds && hop < phase.slowest)) {
                phase.seconds = seconds;
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
    void put(Hop hop, double gigabytes) {
        if (gigabytes <= 0.0) return;
        double& sum = gigabytes_[static_cast<std::size_t>(hop)];
        if (sum == 0.0) used_.push_back(hop);
        sum += gigabytes;
    }

    const PortNetwork& network_;
    std::vector<double> gigabytes_;
    std::vector<Hop> used_, hops_;
    bool has_path_ = true;
};

}  // namespace topoplace::ports
