// What each change of the network means for the assignment that is kept.
#include "flow/scheduling/kept_assignment.hpp"

#include <algorithm>
#include <concepts>
#include <utility>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

// The network may grow to twice its nodes, and this many more, before it has to be recognised again.
constexpr std::int64_t kSpareNodes = 1024;

// A row of a table that grows when needed.
template <std::copyable T>
T& grown(std::vector<T>& rows, std::int32_t i, T none) {
    if (index(i) >= rows.size()) rows.resize(index(i) + 1, none);
    return rows[index(i)];
}

}  // namespace

bool KeptAssignment::start(const ArcLists& lists) {
    const Network network = lists.network();
    const std::int64_t more = network.num_nodes + kSpareNodes;
    forget();
    if (!infrastructure_.recognise(network, more)) {
        infrastructure_ = {};
        if (!infrastructure_.recognise(network)) return false;
    }
    auto node_of = infrastructure_.add_tasks(network, solver_->assignment());
    if (!node_of) return false;
    solver_->assignment().list_moved();
    node_of_ = std::move(*node_of);
    task_of_.assign(network.supply.size(), kAbsent);
    option_of_.assign(network.tail.size(), kAbsent);
    const Assignment& assignment = solver_->assignment();
    for (std::int32_t task = 0; task < assignment.num_tasks(); ++task) {
        task_of_[index(node_of_[index(task)])] = task;
        const Assignment::Task& at = assignment.task(task);
        for (std::int32_t i = at.first; i < at.end(); ++i) {
            option_of_[index(assignment.option(i).arc)] = i;
        }
    }
    for (const std::int32_t node : infrastructure_.spare_nodes()) set_aside(node);
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        if (!lists.has_node(node)) infrastructure_.forget(node);  // the number may come again as another
    }
    num_tasks_ = assignment.num_tasks();
    return started_ = true;
}

// Takes the path that a task had in the last solution out of it.
void KeptAssignment::subtract_path(std::int32_t task) {
    UnitPath& path = grown(path_of_, task, UnitPath{});
    if (path.place < 0) return;
    infrastructure_.add_flow(path, -1, result_.flow);
    result_.cost -= path.cost;
    path = {};
}

void KeptAssignment::release(std::int32_t node) {
    const std::int32_t task = std::exchange(task_of_[index(node)], kAbsent);
    subtract_path(task);
    TOPOPLACE_ASSERT(node_of_[index(task)] == node);
    solver_->remove_task(task);
    node_of_[index(task)] = kAbsent;
    infrastructure_.forget(node);
    fresh_.push_back(node);
    --num_tasks_;
    TOPOPLACE_ASSERT(num_tasks_ == solver_->assignment().num_present_tasks());
}

void KeptAssignment::set_aside(std::int32_t node) {
    TOPOPLACE_ASSERT(!is_task(node) && !is_spare(node));
    infrastructure_.forget(node);
    grown(spare_, node, std::uint8_t{0}) = 1;
    spares_.push_back(node);
}

void KeptAssignment::use_spare(std::int32_t node) {
    spare_[index(node)] = 0;
    fresh_.push_back(node);
}

void KeptAssignment::arc_added(const ArcLists& network, std::int32_t arc) {
    if (!started_) return;
    const std::int32_t tail = network.tail(arc);
    if (is_task(network.head(arc)) || is_spare(network.head(arc))) return forget();
    if (is_task(tail)) return release(tail);
    if (infrastructure_.role(tail) != Role::gone) forget();
}

void KeptAssignment::arc_leaves(const ArcLists& network, std::int32_t arc) {
    if (!started_) return;
    const std::int32_t tail = network.tail(arc);
    if (is_task(tail)) return release(tail);
    if (infrastructure_.role(tail) != Role::gone) forget();
}

void KeptAssignment::node_leaves(const ArcLists& network, std::int32_t node) {
    if (!started_) return;
    if (is_task(node)) return release(node);
    if (is_spare(node)) return use_spare(node);
    const Role role = infrastructure_.role(node);
    if (role == Role::gone) return;
    if (role != Role::place || infrastructure_.exit_arc(node) < 0) return forget();
    for (const std::int32_t arc : network.arcs_to(node)) {
        const std::int32_t tail = network.tail(arc);
        if (is_task(tail)) {
            release(tail);
        } else if (infrastructure_.role(tail) != Role::gone) {
            return forget();
        }
    }
    if (!solver_->assignment().remove_place(infrastructure_.target(node))) return forget();
    infrastructure_.forget(node);
}

