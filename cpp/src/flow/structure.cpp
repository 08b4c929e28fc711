#include "flow/structure.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace topoplace::flow {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

bool Infrastructure::bounds(const Network& network, std::int64_t more) {
    most_nodes_ = std::int64_t{network.num_nodes} + more;
    most_cost_ = kFar / (8 * (most_nodes_ + 1));  // twice a value is a key, and distances add two and a cost
    const bool lower = std::any_of(network.lower.begin(), network.lower.end(),
                                   [](std::int64_t bound) { return bound != 0; });
    return !lower && std::all_of(network.cost.begin(), network.cost.end(),
                                 [&](std::int64_t cost) { return fits(cost); });
}

bool Infrastructure::roles(const Network& network) {
    roles_.assign(network.supply.size(), Role::dead);
    std::vector<std::uint8_t> entered(network.supply.size(), 0);
    for (std::size_t arc = 0; arc < network.head.size(); ++arc) {
        if (network.capacity[arc] > 0) entered[index(network.head[arc])] = 1;
    }
    std::int32_t sinks = 0;
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        const std::int64_t supply = network.supply[index(node)];
        if (supply > 1 || (supply == 1 && entered[index(node)] != 0)) return false;
        if (supply == 1) roles_[index(node)] = Role::task;
        if (supply < 0) roles_[index(node)] = Role::place;
        num_tasks_ += supply == 1 ? 1 : 0;
        sinks += supply < 0 ? 1 : 0;
        if (supply < 0) sink_ = node;
    }
    if (sinks == 1) {
        if (num_tasks_ + network.supply[index(sink_)] > 0) return false;  // it cannot take them all
        roles_[index(sink_)] = Role::sink;
    } else {
        sink_ = -1;
    }
    return num_tasks_ > 0 && sinks > 0;
}

bool Infrastructure::arcs(const Network& network) {
    arc_starts_.assign(network.supply.size() + 1, 0);
    for (std::size_t arc = 0; arc < network.tail.size(); ++arc) {
        const std::int32_t tail = network.tail[arc];
        if (roles_[index(tail)] == Role::task || network.capacity[arc] == 0) continue;
        if (roles_[index(tail)] != Role::dead) return false;  // a sink passes nothing on
        arcs_.push_back(static_cast<std::int32_t>(arc));
        ++arc_starts_[index(tail) + 1];
    }
    std::partial_sum(arc_starts_.begin(), arc_starts_.end(), arc_starts_.begin());
    std::stable_sort(arcs_.begin(), arcs_.end(), [&](std::int32_t a, std::int32_t b) {
        return network.tail[index(a)] < network.tail[index(b)];
    });
    return true;
}

std::span<const std::int32_t> Infrastructure::arcs_from(std::int32_t node) const {
    if (role(node) == Role::place && target_[index(node)] >= 0) {
        const std::int32_t& exit = exit_arc_[index(target_[index(node)])];
        return {&exit, exit >= 0 ? std::size_t{1} : 0};  // it may have come with its number since
    }
    if (index(node) + 1 >= arc_starts_.size()) return {};
    const auto first = static_cast<std::size_t>(arc_starts_[index(node)]);
    const auto last = static_cast<std::size_t>(arc_starts_[index(node) + 1]);
    return {arcs_.data() + first, last - first};
}

bool Infrastructure::order(const Network& network) {
    std::vector<std::int32_t> open(network.supply.size(), 0);
    for (const std::int32_t arc : arcs_) ++open[index(network.head[index(arc)])];
    nodes_.reserve(network.supply.size() - static_cast<std::size_t>(num_tasks_));
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        if (open[index(node)] == 0 && roles_[index(node)] != Role::task) nodes_.push_back(node);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        for (const std::int32_t arc : arcs_from(nodes_[i])) {
            const std::int32_t head = network.head[index(arc)];
            if (--open[index(head)] == 0) nodes_.push_back(head);
        }
    }
    return nodes_.size() + static_cast<std::size_t>(num_tasks_) == network.supply.size();
}

// Tells places, hubs and dead ends apart on the way.
bool Infrastructure::capacities(const Network& network) {
    std::vector<std::int64_t> room(network.supply.size(), 0);
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
        Role& role = roles_[index(*node)];
        if (role == Role::sink || role == Role::gone) continue;
        if (role == Role::place) room[index(*node)] = std::min(most_tasks_, -network.supply[index(*node)]);
        for (const std::int32_t arc : arcs_from(*node)) {
            const std::int32_t head = network.head[index(arc)];
            std::int64_t passed = network.capacity[index(arc)];
            if (head != sink_) {
                if (passed < room[index(head)]) return false;
                passed = room[index(head)];
            }
            room[index(*node)] = std::min(most_tasks_, room[index(*node)] + std::min(most_tasks_, passed));
        }
        if (role != Role::dead || room[index(*node)] == 0) continue;
        const auto arcs = arcs_from(*node);
        const bool place = arcs.size() == 1 && network.head[index(arcs[0])] == sink_;
        role = place ? Role::place : Role::hub;
    }
    return true;
}

