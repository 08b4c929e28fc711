// Recognition of scheduling graphs, their targets, and the flow and potentials of a solved assignment.
#include "flow/scheduling/infrastructure.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "topoplace/assert.hpp"

namespace topoplace::flow {

// ---- recognition ------------------------------------------------------------------------------------------

bool Infrastructure::check_bounds(const Network& network, std::int64_t more) {
    most_nodes_ = std::int64_t{network.num_nodes} + more;
    most_cost_ = kFar / (8 * (most_nodes_ + 1));  // twice a value is a key, and distances add two and a cost
    const bool lower = std::any_of(network.lower.begin(), network.lower.end(),
                                   [](std::int64_t bound) { return bound != 0; });
    std::int64_t least = 0;
    std::int64_t greatest = 0;
    for (const std::int64_t cost : network.cost) {
        least = std::min(least, cost);
        greatest = std::max(greatest, cost);
    }
    return !lower && fits(least) && fits(greatest);
}

bool Infrastructure::assign_roles(const Network& network) {
    roles_.assign(network.supply.size(), Role::dead);
    std::int32_t sinks = 0;
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        const std::int64_t supply = network.supply[index(node)];
        if (supply > 1) return false;
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
        sink_ = kAbsent;
    }
    return num_tasks_ > 0 && sinks > 0;
}

// Counts the arcs of each node and the options of each task, and marks the nodes that tasks lead to.
bool Infrastructure::count_arcs(const Network& network) {
    const auto [tails, heads, capacity] = std::tuple(network.tail, network.head, network.capacity);
    const std::span<const Role> roles = roles_;
    const std::span<std::int32_t> count(arc_starts_);
    const std::span<std::uint8_t> entered(entered_);
    for (std::size_t arc = 0; arc < tails.size(); ++arc) {
        if (capacity[arc] == 0) continue;
        const std::size_t tail = index(tails[arc]);
        const std::size_t head = index(heads[arc]);
        if (roles[head] == Role::task) return false;
        ++count[tail];
        if (roles[tail] == Role::task) {
            if (std::exchange(entered[head], std::uint8_t{1}) == 0) entries_.push_back(heads[arc]);
        } else if (roles[tail] != Role::dead) {
            return false;  // a sink passes nothing on
        }
    }
    return true;
}

// Lists the arcs of nodes that are no tasks.
bool Infrastructure::collect_arcs(const Network& network) {
    arc_starts_.assign(network.supply.size() + 1, 0);
    option_ends_.resize(network.supply.size());
    entered_.assign(network.supply.size(), 0);
    entries_.reserve(network.supply.size() - static_cast<std::size_t>(num_tasks_));
    if (!count_arcs(network)) return false;
    std::int32_t arcs = 0;
    num_options_ = 0;
    for (std::size_t node = 0; node < roles_.size(); ++node) {
        const bool task = roles_[node] == Role::task;
        option_ends_[node] = num_options_;
        (task ? num_options_ : arcs) += arc_starts_[node];
        arc_starts_[node] = arcs;  // past the last one, until they are listed
    }
    arc_starts_.back() = arcs;
    arcs_.resize(index(arcs));
    list_arcs(network);
    return true;
}

void Infrastructure::list_arcs(const Network& network) {
    const auto [tails, capacity] = std::tuple(network.tail, network.capacity);
    const std::span<const Role> roles = roles_;
    const std::span<std::int32_t> start(arc_starts_);
    for (std::size_t arc = tails.size(); arc-- > 0;) {
        const std::size_t tail = index(tails[arc]);
        if (roles[tail] == Role::task || capacity[arc] == 0) continue;
        arcs_[index(--start[tail])] = static_cast<std::int32_t>(arc);
    }
}

