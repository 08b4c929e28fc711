// Port network: which ports the traffic between two vertices passes, and how long a set of flows takes.
//
// A port has a speed in each of its two directions. Two vertices with a link of their own use it. Others meet
// at the first level at which they share a domain: their traffic leaves each of them by its entry into the
// segment of that level, and climbs the uplinks of the segment's levels below. A segment is a network apart
// from the others, such as switches inside a machine, or the network between machines. A vertex may have a
// relay: in a network of lanes, what it sends to another lane goes through its neighbour on that lane first.
//
// Flows of a phase run at once, so its time is that of the port which takes longest: bytes / speed, in the
// busier direction. Where other jobs send through the same ports, each of their flows counts too, up to the
// GB of the largest flow of the phase there: a small flow does not wait for the rest of a big one.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::ports {

inline constexpr std::int32_t kNone = -1;

// Arrays of levels and segments have a row of n vertices for each.
struct NetworkParams {
    std::int32_t num_vertices = 0;
    std::span<const double> gb_per_s{};          // of each port and direction; 0: nothing passes
    std::span<const std::int32_t> entry{};       // (segments, n) port by which a vertex enters; or kNone
    std::span<const std::int32_t> segment_of{};  // of each level, ascending
    std::span<const std::int32_t> domain{};      // (levels, n) at each level; or kNone
    std::span<const std::int32_t> uplink{};      // (levels, n) port of the vertex's domain there; or kNone
    std::span<const std::int32_t> links{};       // (links, 3) two vertices in ascending order, port; sorted
    std::span<const std::uint8_t> is_slower{};   // of each link: 1 if it is a part of the usual path
    // (n) port between a vertex and its entry into the last segment; or kNone. Empty: none has one.
    std::span<const std::int32_t> access{};
    // (n) each, or empty without relays. What a vertex of a group sends through the last segment to another
    // group's vertex on another lane first goes through an earlier segment to the lowest vertex of its own
    // group on that lane, if it has one there.
    std::span<const std::int32_t> group{};  // or kNone
    std::span<const std::int32_t> lane{};
};

// Flow i is from `from[i]` to `to[i]`, `there[i]` GB, and the other way `back[i]` GB. A flow of 0 GB needs no
// path.
struct Flows {
    std::span<const std::int32_t> from{};
    std::span<const std::int32_t> to{};
    std::span<const double> there{};
    std::span<const double> back{};
};

// A phase that does not end at a flow, a flow between what is none of `count` vertices or tasks, or GB that
// are negative or not finite. The second one takes flows of any phase.
[[nodiscard]] Fault check(std::span<const std::int64_t> phase_ends, const Flows& flows, std::int32_t count);
[[nodiscard]] Fault check(const Flows& flows, std::int32_t count);

// One direction of a port: 2 * port, or 2 * port + 1 for what comes back to the vertices below it.
using Hop = std::int32_t;

struct PhaseTime {
    double seconds = 0.0;       // infinity where two vertices have no path
    Hop slowest = kNone;        // the hop that takes so long, the lowest of several
    double port_seconds = 0.0;  // summed over all hops that pass an uplink
};

class PortNetwork {
  public:
    // The parameter, the index and the value that is out of range.
    [[nodiscard]] static Fault check(const NetworkParams& params);
    explicit PortNetwork(const NetworkParams& params);

    std::int32_t num_vertices() const { return num_vertices_; }
    std::int32_t num_ports() const { return static_cast<std::int32_t>(gb_per_s_.size()); }
    double gb_per_s(std::int32_t port) const { return gb_per_s_[static_cast<std::size_t>(port)]; }
    bool is_uplink(std::int32_t port) const { return is_uplink_[static_cast<std::size_t>(port)] != 0; }

    // Appends the hops of traffic from one vertex to another; false where there is no path.
    bool route(std::int32_t from, std::int32_t to, std::vector<Hop>& hops) const;

    // Whether the way back may pass other ports.
    bool has_relays() const { return !relays_.empty(); }

    // Many routes from a vertex at once. All pairs with the same approach, 0..num_approaches() - 1, pass the
    // same hops on the side of the first vertex. There are none, 0, where links, relays or many levels let
    // routes differ in more.
    std::int32_t num_approaches() const;
    // Of two different vertices; kNone where there is no path.
    std::int32_t approach(std::int32_t from, std::int32_t to) const;
    // Appends the hops of an approach that a vertex sends through.
    void approach_hops(std::int32_t approach, std::int32_t vertex, std::vector<Hop>& hops) const;

