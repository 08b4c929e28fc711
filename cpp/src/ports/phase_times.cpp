// The time of the flows of each phase: that of the hop with the most bytes for its speed.
#include <limits>
#include <stdexcept>

#include "topoplace/port_network.hpp"

namespace topoplace::ports {
namespace {

// GB on each hop; only those of the present phase are above 0.
class Loads {
  public:
    explicit Loads(const PortNetwork& network)
        : network_(network), gigabytes_(2 * static_cast<std::size_t>(network.num_ports()), 0.0) {}

    void add(std::int32_t from, std::int32_t to, double there, double back) {
        hops_.clear();
        if (!network_.route(from, to, hops_)) {
            has_path_ = has_path_ && there + back <= 0.0;
            return;
        }
        for (const Hop hop : hops_) {
            put(hop, there);
            put(hop ^ 1, back);
        }
    }

    PhaseTime take() {
        PhaseTime time;
        for (const Hop hop : used_) {
            double& gigabytes = gigabytes_[static_cast<std::size_t>(hop)];
            const double seconds = gigabytes / network_.gb_per_s(hop / 2);
            if (seconds > time.seconds || (seconds == time.seconds && hop < time.slowest)) {
                time.seconds = seconds;
                time.slowest = hop;
            }
            if (network_.is_uplink(hop / 2)) time.port_seconds += seconds;
            gigabytes = 0.0;
        }
        if (!has_path_) time = {.seconds = std::numeric_limits<double>::infinity()};
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

void check(const PortNetwork& network, std::span<const std::int64_t> phase_ends, const Flows& flows) {
    const std::size_t count = flows.from.size();
    if (flows.to.size() != count || flows.there.size() != count || flows.back.size() != count) {
        throw std::invalid_argument("from, to, there and back differ in length");
    }
    std::int64_t last = 0;
    for (const std::int64_t end : phase_ends) {
        if (end < last || static_cast<std::size_t>(end) > count) {
            throw std::invalid_argument("phase_ends are not ascending numbers of flows");
        }
        last = end;
    }
    for (std::size_t i = 0; i < count; ++i) {
        for (const std::int32_t vertex : {flows.from[i], flows.to[i]}) {
            if (vertex < 0 || vertex >= network.num_vertices()) {
                throw std::invalid_argument("flow " + std::to_string(i) + " has no vertex " +
                                            std::to_string(vertex));
            }
        }
    }
}

}  // namespace

std::vector<PhaseTime> phase_times(const PortNetwork& network, std::span<const std::int64_t> phase_ends,
                                   const Flows& flows) {
    check(network, phase_ends, flows);
    Loads loads(network);
    std::vector<PhaseTime> times;
    std::size_t i = 0;
    for (const std::int64_t end : phase_ends) {
        for (; i < static_cast<std::size_t>(end); ++i) {
            loads.add(flows.from[i], flows.to[i], flows.there[i], flows.back[i]);
        }
        times.push_back(loads.take());
    }
    return times;
}

}  // namespace topoplace::ports
