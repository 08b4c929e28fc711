#include <algorithm>
#include <numeric>

#include "flow/structure.hpp"

namespace topoplace::flow {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

// The arcs in the order of their tails; empty if that is the order they are in.
std::vector<std::int32_t> by_tail(const Network& network) {
    if (std::is_sorted(network.tail.begin(), network.tail.end())) return {};
    std::vector<std::int32_t> starts(network.supply.size() + 1, 0);
    for (const std::int32_t tail : network.tail) ++starts[index(tail) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<std::int32_t> order(network.tail.size());
    for (std::size_t arc = 0; arc < order.size(); ++arc) {
        std::int32_t& next = starts[index(network.tail[arc])];
        order[index(next++)] = static_cast<std::int32_t>(arc);
    }
    return order;
}

}  // namespace

bool Infrastructure::add_tasks(const Network& network, Assignment& assignment,
                               std::vector<std::int32_t>& node_of) {
    assignment.reserve(network.supply.size(), network.supply.size(), network.tail.size());
    const std::vector<std::int32_t> order = by_tail(network);
    for (std::size_t i = 0; i < network.tail.size(); ++i) {
        const std::size_t arc = order.empty() ? i : index(order[i]);
        const std::int32_t tail = network.tail[arc];
        if (role(tail) != Role::task || network.capacity[arc] == 0) continue;
        const std::int32_t to = target(network.head[arc], network, assignment);
        if (to == kTooMany) return false;
        if (to < 0) continue;
        if (node_of.empty() || node_of.back() != tail) {
            assignment.add_task();
            node_of.push_back(tail);
        }
        assignment.add_option({network.cost[arc], to, static_cast<std::int32_t>(arc)});
    }
    return true;
}

std::optional<FlowResult> solve_structure(const Network& network, NodeCounter& counter) {
    Infrastructure infrastructure;
    Assignment assignment;
    std::vector<std::int32_t> node_of;
    if (!infrastructure.recognise(network)) return std::nullopt;
    if (!infrastructure.add_tasks(network, assignment, node_of)) return std::nullopt;
    if (assignment.num_tasks() < infrastructure.num_tasks()) return std::nullopt;
    FlowResult result;
    if (!assignment.solve(counter)) {
        if (counter.stopped()) return result;
        return std::nullopt;
    }
    infrastructure.expand(network, assignment, node_of, result);
    result.status = Status::optimal;
    return result;
}

}  // namespace topoplace::flow
