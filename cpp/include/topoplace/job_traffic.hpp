// Job traffic: what the collectives of a job send through a network of ports, and how long it takes.
//
// The tasks of a job are on vertices. A domain is a set of vertices that a collective library joins by rings
// of its own, such as a machine, or the machines of an NVLink domain. A ring collective carries x GB from
// each task to the next one. Inside a domain with several of its tasks it takes x / (the rate of the rings
// planned among them). Between domains it runs in channels: in the order in which its tasks first name them,
// each domain sends x / c GB to the next one over each of c adapters, where c is the fewest distinct adapters
// that its vertices have in one domain. Adapters of equal rail go together, in the order of their rails.
// Other collectives send from each task by its own route.
//
// Rings that pass ports, because no switch and no direct link joins the vertices, load these ports too, in an
// order in which near vertices follow each other; alone, such a ring takes as long as it is planned to. If
// some have no path in that order, the whole collective passes ports in the order of its tasks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/port_network.hpp"
#include "topoplace/ring_rates.hpp"

namespace topoplace::traffic {

using ports::kNone;

// Arrays of n have an entry for each vertex.
struct CollectiveNetworkParams {
    std::span<const std::int32_t> machine{};   // (n) from 0
    std::span<const std::int32_t> local{};     // (n) number on its machine, as in the rates of the machine
    std::span<const std::int32_t> domain{};    // (n) from 0
    std::span<const std::int32_t> adapter{};   // (n) its port; kNone without one
    std::span<const std::int32_t> rail{};      // (n) of its adapter
    std::span<const std::int32_t> near{};      // (n) place in the order of near vertices
    std::span<const std::int32_t> switches{};  // (n) vertices with equal numbers share switches; or kNone
    std::span<const double> switched{};      // (n) GB/s of rings through these; 0: rates of the machine count
    std::span<const double> reduced{};       // (n) GB/s at which the switches reduce for a vertex; 0: not
    std::span<const double> most_reduced{};  // (n) bus GB/s of that at the most
    std::span<const std::uint8_t> has_links{};  // (n) 1: direct links to others
    std::span<const std::int32_t> rates_of{};   // of each machine: number in `rates`; or kNone
    std::vector<const collective::RingRates*> rates{};
};

enum class Kind : std::uint8_t {
    kReduce,  // a ring; switches may reduce instead
    kRing,    // from each task to the next one, and from the last to the first
    kChain,   // the same without the way back
    kPairs,   // half of each pair's GB each way
    kSends,   // the same between tasks in sequence
};

// Each task sends to the next one only.
constexpr bool is_ring(Kind kind) { return kind <= Kind::kChain; }

struct JobCollectives {
    std::span<const std::int64_t> phase_ends{};  // collectives of each phase and those before it
    std::span<const std::uint8_t> kinds{};       // of each collective
    std::span<const std::int64_t> ends{};        // tasks of each collective and those before it
    std::span<const std::int32_t> tasks{};
    std::span<const double> gigabytes{};  // of each collective: between two neighbours, both ways together
    // Of each entry of `tasks`: what it gets from each other task of its collective, where that differs; -1
    // where not. Empty: nowhere. `gigabytes` is then twice the least of these, as bounds ask.
    std::span<const double> received{};
    // Of each run of collectives of one kind and number of tasks: these and those before it. Empty: each
    // collective is one.
    std::span<const std::int64_t> batch_ends{};

    std::int64_t begin_of(std::size_t collective) const { return collective == 0 ? 0 : ends[collective - 1]; }
    std::int64_t size_of(std::size_t collective) const { return ends[collective] - begin_of(collective); }
};

// Collectives of one kind and number of tasks.
struct Batch {
    Kind kind = Kind::kSends;
    std::size_t size = 0;                   // tasks of each collective
    std::span<const std::int64_t> tasks{};  // of one collective after the other
    std::span<const double> gigabytes{};    // of each collective, as in JobCollectives
    std::span<const double> received{};     // of each task, as there; empty: it differs nowhere
};

// Collectives with arrays of their own.
struct KeptCollectives {
    std::vector<std::int64_t> phase_ends{}, ends{};
    std::vector<std::uint8_t> kinds{};
    std::vector<std::int32_t> tasks{};
    std::vector<double> gigabytes{}, received{};
    std::vector<std::int64_t> batch_ends{};

