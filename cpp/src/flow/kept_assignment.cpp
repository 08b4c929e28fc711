#include "flow/kept_assignment.hpp"

#include <algorithm>
#include <utility>

namespace topoplace::flow {
namespace {

// Twice the nodes, and this many more, are allowed for before all is looked at anew.
constexpr std::int64_t kAtLeast = 1024;

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

template <class T>
T& grown(std::vector<T>& rows, std::int32_t i, T none) {
    if (index(i) >= rows.size()) rows.resize(index(i) + 1, none);
    return rows[index(i)];
}

}  // namespace

bool KeptAssignment::start(const ArcLists& lists) {
    const Network network = lists.network();
    const std::int64_t more = network.num_nodes + kAtLeast;
    forget();
    if (!infrastructure_.recognise(network, more)) {
        infrastructure_ = {};
        if (!infrastructure_.recognise(network)) return false;
    }
    if (!infrastructure_.add_tasks(network, assignment_, node_of_)) return false;
    task_of_.assign(network.supply.size(), -1);
    option_of_.assign(network.tail.size(), -1);
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        task_of_[index(node_of_[index(task)])] = task;
        const Assignment::Task& at = assignment_.task(task);
        for (std::int32_t i = at.first; i < at.first + at.count; ++i) {
            option_of_[index(assignment_.option(i).arc)] = i;
        }
    }
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        if (!lists.has_node(node)) infrastructure_.forget(node);  // the number may come again as another
    }
    tasks_ = assignment_.num_tasks();
    return started_ = true;
}

void KeptAssignment::count_out(std::int32_t task) {
    Way& way = grown(way_of_, task, Way{});
    if (way.place < 0) return;
    infrastructure_.add_flow(way, -1, result_.flow);
    result_.cost -= way.cost;
    way = {};
}

void KeptAssignment::release(std::int32_t node) {
    const std::int32_t task = std::exchange(task_of_[index(node)], -1);
    count_out(task);
    assignment_.drop_task(task);
    node_of_[index(task)] = -1;
    infrastructure_.forget(node);
    fresh_.push_back(node);
    --tasks_;
}

void KeptAssignment::arc_added(const ArcLists& network, std::int32_t arc) {
    if (!started_) return;
    const std::int32_t tail = network.tail(arc);
    if (is_task(network.head(arc))) return forget();
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
    if (!assignment_.drop_place(infrastructure_.target(node))) return forget();
    infrastructure_.forget(node);
}

void KeptAssignment::supply_changed(ArcLists& network, std::int32_t node) {
    if (!started_) return;
    if (is_task(node)) return release(node);
    const Role role = infrastructure_.role(node);
    const std::int64_t supply = network.supply(node);
    const bool demand = role == Role::place && infrastructure_.exit_arc(node) < 0;
    if (role == Role::gone || (role == Role::sink && supply < 0)) return;
    if (!demand || supply >= 0 || infrastructure_.target(node) < 0) return forget();
    assignment_.set_capacity(infrastructure_.target(node), -supply);
    wider_ = true;
}

void KeptAssignment::capacity_changed(ArcLists& network, std::int32_t arc, std::int64_t before) {
    if (!started_) return;
    const std::int32_t tail = network.tail(arc);
    const std::int64_t capacity = network.capacity(arc);
    if (is_task(tail)) {
        if ((before == 0) != (capacity == 0)) release(tail);
    } else if (infrastructure_.role(tail) == Role::place && infrastructure_.exit_arc(tail) == arc) {
        assignment_.set_capacity(infrastructure_.target(tail), capacity);
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
        if (option >= 0) assignment_.set_option_cost(task_of_[index(tail)], option, cost);
    } else if (infrastructure_.role(tail) == Role::place && infrastructure_.exit_arc(tail) == arc) {
        assignment_.set_exit_cost(infrastructure_.target(tail), cost);
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
    infrastructure_.add_place(node, arcs[0], columns, assignment_);
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
        grown(option_of_, arc, -1) = -1;
        if (columns.capacity[index(arc)] == 0) continue;
        const Role role = infrastructure_.role(head);
        if (role == Role::gone || role == Role::task || !infrastructure_.fits(cost)) return false;
        const std::int32_t target = infrastructure_.target(head, columns, assignment_);
        if (target == Infrastructure::kTooMany) return false;
        if (target >= 0) options.push_back({cost, target, arc});
    }
    std::reverse(options.begin(), options.end());  // as they were added
    if (options.empty()) return false;
    const std::int32_t task = assignment_.take_task(options);
    const std::int32_t first = assignment_.task(task).first;
    for (std::size_t i = 0; i < options.size(); ++i) {
        option_of_[index(options[i].arc)] = first + static_cast<std::int32_t>(i);
    }
    grown(task_of_, node, -1) = task;
    grown(node_of_, task, -1) = node;
    ++tasks_;
    return true;
}

// Nodes that have come and are no tasks; false if one is nothing that comes and goes.
bool KeptAssignment::adopt_places(const ArcLists& network, std::span<const std::int32_t> fresh) {
    const Network columns = network.network();
    for (const std::int32_t node : fresh) {
        const std::int64_t supply = columns.supply[index(node)];
        if (!network.has_node(node) || supply == 1 || infrastructure_.role(node) != Role::gone) continue;
        if (supply != 0) return false;
        if (network.arcs_from(node).empty() && network.arcs_to(node).empty()) {
            fresh_.push_back(node);  // perhaps its arcs are still to come
        } else if (!adopt_place(network, node)) {
            return false;
        }
    }
    return true;
}

bool KeptAssignment::adopt(const ArcLists& network) {
    const Network columns = network.network();
    const std::vector<std::int32_t> fresh = std::exchange(fresh_, {});
    if (std::exchange(wider_, false) && !infrastructure_.capacities(columns)) return false;
    if (!adopt_places(network, fresh)) return false;
    for (const std::int32_t node : fresh) {
        const bool task = network.has_node(node) && columns.supply[index(node)] == 1;
        if (task && !is_task(node) && !adopt_task(network, node)) return false;
    }
    const std::int32_t sink = infrastructure_.sink();
    if (sink >= 0 && tasks_ > -columns.supply[index(sink)]) return false;
    return tasks_ <= infrastructure_.most_tasks() && infrastructure_.fits_nodes(columns.num_nodes);
}

// What has changed in the solution since it was given out.
void KeptAssignment::update(const Network& network) {
    result_.flow.resize(network.tail.size(), 0);
    result_.potential.assign(network.supply.size(), 0);
    infrastructure_.set_potentials(network, assignment_, node_of_, result_.potential);
    for (const std::int32_t task : assignment_.moved()) {
        count_out(task);
        Way& way = way_of_[index(task)] = way_of(assignment_, task);
        if (way.place < 0) continue;
        infrastructure_.add_flow(way, 1, result_.flow);
        result_.cost += way.cost;
    }
}

std::optional<FlowResult> KeptAssignment::solve(const ArcLists& network, NodeCounter& counter) {
    const bool fresh = !started_ || !adopt(network);
    if (fresh && !start(network)) {
        forget();
        return std::nullopt;
    }
    result_.status = Status::optimal;
    if (fresh ? assignment_.solve(counter) : assignment_.mend(counter)) {
        update(network.network());
        return result_;
    }
    if (counter.stopped()) return FlowResult{};
    forget();
    return std::nullopt;
}

}  // namespace topoplace::flow