bool Infrastructure::recognise(const Network& network, std::int64_t more) {
    if (!bounds(network, more) || !roles(network)) return false;
    most_tasks_ = num_tasks_ + more;
    target_.assign(network.supply.size(), -1);
    if (!arcs(network) || !order(network) || !capacities(network)) return false;
    rank_.assign(network.supply.size(), -1);
    for (std::size_t i = 0; i < nodes_.size(); ++i) rank_[index(nodes_[i])] = static_cast<std::int32_t>(i);
    reached_.resize(nodes_.size());
    place_of_.assign(arcs_.size(), -1);
    return true;
}

std::int32_t Infrastructure::make_place(std::int32_t node, std::int32_t arc, const Network& network,
                                        Assignment& assignment) {
    std::int64_t capacity = node == sink_ ? most_tasks_ : -network.supply[index(node)];
    std::int64_t cost = 0;
    if (arc >= 0) {
        capacity = network.capacity[index(arc)];
        cost = network.cost[index(arc)];
    }
    const std::int32_t place = assignment.add_place(capacity, cost);
    if (index(place) >= exit_arc_.size()) {
        exit_arc_.resize(index(place) + 1, -1);
        last_step_.resize(index(place) + 1);
    }
    exit_arc_[index(place)] = arc;
    return place;
}

// The cheapest way to a node, for when its turn comes in the order of nodes_.
void Infrastructure::reach(std::int32_t node, const Reached& way) {
    const std::int32_t rank = rank_[index(node)];
    Reached& known = reached_[index(rank)];
    if (known.arc < 0) {
        open_.push_back(rank);
        std::push_heap(open_.begin(), open_.end(), std::greater<>());
    }
    if (known.arc < 0 || way.distance < known.distance) known = way;
}

std::int32_t Infrastructure::make_hub(std::int32_t hub, const Network& network, Assignment& assignment) {
    const std::size_t most_looks = 4 * (network.tail.size() + network.supply.size());
    std::vector<Member> members;
    std::vector<std::int32_t> last;
    const auto add = [&](std::int32_t place, std::int64_t distance, std::int32_t step) {
        members.push_back({place, distance});
        last.push_back(step);
    };
    const auto pass_on = [&](std::int32_t node, std::int64_t distance, std::int32_t step) {
        for (const std::int32_t& arc : arcs_from(node)) {
            const std::int32_t head = network.head[index(arc)];
            if (head != sink_) {
                reach(head, {distance + network.cost[index(arc)], arc, step});
                continue;
            }
            std::int32_t& place = place_of_[static_cast<std::size_t>(&arc - arcs_.data())];
            if (place < 0) place = make_place(node, arc, network, assignment);
            add(place, distance, step);
        }
        looks_ += arcs_from(node).size();
    };
    for (pass_on(hub, 0, -1); !open_.empty() && looks_ <= most_looks;) {
        std::pop_heap(open_.begin(), open_.end(), std::greater<>());
        const std::int32_t node = nodes_[index(open_.back())];
        const Reached at = std::exchange(reached_[index(open_.back())], {});
        open_.pop_back();
        steps_.push_back({at.arc, at.step});
        const auto step = static_cast<std::int32_t>(steps_.size()) - 1;
        if (role(node) == Role::place) add(target(node, network, assignment), at.distance, step);
        if (role(node) == Role::hub) pass_on(node, at.distance, step);
    }
    if (looks_ > most_looks) return kTooMany;
    const std::int32_t target = assignment.add_hub(members);
    exit_arc_.resize(std::max(exit_arc_.size(), index(target) + 1), -1);
    last_step_.resize(exit_arc_.size());
    exit_arc_[index(target)] = -1;
    last_step_[index(target)] = std::move(last);
    return target;
}

std::int32_t Infrastructure::target(std::int32_t node, const Network& network, Assignment& assignment) {
    std::int32_t& target = target_[index(node)];
    if (target >= 0 || role(node) == Role::dead) return target;
    if (role(node) == Role::hub) return target = make_hub(node, network, assignment);
    const auto arcs = arcs_from(node);
    return target = make_place(node, arcs.empty() ? -1 : arcs[0], network, assignment);
}

void Infrastructure::add_flow(const Way& way, std::int64_t units, std::span<std::int64_t> flow) const {
    flow[index(way.arc)] += units;
    if (way.leaf >= 0) {
        std::int32_t step = last_step_[index(way.target)][index(way.leaf)];
        for (; step >= 0; step = steps_[index(step)].previous) flow[index(steps_[index(step)].arc)] += units;
    }
    const std::int32_t exit = exit_arc_[index(way.place)];
    if (exit >= 0) flow[index(exit)] += units;
}