// Sorts the nodes that are no tasks, each before those its arcs lead to, and marks those behind nodes that
// tasks lead to; the others may be set aside. False if there is a cycle.
bool Infrastructure::sort_nodes(const Network& network) {
    rank_.assign(network.supply.size(), 0);  // at first, arcs from nodes that have not had their turn
    for (const std::int32_t arc : arcs_) ++rank_[index(network.head[index(arc)])];
    nodes_.reserve(network.supply.size() - static_cast<std::size_t>(num_tasks_));
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        if (roles_[index(node)] == Role::task) {
            rank_[index(node)] = kAbsent;
        } else if (rank_[index(node)] == 0) {
            nodes_.push_back(node);
        }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const std::int32_t node = nodes_[i];
        rank_[index(node)] = static_cast<std::int32_t>(i);
        const std::uint8_t entered = entered_[index(node)];
        for (const std::int32_t arc : arcs_from(node)) {
            const std::int32_t head = network.head[index(arc)];
            TOPOPLACE_ASSERT(rank_[index(head)] > 0);
            entered_[index(head)] |= entered;
            if (--rank_[index(head)] == 0) nodes_.push_back(head);
        }
    }
    return nodes_.size() + static_cast<std::size_t>(num_tasks_) == network.supply.size();
}

// How many units the node can pass on; kNarrow if an arc of it may bind, as the node behind it can pass on
// more, or leads to a spare node.
std::int64_t Infrastructure::room_behind(std::int32_t node, const Network& network,
                                         std::span<const std::int64_t> room) const {
    std::int64_t sum = 0;
    if (role(node) == Role::place) sum = std::min(most_tasks_, -network.supply[index(node)]);
    for (const std::int32_t arc : arcs_from(node)) {
        const std::int32_t head = network.head[index(arc)];
        std::int64_t passed = network.capacity[index(arc)];
        if (head != sink_) {
            if (passed < room[index(head)] || role(head) == Role::spare) return kNarrow;
            passed = room[index(head)];
        }
        TOPOPLACE_ASSERT(passed >= 0);
        sum = std::min(most_tasks_, sum + std::min(most_tasks_, passed));
    }
    return sum;
}

bool Infrastructure::update_capacities(const Network& network) {
    std::pmr::vector<std::int64_t> room(network.supply.size(), 0, memory_);
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
        Role& role = roles_[index(*node)];
        if (role == Role::sink || role == Role::gone || role == Role::spare) continue;
        const std::int64_t behind = room_behind(*node, network, room);
        if (behind == kNarrow) {
            if (role != Role::dead || entered_.empty() || entered_[index(*node)] != 0) return false;
            role = Role::spare;
            continue;
        }
        room[index(*node)] = behind;
        if (role != Role::dead || behind == 0) continue;
        const auto arcs = arcs_from(*node);
        const bool place = arcs.size() == 1 && network.head[index(arcs[0])] == sink_;
        role = place ? Role::place : Role::hub;
    }
    return true;
}

bool Infrastructure::recognise(const Network& network, std::int64_t more) {
    TOPOPLACE_ASSERT(roles_.empty() && nodes_.empty());
    if (!check_bounds(network, more) || !assign_roles(network)) return false;
    most_tasks_ = num_tasks_ + more;
    target_.assign(network.supply.size(), kAbsent);
    if (!collect_arcs(network) || !sort_nodes(network)) return false;
    const bool wide = update_capacities(network);
    entered_.clear();
    if (!wide) return false;
    reached_.resize(nodes_.size());
    place_of_.assign(arcs_.size(), kAbsent);
    return true;
}

// ---- targets ----------------------------------------------------------------------------------------------

std::int32_t Infrastructure::make_place(std::int32_t node, std::int32_t arc, const Network& network,
                                        Assignment& assignment) {
    std::int64_t capacity = node == sink_ ? most_tasks_ : -network.supply[index(node)];
    std::int64_t cost = 0;
    if (arc >= 0) {
        capacity = network.capacity[index(arc)];
        cost = network.cost[index(arc)];
        TOPOPLACE_ASSERT(network.tail[index(arc)] == node && fits(cost));
    }
    const std::int32_t place = assignment.add_place(capacity, cost);
    if (index(place) >= exits_.size()) exits_.resize(index(place) + 1);
    exits_[index(place)] = {.arc = arc};
    return place;
}

