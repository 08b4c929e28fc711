// The flows of one collective, made again and again for tasks on other vertices.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "topoplace/job_traffic.hpp"

namespace topoplace::traffic {

struct Flow {
    std::int32_t from = 0, to = 0;
    double there = 0.0, back = 0.0;
};

// What a collective sends, and the slowest rings that are planned for it.
struct Made {
    std::vector<Flow> flows{};
    JobFlows::Rings rings{};

    void clear() {
        flows.clear();
        rings = {};
    }
};

class FlowMaker {
  public:
    FlowMaker(const CollectiveNetwork& network, const JobCollectives& job, bool planned);

    // Appends to `made`; `vertex_of` has a vertex for each task.
    void make(std::size_t collective, std::span<const std::int32_t> vertex_of, Made& made);

    // Different sets of a machine's vertices whose rings were asked for so far: each may take a search.
    std::uint64_t num_sets() const { return num_sets_; }

  private:
    using Vertex = CollectiveNetwork::Vertex;

    // An adapter of a part, and the vertices at which channels come in and go out.
    struct Adapter {
        std::int32_t rail = 0, machine = 0, number = 0, in = 0, out = 0;
    };
    // The vertices of a collective in one domain, in the order of their tasks, and their adapters, sorted by
    // rail and machine.
    struct Part {
        std::vector<std::int32_t> vertices{};
        std::vector<Adapter> adapters{};
    };
    // How fast the vertices of a part are joined: 0 for rings that are not planned.
    struct Joined {
        double gb_per_s = 0.0;
        bool by_switches = false;
        bool by_ports = false;
    };

    void add_pairs(std::size_t collective, std::span<const std::int32_t> vertices, Made& made) const;
    void add_in_order(std::span<const std::int32_t> vertices, bool closed, double there, double back,
                      Made& made) const;
    void add_planned(Kind kind, std::span<const std::int32_t> vertices, double gigabytes, Made& made);
    bool add_parts(Kind kind, double gigabytes, Made& made);
    void split(std::span<const std::int32_t> vertices);
    bool have_adapters() const;
    void list_adapters(Part& part) const;
    void add_step(const Part& one, const Part& next, std::size_t channels, double share, Made& made);
    Joined joined(Kind kind, std::span<const std::int32_t> vertices);
    bool through_switches(Kind kind, std::span<const std::int32_t> vertices, Joined& found) const;
    bool add_inside(Kind kind, Part& part, double gigabytes, std::size_t channels, Made& made);
    bool add_ring_by_ports(const Part& part, double gigabytes, std::size_t channels, double planned,
                           Made& made);
    double seconds_alone(std::span<const Flow> flows);
    double rate_of(const collective::RingRates& rates);

    const CollectiveNetwork& network_;
    const JobCollectives& job_;
    bool planned_;
    std::vector<std::int32_t> vertices_{};
    std::vector<std::int32_t> part_of_{};  // of each domain in use
    std::vector<Part> parts_{};            // the first `num_parts_` are in use
    std::size_t num_parts_ = 0;
    std::vector<std::int32_t> sorted_{};
    std::vector<std::pair<ports::Hop, double>> loads_{};
    std::vector<ports::Hop> hops_{};
    std::vector<std::uint8_t> taken_{};
    std::map<const collective::RingRates*, std::unordered_map<std::uint64_t, double>> rates_{};
    std::uint64_t num_sets_ = 0;
};

}  // namespace topoplace::traffic
