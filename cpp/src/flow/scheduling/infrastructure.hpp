// Recognises scheduling graphs and translates between them and assignments. Callers do not declare them.
//
// A scheduling graph has tasks, which are nodes that supply one unit and that no arc enters; behind them
// nodes without supply and without cycles; and sinks. Nodes that no task reaches, such as tasks that supply
// nothing for now, may be behind narrow arcs: they are set aside. A node whose one arc leads to the only sink
// is a place: a machine, or a job's node for tasks that stay unscheduled. Where there are several sinks, each
// is a place. Any other node only passes units on, as racks and aggregators do. It is a hub over the places
// behind it if no capacity in between can bind: each arc has room for all that the node behind it can pass
// on. Then only the places limit the flow, and tasks, places and hubs are an Assignment whose optimum is the
// network's.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "flow/scheduling/assignment/assignment.hpp"
#include "flow/scheduling/rising_queue.hpp"
#include "graph/index.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::flow {

enum class Role : std::uint8_t {
    task,
    place,
    hub,
    sink,   // the only one; where there are several, they are places
    dead,   // nothing can leave by it
    spare,  // no unit comes to it, and its arcs may be too narrow for one that would
    gone,   // not known, or no longer
};

// How one unit leaves a task.
struct UnitPath {
    std::int32_t arc = kAbsent;  // the task's own
    std::int32_t target = kAbsent;
    std::int32_t leaf = kAbsent;   // if the target is a hub: by which member
    std::int32_t place = kAbsent;  // absent: it has not left
    std::int64_t cost = 0;         // in all

    // True if the unit takes the same arcs.
    bool same_way(const UnitPath& other) const {
        return arc == other.arc && leaf == other.leaf && place == other.place;
    }
};

UnitPath path_of(const Assignment& assignment, std::int32_t task);

// The network without its tasks, as places and hubs.
class Infrastructure {
  public:
    // In place of a target: the node reaches places over too many arcs.
    static constexpr std::int32_t kTooMany = -2;

    Infrastructure() = default;
    // Takes memory for what it holds, and for its work, from here.
    explicit Infrastructure(std::pmr::memory_resource& memory) : memory_(&memory) {}

    // False if the network is no scheduling graph, or would not be with `more` tasks and other nodes.
    bool recognise(const Network& network, std::int64_t more = 0);

    Role role(std::int32_t node) const {
        return index(node) < roles_.size() ? roles_[index(node)] : Role::gone;
    }
    std::int64_t most_tasks() const { return most_tasks_; }  // up to which the graph stays recognised
    // False if a node other than a place may have to hold something back, which can change with the
    // capacities of places. Distinguishes places, hubs and dead ends along the way.
    bool update_capacities(const Network& network);
    // The target that stands for a node, made if it is not there yet; kAbsent if nothing can leave by it, or
    // kTooMany.
    std::int32_t target(std::int32_t node, const Network& network, Assignment& assignment);
    // The target of a node that has one, or kAbsent.
    std::int32_t target(std::int32_t node) const { return target_[index(node)]; }
    // Adds all tasks with their options and returns the node of each; nothing if a task has no option, or
    // they reach too many places through too many nodes.
    std::optional<std::vector<std::int32_t>> add_tasks(const Network& network, Assignment& assignment);
    // Flow, potentials and cost of the network from those of the assignment; `node_of` its tasks.
    FlowResult expand(const Network& network, const Assignment& assignment,
                      std::span<const std::int32_t> node_of) const;
    // Minus what one more unit at each node would cost.
    std::vector<std::int64_t> potentials(const Network& network, const Assignment& assignment,
                                         std::span<const std::int32_t> node_of) const;
    // Adds units to the flow of every arc of a path.
    void add_flow(const UnitPath& path, std::int64_t units, std::span<std::int64_t> flow) const;

    // One-arc places that come and go, as jobs' unscheduled nodes do.
    std::int32_t add_place(std::int32_t node, std::int32_t arc, const Network& network,
                           Assignment& assignment);
    void forget(std::int32_t node);
    std::int32_t exit_arc(std::int32_t node) const;  // of a place, or kAbsent
    // The nodes that no task reached when the network was recognised and that are set aside, each behind
    // those to which its arcs lead.
    std::vector<std::int32_t> spare_nodes() const;
    std::int32_t sink() const { return sink_; }
    bool fits(std::int64_t cost) const { return -most_cost_ <= cost && cost <= most_cost_; }
    bool fits_nodes(std::int64_t nodes) const { return nodes <= most_nodes_; }