void KeptAssignment::supply_changed(ArcLists& network, std::int32_t node) {
    if (!started_) return;
    if (is_task(node)) return release(node);
    if (is_spare(node)) return use_spare(node);
    const Role role = infrastructure_.role(node);
    const std::int64_t supply = network.supply(node);
    const bool demand = role == Role::place && infrastructure_.exit_arc(node) < 0;
    if (role == Role::gone || (role == Role::sink && supply < 0)) return;
    if (!demand || supply >= 0 || infrastructure_.target(node) < 0) return forget();
    solver_->set_capacity(infrastructure_.target(node), -supply);
    wider_ = true;
}

void KeptAssignment::capacity_changed(ArcLists& network, std::int32_t arc, std::int64_t before) {
    if (!started_) return;
    const std::int32_t tail = network.tail(arc);
    const std::int64_t capacity = network.capacity(arc);
    if (is_spare(network.head(arc))) {
        if (before == 0) forget();
    } else if (is_task(tail)) {
        if ((before == 0) != (capacity == 0)) release(tail);
    } else if (infrastructure_.role(tail) == Role::place && infrastructure_.exit_arc(tail) == arc) {
        solver_->set_capacity(infrastructure_.target(tail), capacity);
        wider_ = wider_ || capacity > before;
    } else if (infrastructure_.role(tail) != Role::gone) {
        forget();
    }
}

void KeptAssignment::cost_changed(ArcLists& network, std::int32_t arc) {
    if (!started_) return;
    const std::int32_t tail = network.tail(arc);
    const std::int64_t cost = network.cost(arc);
    if (!infrastructure_.fits(cost)) return forget();
    if (is_task(tail)) {
        const std::int32_t option = option_of_[index(arc)];
        if (option >= 0) solver_->set_option_cost(task_of_[index(tail)], option, cost);
    } else if (infrastructure_.role(tail) == Role::place && infrastructure_.exit_arc(tail) == arc) {
        solver_->set_exit_cost(infrastructure_.target(tail), cost);
    } else if (infrastructure_.role(tail) != Role::gone) {
        forget();
    }
}

// A job's unscheduled node: its one arc leads to the sink.
bool KeptAssignment::adopt_place(const ArcLists& network, std::int32_t node) {
    const auto arcs = network.arcs_from(node);
    const Network columns = network.network();
    if (arcs.size() != 1 || network.head(arcs[0]) != infrastructure_.sink()) return false;
    if (!infrastructure_.fits(columns.cost[index(arcs[0])])) return false;
    for (const std::int32_t arc : network.arcs_to(node)) {
        if (infrastructure_.role(network.tail(arc)) != Role::gone) return false;
    }
    infrastructure_.add_place(node, arcs[0], columns, solver_->assignment());
    return true;
}

bool KeptAssignment::adopt_task(const ArcLists& network, std::int32_t node) {
    const Network columns = network.network();
    std::vector<Option> options;
    for (const std::int32_t arc : network.arcs_to(node)) {
        if (columns.capacity[index(arc)] > 0) return false;
    }
    for (const std::int32_t arc : network.arcs_from(node)) {
        const std::int32_t head = network.head(arc);
        const std::int64_t cost = columns.cost[index(arc)];
        grown(option_of_, arc, kAbsent) = kAbsent;
        if (columns.capacity[index(arc)] == 0) continue;
        const Role role = infrastructure_.role(head);
        if (role == Role::gone || role == Role::task || !infrastructure_.fits(cost)) return false;
        const std::int32_t target = infrastructure_.target(head, columns, solver_->assignment());
        if (target == Infrastructure::kTooMany) return false;
        if (target >= 0) options.push_back({.cost = cost, .target = target, .arc = arc});
    }
    std::reverse(options.begin(), options.end());  // as they were added
    if (options.empty()) return false;
    const std::int32_t task = solver_->add_task(options);
    const std::int32_t first = solver_->assignment().task(task).first;
    for (std::size_t i = 0; i < options.size(); ++i) {
        option_of_[index(options[i].arc)] = first + static_cast<std::int32_t>(i);
    }
    TOPOPLACE_ASSERT(!is_task(node));
    grown(task_of_, node, kAbsent) = task;
    grown(node_of_, task, kAbsent) = node;
    ++num_tasks_;
    TOPOPLACE_ASSERT(num_tasks_ == solver_->assignment().num_present_tasks());
    return true;
}

