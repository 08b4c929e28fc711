#include <algorithm>

#include "flow/structure.hpp"

namespace topoplace::flow {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

bool Infrastructure::add_tasks(const Network& network, Assignment& assignment,
                               std::vector<std::int32_t>& node_of) {
    std::vector<std::int32_t> counts;
    std::vector<std::int32_t> task_of(network.supply.size(), -1);
    for (std::int32_t node = 0; node < network.num_nodes; ++node) {
        if (role(node) != Role::task) continue;
        task_of[index(node)] = static_cast<std::int32_t>(node_of.size());
        node_of.push_back(node);
    }
    counts.assign(node_of.size(), 0);
    const auto leads_on = [&](std::size_t arc) {
        return task_of[index(network.tail[arc])] >= 0 && network.capacity[arc] > 0 &&
               role(network.head[arc]) != Role::dead;
    };
    for (std::size_t arc = 0; arc < network.tail.size(); ++arc) {
        if (!leads_on(arc)) continue;
        if (target(network.head[arc], network, assignment) == kTooMany) return false;
        ++counts[index(task_of[index(network.tail[arc])])];
    }
    if (std::find(counts.begin(), counts.end(), 0) != counts.end()) return false;
    assignment.add_tasks(counts);
    for (std::size_t arc = network.tail.size(); arc-- > 0;) {
        if (!leads_on(arc)) continue;
        const std::int32_t task = task_of[index(network.tail[arc])];
        assignment.put_option(task, --counts[index(task)],
                              {network.cost[arc], target(network.head[arc]), static_cast<std::int32_t>(arc)});
    }
    return true;
}

std::optional<FlowResult> solve_structure(const Network& network, NodeCounter& counter) {
    Infrastructure infrastructure;
    Assignment assignment;
    std::vector<std::int32_t> node_of;
    if (!infrastructure.recognise(network)) return std::nullopt;
    if (!infrastructure.add_tasks(network, assignment, node_of)) return std::nullopt;
    FlowResult result;
    // Where costs are many and most tasks come through one hub, its places rise one after the other.
    constexpr std::uint64_t kPatience = 4;
    if (!assignment.solve(counter, kPatience * network.tail.size())) {
        if (counter.stopped()) return result;
        return std::nullopt;
    }
    infrastructure.expand(network, assignment, node_of, result);
    result.status = Status::optimal;
    return result;
}

}  // namespace topoplace::flow