// Records a path to a node, if it is the cheapest yet, for when its turn comes in the order of nodes_.
void Infrastructure::reach(std::int32_t node, const Reached& path) {
    TOPOPLACE_ASSERT(path.arc >= 0);
    const std::int32_t rank = rank_[index(node)];
    Reached& known = reached_[index(rank)];
    if (known.arc < 0) open_.push(rank);
    if (known.arc < 0 || path.distance < known.distance) known = path;
}

void Infrastructure::pass_on(std::int32_t node, std::int64_t distance, std::int32_t step,
                             const Network& network, Assignment& assignment) {
    for (const std::int32_t& arc : arcs_from(node)) {
        const std::int32_t head = network.head[index(arc)];
        if (head != sink_) {
            TOPOPLACE_ASSERT(rank_[index(node)] < rank_[index(head)]);
            reach(head, {.distance = distance + network.cost[index(arc)], .arc = arc, .step = step});
            continue;
        }
        std::int32_t& place = place_of_[static_cast<std::size_t>(&arc - arcs_.data())];
        if (place < 0) place = make_place(node, arc, network, assignment);
        hub_.add(place, distance, step);
    }
    scanned_ += arcs_from(node).size();
}

// Finds the places behind a node with the cheapest path to each; false if the hubs together have too many
// arcs.
bool Infrastructure::find_members(std::int32_t node, const Network& network, Assignment& assignment) {
    const std::size_t most_scanned = 4 * (network.tail.size() + network.supply.size());
    hub_.clear();
    TOPOPLACE_ASSERT(open_.empty());
    for (pass_on(node, 0, kAbsent, network, assignment); !open_.empty() && scanned_ <= most_scanned;) {
        const std::int32_t rank = open_.pop();
        const std::int32_t next = nodes_[index(rank)];
        const Reached at = std::exchange(reached_[index(rank)], {});
        steps_.push_back({.arc = at.arc, .previous = at.step});
        const auto step = static_cast<std::int32_t>(steps_.size()) - 1;
        if (role(next) == Role::place) hub_.add(target(next, network, assignment), at.distance, step);
        if (role(next) == Role::hub) pass_on(next, at.distance, step, network, assignment);
    }
    return scanned_ <= most_scanned;
}

std::int32_t Infrastructure::make_hub(std::int32_t node, const Network& network, Assignment& assignment) {
    if (!find_members(node, network, assignment)) return kTooMany;
    TOPOPLACE_ASSERT(!hub_.members.empty());  // some unit can leave by it
    const std::int32_t target = assignment.add_hub(hub_.members);
    if (index(target) >= exits_.size()) exits_.resize(index(target) + 1);
    exits_[index(target)] = {.first_step = static_cast<std::int32_t>(last_steps_.size())};
    last_steps_.insert(last_steps_.end(), hub_.last_step.begin(), hub_.last_step.end());
    return target;
}

std::int32_t Infrastructure::target(std::int32_t node, const Network& network, Assignment& assignment) {
    std::int32_t& target = target_[index(node)];
    if (target >= 0 || role(node) == Role::dead) return target;
    if (role(node) == Role::hub) return target = make_hub(node, network, assignment);
    const auto arcs = arcs_from(node);
    return target = make_place(node, arcs.empty() ? kAbsent : arcs[0], network, assignment);
}

// Makes room for a target of each node, so that small networks do not spend their time on growing lists.
void Infrastructure::expect_targets(Assignment& assignment) {
    const std::size_t count = nodes_.size();
    assignment.reserve_targets(count);
    exits_.reserve(count);
    last_steps_.reserve(count);
    hub_.members.reserve(count);
    hub_.last_step.reserve(count);
    steps_.reserve(count);
    open_.reserve(count);
}