    JobCollectives view() const { return {phase_ends, kinds, ends, tasks, gigabytes, received, batch_ends}; }
};

// Each list of batches is a phase. A batch has `size` tasks for each of its collectives.
KeptCollectives joined(std::span<const std::vector<Batch>> phases);

class CollectiveNetwork {
  public:
    // The parameter, the index and the value that is out of range.
    [[nodiscard]] static Fault check(const ports::PortNetwork& network,
                                     const CollectiveNetworkParams& params);
    // The network of ports and the rates have to outlive it.
    CollectiveNetwork(const ports::PortNetwork& network, const CollectiveNetworkParams& params);

    struct Vertex {
        std::int32_t machine = 0, local = 0, domain = 0, adapter = kNone, rail = 0, near = 0,
                     switches = kNone;
        bool has_links = false;
        double switched = 0.0, reduced = 0.0, most_reduced = 0.0;
    };

    const ports::PortNetwork& ports() const { return ports_; }
    const Vertex& vertex(std::int32_t number) const { return vertices_[static_cast<std::size_t>(number)]; }
    std::int32_t num_domains() const { return num_domains_; }
    const collective::RingRates* rates_of(std::int32_t machine) const {
        return rates_of_[static_cast<std::size_t>(machine)];
    }

  private:
    const ports::PortNetwork& ports_;
    std::vector<Vertex> vertices_;
    std::vector<const collective::RingRates*> rates_of_;
    std::int32_t num_domains_ = 0;
};

// Bus GB/s of an all-reduce among n vertices in which switches reduce: each vertex sends and gets 1 + 1 / n
// of its buffer, at `reduced` GB/s.
double reduced_bandwidth(std::int64_t n, double reduced, double most);

struct JobFlows {
    std::vector<std::int64_t> phase_ends{};  // flows of each phase and those before it
    std::vector<std::int32_t> from{}, to{};
    std::vector<double> there{}, back{};
    struct Rings {
        double seconds = 0.0;
        std::int64_t collective = -1;  // that takes so long inside a domain; -1 for none
        std::int32_t vertex = kNone;   // one of its vertices there
        bool by_switches = false;      // they reduce, and no ring runs
    };
    std::vector<Rings> rings{};  // of each phase, the slowest

    ports::Flows flows() const { return {from, to, there, back}; }
};

// Names the first argument of the collectives that is out of range; num_tasks: of the job.
[[nodiscard]] Fault check(const JobCollectives& job, std::size_t num_tasks);
[[nodiscard]] Fault check(const CollectiveNetwork& network, const JobCollectives& job,
                          std::span<const std::int32_t> vertex_of);

// What the collectives of a job send, with task i on vertex `vertex_of[i]`. Without `planned`, there are
// neither rings inside domains nor channels: every ring passes ports in the order of its tasks.
JobFlows flows_of(const CollectiveNetwork& network, const JobCollectives& job,
                  std::span<const std::int32_t> vertex_of, bool planned = true);

struct JobTime {
    double seconds = 0.0;       // summed over the phases; infinity where two vertices have no path
    double port_seconds = 0.0;  // of all uplinks
};

// How long that takes, beside the flows of others.
JobTime time_of(const CollectiveNetwork& network, const JobFlows& flows,
                const ports::FlowCounts* others = nullptr);
JobTime time_of(const CollectiveNetwork& network, const JobCollectives& job,
                std::span<const std::int32_t> vertex_of, const ports::FlowCounts* others = nullptr);

}  // namespace topoplace::traffic