// A node without supply that no unit can enter.
bool KeptAssignment::may_be_spare(const ArcLists& network, std::int32_t node) const {
    const auto arcs = network.arcs_to(node);
    const std::span<const std::int64_t> capacity = network.network().capacity;
    return std::all_of(arcs.begin(), arcs.end(), [&](std::int32_t arc) { return capacity[index(arc)] == 0; });
}

// Adopts nodes that were added and are no tasks; false if one is neither a place that may come and go nor a
// spare.
bool KeptAssignment::adopt_places(const ArcLists& network, std::span<const std::int32_t> fresh) {
    const Network columns = network.network();
    for (const std::int32_t node : fresh) {
        const std::int64_t supply = columns.supply[index(node)];
        if (!network.has_node(node) || supply == 1 || is_spare(node) ||
            infrastructure_.role(node) != Role::gone)
            continue;
        if (supply != 0) return false;
        if (network.arcs_from(node).empty() && network.arcs_to(node).empty()) {
            fresh_.push_back(node);  // its arcs may still be added
        } else if (!adopt_place(network, node)) {
            if (!may_be_spare(network, node)) return false;
            set_aside(node);
        }
    }
    return true;
}

bool KeptAssignment::adopt(const ArcLists& network) {
    const Network columns = network.network();
    const std::vector<std::int32_t> fresh = std::exchange(fresh_, {});
    std::erase_if(spares_, [&](std::int32_t node) { return !is_spare(node); });
    if (std::exchange(wider_, false) && !infrastructure_.update_capacities(columns)) return false;
    if (!adopt_places(network, fresh)) return false;
    for (const std::int32_t node : fresh) {
        const bool task = network.has_node(node) && columns.supply[index(node)] == 1;
        if (task && !is_task(node) && !adopt_task(network, node)) return false;
    }
    const std::int32_t sink = infrastructure_.sink();
    if (sink >= 0 && num_tasks_ > -columns.supply[index(sink)]) return false;
    return num_tasks_ <= infrastructure_.most_tasks() && infrastructure_.fits_nodes(columns.num_nodes);
}

// As high as its own arcs ask, since no unit comes to a spare node.
void KeptAssignment::set_spare_potentials(const ArcLists& network) {
    const Network columns = network.network();
    for (const std::int32_t node : spares_) {
        std::int64_t& least = result_.potential[index(node)];
        least = -kFar;
        for (std::int32_t arc = network.first_from(node); arc >= 0; arc = network.next_from(arc)) {
            if (columns.capacity[index(arc)] == 0) continue;
            least = std::max(least, result_.potential[index(network.head(arc))] - columns.cost[index(arc)]);
        }
    }
}

// Brings the solution last returned up to date.
void KeptAssignment::update(const ArcLists& lists) {
    const Network network = lists.network();
    result_.flow.resize(network.tail.size(), 0);
    result_.potential = infrastructure_.potentials(network, solver_->assignment(), node_of_);
    set_spare_potentials(lists);
    for (const std::int32_t task : solver_->assignment().take_moved()) {
        const UnitPath path = path_of(solver_->assignment(), task);
        UnitPath& before = grown(path_of_, task, UnitPath{});
        if (path.same_way(before)) {
            result_.cost += path.cost - before.cost;
            before = path;
            continue;
        }
        subtract_path(task);
        before = path;
        if (path.place < 0) continue;
        infrastructure_.add_flow(path, 1, result_.flow);
        result_.cost += path.cost;
    }
}

std::optional<FlowResult> KeptAssignment::solve(const ArcLists& network, WorkMeter& meter) {
    const bool fresh = !started_ || !adopt(network);
    if (fresh && !start(network)) {
        forget();
        return std::nullopt;
    }
    result_.status = Status::optimal;
    if (fresh ? solver_->solve(meter) : solver_->repair(meter)) {
        update(network);
        return result_;
    }
    if (meter.stopped()) return FlowResult{};
    forget();
    return std::nullopt;
}

}  // namespace topoplace::flow