// Leaves out those by which nothing can leave.
void Infrastructure::count_options(const Network& network) {
    std::vector<std::int32_t> count(network.supply.size(), 0);
    for (std::size_t arc = 0; arc < network.tail.size(); ++arc) {
        const bool leads_out = network.capacity[arc] > 0 && target_[index(network.head[arc])] >= 0;
        count[index(network.tail[arc])] += leads_out ? 1 : 0;
    }
    num_options_ = 0;
    for (std::size_t node = 0; node < count.size(); ++node) {
        option_ends_[node] = num_options_;
        if (roles_[node] == Role::task) num_options_ += count[node];
    }
}

// The options of all tasks, one task's after the other's; `option_ends_` tells where a task's end.
std::pmr::vector<Option> Infrastructure::list_options(const Network& network) {
    const auto [tails, heads, capacity] = std::tuple(network.tail, network.head, network.capacity);
    std::pmr::vector<Option> options(index(num_options_), memory_);
    const std::span<std::int32_t> next(option_ends_);
    for (std::size_t arc = 0; arc < tails.size(); ++arc) {
        const std::size_t tail = index(tails[arc]);
        if (roles_[tail] != Role::task || capacity[arc] == 0) continue;
        const std::int32_t to = target_[index(heads[arc])];
        if (to < 0) continue;  // nothing can leave by it
        options[index(next[tail]++)] = {
            .cost = network.cost[arc], .target = to, .arc = static_cast<std::int32_t>(arc)};
    }
    return options;
}

std::optional<std::vector<std::int32_t>> Infrastructure::add_tasks(const Network& network,
                                                                   Assignment& assignment) {
    expect_targets(assignment);
    bool closed = false;
    for (const std::int32_t node : entries_) {
        const std::int32_t to = target(node, network, assignment);
        if (to == kTooMany) return std::nullopt;
        closed = closed || to < 0;
    }
    if (closed) count_options(network);
    std::pmr::vector<Option> options = list_options(network);
    std::vector<std::int32_t> node_of;
    node_of.reserve(static_cast<std::size_t>(num_tasks_));
    std::int32_t end = 0;
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        if (roles_[index(node)] != Role::task) continue;
        if (option_ends_[index(node)] == std::exchange(end, option_ends_[index(node)])) return std::nullopt;
        option_ends_[node_of.size()] = end;  // by task from here on
        node_of.push_back(node);
    }
    TOPOPLACE_ASSERT(static_cast<std::int64_t>(node_of.size()) == num_tasks_);
    assignment.add_tasks(std::span(option_ends_).first(node_of.size()), std::move(options));
    option_ends_.clear();
    return node_of;
}

std::int32_t Infrastructure::exit_arc(std::int32_t node) const {
    const std::int32_t target = target_[index(node)];
    return target >= 0 ? exits_[index(target)].arc : kAbsent;
}