  private:
    struct Relay {
        std::int32_t group = 0, lane = 0, vertex = 0;

        friend auto operator<=>(const Relay&, const Relay&) = default;
    };

    void add_relays(const NetworkParams& params);
    std::int32_t relay_between(std::int32_t from, std::int32_t to) const;
    bool is_before_last(std::size_t level) const;
    bool direct_route(std::int32_t from, std::int32_t to, std::vector<Hop>& hops) const;
    std::size_t at(std::size_t row, std::int32_t vertex) const {
        return row * static_cast<std::size_t>(num_vertices_) + static_cast<std::size_t>(vertex);
    }
    std::size_t meeting(std::int32_t from, std::int32_t to) const;
    void climb(std::size_t level, std::int32_t vertex, std::int32_t other, Hop direction,
               std::vector<Hop>& hops) const;
    std::size_t link_between(std::int32_t from, std::int32_t to) const;
    void enter(std::size_t level, std::int32_t vertex, Hop direction, std::vector<Hop>& hops) const;

    static constexpr std::size_t kMostLevels = 8;  // with approaches

    std::int32_t num_vertices_;
    std::vector<double> gb_per_s_;
    std::vector<std::uint8_t> is_uplink_;
    std::vector<std::int32_t> entry_, segment_of_, domain_, uplink_;
    std::vector<std::int32_t> first_link_;  // of each vertex, as the lower end
    std::vector<std::int32_t> link_end_, link_port_;
    std::vector<std::uint8_t> is_slower_;
    std::vector<std::int32_t> access_, group_, lane_;
    std::vector<Relay> relays_;  // of all vertices with a group, sorted
};

// For each set of `size` vertices, one row of `sets`: an order in which task i is on the i-th vertex, and how
// long the flows between tasks take then, summed over the phases. Less time is better, then fewer
// port-seconds of all ports. Of at most four vertices, it is the best order. Of more, the order that is given
// is improved by swaps of two, a heuristic; when that is stopped, the orders are those found so far.
struct Order {
    std::vector<std::int32_t> vertices{};
    double seconds = 0.0;
    double port_seconds = 0.0;  // of all ports and phases
};
// `sets` that are no rows of vertices, or flows between what is no task.
[[nodiscard]] Fault check(const PortNetwork& network, std::span<const std::int64_t> phase_ends,
                          const Flows& flows, std::int32_t size, std::span<const std::int32_t> sets);
std::vector<Order> best_orders(const PortNetwork& network, std::span<const std::int64_t> phase_ends,
                               const Flows& flows, std::int32_t size, std::span<const std::int32_t> sets,
                               const StopCondition& stop = {});

// The flows of running jobs by hop: how many there are of each size. The network has to outlive it.
class FlowCounts {
  public:
    explicit FlowCounts(const PortNetwork& network)
        : network_(network), sizes_(2 * static_cast<std::size_t>(network.num_ports())) {}

    const PortNetwork& network() const { return network_; }

    // What has no path counts nowhere. A fault where flows were not added, of which those before are removed.
    void add(const Flows& flows) { change(flows, 1); }
    [[nodiscard]] Fault remove(const Flows& flows);

    // A hop that does not exist.
    [[nodiscard]] Fault check(Hop hop) const;
    // GB of all flows on a hop, each up to `most`.
    double counted(Hop hop, double most) const;

  private:
    struct Size {
        double gigabytes = 0.0;
        std::int64_t flows = 0;
    };

    // Both are false where flows were not there to be removed.
    bool change(const Flows& flows, std::int64_t sign);
    bool put(Hop hop, double gigabytes, std::int64_t sign);

    const PortNetwork& network_;
    std::vector<std::vector<Size>> sizes_;  // of each hop, ascending
};

// The time of each phase; `phase_ends[k]` is the number of flows of phases 0..k, at last of all. Port-seconds
// are those of the flows themselves, without the `others`.
std::vector<PhaseTime> phase_times(const PortNetwork& network, std::span<const std::int64_t> phase_ends,
                                   const Flows& flows, const FlowCounts* others = nullptr);

}  // namespace topoplace::ports
