// The vertex of each task, and the seconds of each hop in each phase, kept up to date when tasks move.
#pragma once

#include <cmath>
#include <vector>

#include "job_traffic/flow_maker.hpp"
#include "topoplace/gang_mapping.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::gang_mapping {

struct Moved {
    std::int32_t task = 0, vertex = 0;
};

class GangLoads {
  public:
    // Hops that `set` loads at least, or as much other work, before it looks whether it has to stop.
    static constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
    static constexpr std::uint64_t kStepsPerHop = 100;  // of `WorkMeter`, each a fifth of a nanosecond
    static constexpr double kNever = 1e9;  // seconds at most of one flow on a hop, so that sums stay finite

    explicit GangLoads(const GangParams& params);

    // False if it has to stop before all is loaded: then nothing may be asked.
    bool set(const std::vector<std::int32_t>& vertex_of, WorkMeter& meter);
    // Moves tasks; those that are swapped are both listed.
    void move(std::span<const Moved> moves);
    // Takes the last move back.
    void undo();

    const std::vector<std::int32_t>& vertex_of() const { return vertex_of_; }
    double seconds() const;
    double port_seconds() const { return port_seconds_; }
    double port_gigabytes() const;  // over all uplinks
    // Close to `seconds`, and smaller where fewer hops take nearly as long.
    double smooth() const;
    std::uint64_t hops() const { return work_; }  // that were loaded
    // The same; to rate the rings of another set of vertices counts as many.
    std::uint64_t work() const { return work_ + kWorkOfSet * maker_.num_sets(); }

  private:
    static constexpr std::uint64_t kWorkOfSet = 20'000;

    struct Load {  // of one flow
        std::int32_t slot = 0;
        double seconds = 0.0, gigabytes = 0.0;
    };
    // What a task sends to those that it reaches by one approach, and gets from them.
    struct Side {
        std::int32_t there = 0, back = 0;  // flows of some GB
        double sent = 0.0;
    };
    struct Size {
        double gigabytes = 0.0;
        std::int64_t flows = 0;
    };
    // What other jobs send over a slot, each flow up to the job's largest one there.
    struct Beside {
        std::vector<Size> sizes{};  // of the job's own flows, ascending
        double largest = 0.0;       // for which `seconds` are known
        double seconds = 0.0;
    };
    struct Collective {
        std::int32_t phase = 0;
        bool by_pairs = false;  // each flow follows from its two tasks alone
        double rings = 0.0;
        double port_seconds = 0.0;
        std::vector<Load> loads{};
    };
    struct Phase {
        std::vector<double> seconds{};       // of each slot, without others
        std::vector<Beside> beside{};        // on each slot; empty without others
        std::vector<std::int32_t> flows{};   // on each slot
        std::vector<std::int32_t> in_use{};  // slots with flows, and some without
        std::vector<std::uint8_t> is_listed{};
        double power = 0.0;  // sum of the 16th powers of all seconds over `scale`
        double scale = 1.0;

        double longest(std::size_t slot) const {
            return seconds[slot] + (beside.empty() ? 0.0 : beside[slot].seconds);
        }
    };

    void list_collectives();
    void list_tasks();
    void clear();
    void make(std::size_t number);
    bool put_all_pairs(std::size_t number, WorkMeter& meter);
    void put_pairs_after(std::size_t number, std::size_t own);
    void count_sides(std::size_t number, std::size_t own);
    void put_side(std::size_t number, std::size_t own);
    bool may_count_sides(std::size_t number) const;
    double received(std::size_t number, std::size_t place) const;
    bool has_to_stop(WorkMeter& meter, std::uint64_t steps);
    void count(const Collective& one, std::int32_t sign);
    void list_changed(std::span<const Moved> moves);
    void move_pairs(std::span<const Moved> moves);
    void put_flow(Collective& one, const traffic::Flow& flow, std::int32_t sign);
    void put_route(Collective& one, std::int32_t from, std::int32_t to, double gigabytes, std::int32_t sign);
    void put_on(Collective& one, ports::Hop hop, double gigabytes, std::int32_t flows);
    void measure(Phase& phase);
    // Stands for the hop of what has no path.
    ports::Hop no_hop() const { return 2 * ports_.num_ports(); }
    void put_pairs_of(std::int32_t task, std::int32_t sign);
    void put_pairs_in(std::size_t number, std::int32_t task, std::int32_t sign);
    void change(Phase& phase, const Load& load, std::int32_t flows);
    void put_beside(Beside& beside, const Load& load, std::int32_t flows) const;
    void put_rings(Phase& phase, double seconds, std::int32_t sign) const;
    std::int32_t slot_of(ports::Hop hop);
    static double power_of(double ratio);

    const GangParams& params_;
    const ports::PortNetwork& ports_;
    traffic::FlowMaker maker_;
    traffic::Made made_{};
    std::vector<std::int32_t> vertex_of_{};
    std::vector<Collective> collectives_{};
    std::vector<std::int64_t> first_of_task_{};  // in `of_task_`
    std::vector<std::int32_t> of_task_{};        // collectives of each task
    std::vector<std::uint64_t> seen_{};          // of each collective: the move that changed it last
    std::vector<std::int32_t> changed_{};        // by the last move
    std::vector<Collective> saved_{};            // what these were before
    std::vector<Moved> before_{};
    std::uint64_t stamp_ = 0;
    std::vector<Phase> phases_{};
    std::vector<std::int32_t> slot_of_hop_{};
    std::vector<ports::Hop> hop_of_slot_{};
    std::vector<ports::Hop> hops_{};
    std::vector<Side> sides_{};  // of each approach; at last, of those without a path
    mutable std::vector<double> longest_{};
    double port_seconds_ = 0.0;
    std::uint64_t work_ = 0, looked_ = 0;  // and what it was when `set` looked last
    std::uint64_t spent_ = 0;              // by `set`, in steps of `WorkMeter`
};

}  // namespace topoplace::gang_mapping