std::int32_t Infrastructure::add_place(std::int32_t node, std::int32_t arc, const Network& network,
                                       Assignment& assignment) {
    if (index(node) >= roles_.size()) {
        roles_.resize(index(node) + 1, Role::gone);
        target_.resize(index(node) + 1, kAbsent);
        rank_.resize(index(node) + 1, kAbsent);
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
    target_[index(node)] = kAbsent;
}

// ---- the solution of the network --------------------------------------------------------------------------

UnitPath path_of(const Assignment& assignment, std::int32_t task) {
    const Assignment::Task& at = assignment.task(task);
    if (!at.assigned()) return {};
    const Option& option = assignment.option(at.option);
    TOPOPLACE_ASSERT((at.leaf >= 0) == assignment.is_hub(option.target));
    return {.arc = option.arc,
            .target = option.target,
            .leaf = at.leaf,
            .place = at.place,
            .cost = at.cost + assignment.exit_cost(at.place)};
}

void Infrastructure::add_flow(const UnitPath& path, std::int64_t units, std::span<std::int64_t> flow) const {
    const auto add = [&](std::int32_t arc) {
        flow[index(arc)] += units;
        TOPOPLACE_ASSERT(flow[index(arc)] >= 0);
    };
    add(path.arc);
    TOPOPLACE_ASSERT(flow[index(path.arc)] <= 1);
    if (path.leaf >= 0) {
        std::int32_t step = last_steps_[index(exits_[index(path.target)].first_step + path.leaf)];
        for (; step >= 0; step = steps_[index(step)].previous) add(steps_[index(step)].arc);
    }
    const std::int32_t exit = exits_[index(path.place)].arc;
    if (exit >= 0) add(exit);
}

std::vector<std::int64_t> Infrastructure::potentials(const Network& network, const Assignment& assignment,
                                                     std::span<const std::int32_t> node_of) const {
    std::vector<std::int64_t> potential(network.supply.size(), 0);
    set_infrastructure_potentials(network, assignment, potential);
    for (std::int32_t i = 0; i < assignment.num_tasks(); ++i) {
        const Assignment::Task& task = assignment.task(i);
        if (!task.assigned()) continue;
        potential[index(node_of[index(i)])] = -assignment.current_cost(i);
    }
    set_dead_potentials(network, potential);
    set_spare_potentials(network, potential);
    return potential;
}

// The largest potential that the arcs of a node without its own target allow it.
std::int64_t Infrastructure::best_potential(std::int32_t node, const Network& network,
                                            const Assignment& assignment,
                                            std::span<const std::int64_t> potential) const {
    const auto arcs = arcs_from(node);
    if (arcs.empty()) return 0;  // a sink that no task can reach
    std::int64_t best = -kFar;
    for (const std::int32_t& arc : arcs) {
        const std::int32_t head = network.head[index(arc)];
        if (role(head) == Role::dead) continue;
        TOPOPLACE_ASSERT(head == sink_ || rank_[index(node)] < rank_[index(head)]);
        const std::int32_t place = place_of_[static_cast<std::size_t>(&arc - arcs_.data())];
        best = std::max(
            best, place >= 0 ? -assignment.value(place) : potential[index(head)] - network.cost[index(arc)]);
    }
    return best;
}

void Infrastructure::set_infrastructure_potentials(const Network& network, const Assignment& assignment,
                                                   std::span<std::int64_t> potential) const {
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
        const std::int32_t target = target_[index(*node)];
        if (role(*node) == Role::place && target >= 0) {
            potential[index(*node)] = -assignment.value(target);
        } else if (role(*node) == Role::place || role(*node) == Role::hub) {
            potential[index(*node)] = best_potential(*node, network, assignment, potential);
        }
    }
}

// Where no unit can leave, none may want to come: a dead end's potential is as low as its arcs ask.
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

std::vector<std::int32_t> Infrastructure::spare_nodes() const {
    std::vector<std::int32_t> spares;
    std::copy_if(nodes_.rbegin(), nodes_.rend(), std::back_inserter(spares),
                 [&](std::int32_t node) { return role(node) == Role::spare; });
    return spares;
}

// No unit comes to a spare node, so its potential only has to be as high as its own arcs ask.
void Infrastructure::set_spare_potentials(const Network& network, std::span<std::int64_t> potential) const {
    for (const std::int32_t node : spare_nodes()) {
        std::int64_t& least = potential[index(node)];
        least = -kFar;
        for (const std::int32_t arc : arcs_from(node))
            least = std::max(least, potential[index(network.head[index(arc)])] - network.cost[index(arc)]);
    }
}

FlowResult Infrastructure::expand(const Network& network, const Assignment& assignment,
                                  std::span<const std::int32_t> node_of) const {
    FlowResult result;
    result.status = Status::optimal;
    result.flow.assign(network.tail.size(), 0);
    result.potential = potentials(network, assignment, node_of);
    for (std::int32_t task = 0; task < assignment.num_tasks(); ++task) {
        const UnitPath path = path_of(assignment, task);
        TOPOPLACE_ASSERT(path.place >= 0);
        add_flow(path, 1, result.flow);
        result.cost += path.cost;
    }
    return result;
}

}  // namespace topoplace::flow