  private:
    static constexpr std::int64_t kNarrow = -1;  // in place of a room
    // How units go on from a target.
    struct Exit {
        std::int32_t arc = kAbsent;         // of a place; absent: none
        std::int32_t first_step = kAbsent;  // of a hub: in last_steps_
    };
    // One arc of a path from a hub to a place.
    struct Step {
        std::int32_t arc = kAbsent;
        std::int32_t previous = kAbsent;
    };
    // The cheapest path from the hub being made to a node.
    struct Reached {
        std::int64_t distance = 0;
        std::int32_t arc = kAbsent;  // the last; absent: not reached
        std::int32_t step = kAbsent;
    };
    // A hub being made.
    struct HubMembers {
        explicit HubMembers(std::pmr::memory_resource* memory) : members(memory), last_step(memory) {}

        std::pmr::vector<Member> members;
        std::pmr::vector<std::int32_t> last_step;  // by member
        void clear() {
            members.clear();
            last_step.clear();
        }
        void add(std::int32_t place, std::int64_t distance, std::int32_t step) {
            members.push_back({.place = place, .distance = distance});
            last_step.push_back(step);
        }
    };

    void set_infrastructure_potentials(const Network& network, const Assignment& assignment,
                                       std::span<std::int64_t> potential) const;
    void set_dead_potentials(const Network& network, std::span<std::int64_t> potential) const;
    void set_spare_potentials(const Network& network, std::span<std::int64_t> potential) const;
    std::int64_t best_potential(std::int32_t node, const Network& network, const Assignment& assignment,
                                std::span<const std::int64_t> potential) const;
    std::int64_t room_behind(std::int32_t node, const Network& network,
                             std::span<const std::int64_t> room) const;
    bool check_bounds(const Network& network, std::int64_t more);
    bool assign_roles(const Network& network);
    bool collect_arcs(const Network& network);
    bool count_arcs(const Network& network);
    void list_arcs(const Network& network);
    bool sort_nodes(const Network& network);
    std::span<const std::int32_t> arcs_from(std::int32_t node) const {
        if (role(node) == Role::place && target_[index(node)] >= 0) {
            const std::int32_t& exit = exits_[index(target_[index(node)])].arc;
            return {&exit, exit >= 0 ? std::size_t{1} : 0};  // it may have come with its number since
        }
        if (index(node) + 1 >= arc_starts_.size()) return {};
        const std::size_t first = index(arc_starts_[index(node)]);
        return {arcs_.data() + first, index(arc_starts_[index(node) + 1]) - first};
    }
    std::int32_t make_place(std::int32_t node, std::int32_t arc, const Network& network,
                            Assignment& assignment);
    void reach(std::int32_t node, const Reached& path);
    void pass_on(std::int32_t node, std::int64_t distance, std::int32_t step, const Network& network,
                 Assignment& assignment);
    bool find_members(std::int32_t node, const Network& network, Assignment& assignment);
    void expect_targets(Assignment& assignment);
    std::int32_t make_hub(std::int32_t node, const Network& network, Assignment& assignment);
    void count_options(const Network& network);
    std::pmr::vector<Option> list_options(const Network& network);

    std::pmr::memory_resource* memory_ = std::pmr::get_default_resource();
    std::pmr::vector<Role> roles_{memory_};
    std::pmr::vector<std::uint8_t> entered_{
        memory_};  // by node: a task reaches it; empty once the network is recognised
    std::pmr::vector<std::int32_t> entries_{
        memory_};  // nodes to which arcs of tasks lead, in the order of these
    std::pmr::vector<std::int32_t> option_ends_{memory_};  // by node, then by task, until the tasks are added
    std::pmr::vector<std::int32_t> nodes_{memory_};       // all but tasks, each before those its arcs lead to
    std::pmr::vector<std::int32_t> arc_starts_{memory_};  // by node
    std::pmr::vector<std::int32_t> arcs_{memory_};    // of nodes that are no tasks, with a capacity, by tail
    std::pmr::vector<std::int32_t> target_{memory_};  // by node; absent: none yet
    std::pmr::vector<std::int32_t> rank_{memory_};    // by node: position in nodes_; absent: not there
    std::pmr::vector<std::int32_t> place_of_{
        memory_};  // by position in arcs_: of an arc to the sink that shares its tail
    std::pmr::vector<Exit> exits_{memory_};               // by target
    std::pmr::vector<std::int32_t> last_steps_{memory_};  // of all hubs, by leaf
    std::pmr::vector<Step> steps_{memory_};
    // Of the hub being made: its members, the nodes reached, by position in nodes_, and the positions to go
    // on from.
    HubMembers hub_{memory_};
    std::pmr::vector<Reached> reached_{memory_};
    RisingQueue open_{memory_};
    std::size_t scanned_ = 0;  // arcs, for all hubs
    std::int64_t num_tasks_ = 0;
    std::int32_t num_options_ = 0;
    std::int64_t most_tasks_ = 0;
    std::int64_t most_nodes_ = 0;
    std::int64_t most_cost_ = 0;
    std::int32_t sink_ = kAbsent;
};

}  // namespace topoplace::flow