std::int32_t Infrastructure::exit_arc(std::int32_t node) const {
    const std::int32_t target = target_[index(node)];
    return target >= 0 ? exit_arc_[index(target)] : -1;
}

std::int32_t Infrastructure::add_place(std::int32_t node, std::int32_t arc, const Network& network,
                                       Assignment& assignment) {
    if (index(node) >= roles_.size()) {
        roles_.resize(index(node) + 1, Role::gone);
        target_.resize(index(node) + 1, -1);
        rank_.resize(index(node) + 1, -1);
    }
    if (rank_[index(node)] < 0) {
        rank_[index(node)] = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back(node);
    }
    roles_[index(node)] = Role::place;
    return target_[index(node)] = make_place(node, arc, network, assignment);
}

void Infrastructure::forget(std::int32_t node) {
    if (index(node) >= roles_.size()) return;
    roles_[index(node)] = Role::gone;
    target_[index(node)] = -1;
}

Way way_of(const Assignment& assignment, std::int32_t task) {
    const Assignment::Task& at = assignment.task(task);
    if (at.place < 0) return {};
    const Option& option = assignment.option(at.option);
    return {option.arc, option.target, at.leaf, at.place, at.cost + assignment.exit_cost(at.place)};
}

void Infrastructure::set_potentials(const Network& network, const Assignment& assignment,
                                    std::span<const std::int32_t> node_of,
                                    std::span<std::int64_t> potential) const {
    set_infrastructure_potentials(network, assignment, potential);
    for (std::int32_t i = 0; i < assignment.num_tasks(); ++i) {
        const Assignment::Task& task = assignment.task(i);
        if (task.place < 0) continue;
        const Option& option = assignment.option(task.option);
        potential[index(node_of[index(i)])] = -option.cost - assignment.value(option.target);
    }
    set_dead_potentials(network, potential);
}

void Infrastructure::set_infrastructure_potentials(const Network& network, const Assignment& assignment,
                                                   std::span<std::int64_t> potential) const {
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
        const std::int32_t target = target_[index(*node)];
        std::int64_t& value = potential[index(*node)];
        value = 0;
        if (role(*node) == Role::place && target >= 0) {
            value = -assignment.value(target);
        } else if (role(*node) == Role::place || role(*node) == Role::hub) {
            value = -kFar;
            const auto arcs = arcs_from(*node);
            for (const std::int32_t& arc : arcs) {
                if (role(network.head[index(arc)]) == Role::dead) continue;
                const std::int32_t place = place_of_[static_cast<std::size_t>(&arc - arcs_.data())];
                const std::int64_t through =
                    place >= 0 ? -assignment.value(place)
                               : potential[index(network.head[index(arc)])] - network.cost[index(arc)];
                value = std::max(value, through);
            }
            if (arcs.empty()) value = 0;  // a sink that no task looks for
        }
    }
}

// Where nothing leaves, nothing may want to come: a dead end's potential is as low as its arcs ask.
void Infrastructure::set_dead_potentials(const Network& network, std::span<std::int64_t> potential) const {
    const bool none = std::none_of(nodes_.begin(), nodes_.end(),
                                   [&](std::int32_t node) { return role(node) == Role::dead; });
    if (none) return;
    const auto lower = [&](std::size_t arc) {
        std::int64_t& head = potential[index(network.head[arc])];
        if (role(network.head[arc]) != Role::dead || network.capacity[arc] == 0) return;
        head = std::min(head, potential[index(network.tail[arc])] + network.cost[arc]);
    };
    for (std::size_t arc = 0; arc < network.tail.size(); ++arc) {
        const Role tail = role(network.tail[arc]);  // `gone` is a task that has come since
        if (tail == Role::task || tail == Role::gone) lower(arc);
    }
    for (const std::int32_t node : nodes_) {
        if (role(node) != Role::hub && role(node) != Role::dead) continue;
        for (const std::int32_t arc : arcs_from(node)) lower(index(arc));
    }
}

void Infrastructure::expand(const Network& network, const Assignment& assignment,
                            std::span<const std::int32_t> node_of, FlowResult& result) const {
    result.flow.assign(network.tail.size(), 0);
    result.potential.resize(network.supply.size());
    set_potentials(network, assignment, node_of, result.potential);
    for (std::int32_t task = 0; task < assignment.num_tasks(); ++task) {
        const Way way = way_of(assignment, task);
        add_flow(way, 1, result.flow);
        result.cost += way.cost;
    }
}

}  // namespace topoplace::flow
