// Checks of a network, its normal form in five steps, and the restoration of its solution.
#include "flow/general/normal_form.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

constexpr std::size_t kMaxArcs = (std::size_t{1} << 30) - 1;

std::string wrong(const char* name, std::size_t entry, std::int64_t value, const std::string& rule) {
    return std::string(name) + "[" + std::to_string(entry) + "] = " + std::to_string(value) + " " + rule;
}

Fault check_length(std::size_t length, const char* name, std::size_t expected, const char* unit) {
    if (length == expected) return std::nullopt;
    return std::string(name) + " has " + std::to_string(length) + " entries; the network has " +
           std::to_string(expected) + " " + unit;
}

Fault check_lengths(const Network& network, const FlowParams& params) {
    if (network.num_nodes < 0 || network.num_nodes == std::numeric_limits<std::int32_t>::max())
        return "num_nodes = " + std::to_string(network.num_nodes) + " is not in 0..2^31-2";
    const std::size_t arcs = network.tail.size();
    const auto nodes = static_cast<std::size_t>(network.num_nodes);
    if (arcs + nodes > kMaxArcs) return "tail has " + std::to_string(arcs) + " entries; too many arcs";
    if (auto fault = check_length(network.head.size(), "head", arcs, "arcs")) return fault;
    const auto optional = [](std::size_t length, std::size_t all) { return length == 0 ? 0 : all; };
    if (auto fault =
            check_length(network.lower.size(), "lower", optional(network.lower.size(), arcs), "arcs"))
        return fault;
    if (auto fault = check_length(network.capacity.size(), "capacity", arcs, "arcs")) return fault;
    if (auto fault = check_length(network.cost.size(), "cost", arcs, "arcs")) return fault;
    if (auto fault = check_length(network.supply.size(), "supply", nodes, "nodes")) return fault;
    const std::size_t flows = params.start_flow.size(), potentials = params.start_potential.size();
    if (auto fault = check_length(flows, "start_flow", optional(flows, arcs), "arcs")) return fault;
    return check_length(potentials, "start_potential", optional(potentials, nodes), "nodes");
}

// The checks of single values look at all entries without a branch first; only where one fails, they look for
// the first.

Fault check_ends(std::span<const std::int32_t> ends, const char* name, std::int32_t num_nodes) {
    std::uint32_t largest = 0;  // a negative number is larger than any node
    for (const std::int32_t end : ends) largest = std::max(largest, static_cast<std::uint32_t>(end));
    if (largest < static_cast<std::uint32_t>(num_nodes)) return std::nullopt;
    for (std::size_t a = 0; a < ends.size(); ++a) {
        if (ends[a] < 0 || ends[a] >= num_nodes)
            return wrong(name, a, ends[a], "is not a node; nodes are 0.." + std::to_string(num_nodes - 1));
    }
    return std::nullopt;
}

Fault check_bounds(const Network& network) {
    std::int64_t bits = 0;  // the sign of any
    for (const std::int64_t units : network.capacity) bits |= units;
    if (network.lower.empty() && bits >= 0) return std::nullopt;
    Total lower_sum = 0;
    for (std::size_t a = 0; a < network.capacity.size(); ++a) {
        const std::int64_t lower = network.lower.empty() ? 0 : network.lower[a];
        if (lower < 0) return wrong("lower", a, lower, "is negative");
        if (network.capacity[a] < 0) return wrong("capacity", a, network.capacity[a], "is negative");
        if (lower > network.capacity[a])
            return wrong("lower", a, lower, "is above the capacity " + std::to_string(network.capacity[a]));
        lower_sum += lower;
    }
    if (lower_sum > kMaxUnits / 4) return "lower sums to more than 2^59";
    return std::nullopt;
}

Fault check_supplies(const Network& network) {
    std::int64_t bits = 0;  // of the amounts, or of one less where they are negative
    for (const std::int64_t units : network.supply) bits |= units ^ (units >> 63);
    if (bits < kMaxUnits / 4 / (std::int64_t{network.num_nodes} + 1)) return std::nullopt;
    Total sum = 0;
    for (std::size_t v = 0; v < network.supply.size(); ++v) {
        if (network.supply[v] == std::numeric_limits<std::int64_t>::min())
            return wrong("supply", v, network.supply[v], "is below -2^63 + 1");
        sum += std::abs(network.supply[v]);
    }
    if (sum > kMaxUnits / 4) return "supply: amounts sum to more than 2^59";
    return std::nullopt;
}

Fault check_costs(const Network& network) {
    const std::int64_t most = kMaxPotential / (std::int64_t{network.num_nodes} + 2);
    std::int64_t least = 0;
    std::int64_t greatest = 0;
    for (const std::int64_t cost : network.cost) {
        least = std::min(least, cost);
        greatest = std::max(greatest, cost);
    }
    if (-most <= least && greatest <= most) return std::nullopt;
    for (std::size_t a = 0; a < network.cost.size(); ++a) {
        if (network.cost[a] < -most || network.cost[a] > most)
            return wrong("cost", a, network.cost[a],
                         "is beyond " + std::to_string(most) +
                             ": times the number of nodes it has to stay below 2^61");
    }
    return std::nullopt;
}

}  // namespace

Fault check(const Network& network, const FlowParams& params) {
    if (auto fault = check_lengths(network, params)) return fault;
    if (auto fault = check_ends(network.tail, "tail", network.num_nodes)) return fault;
    if (auto fault = check_ends(network.head, "head", network.num_nodes)) return fault;
    if (auto fault = check_bounds(network)) return fault;
    if (auto fault = check_supplies(network)) return fault;
    return check_costs(network);
}

NormalForm::NormalForm(const Network& network, const FlowParams& params) : network_(network) {
    problem_.num_nodes = network.num_nodes;
    problem_.tail.assign(network.tail.begin(), network.tail.end());
    problem_.head.assign(network.head.begin(), network.head.end());
    problem_.capacity.assign(network.capacity.begin(), network.capacity.end());
    problem_.cost.assign(network.cost.begin(), network.cost.end());
    problem_.supply.assign(network.supply.begin(), network.supply.end());
    send_lower_bounds();
    fill_loops();
    fill_demands();
    if (oversupplied_) return;
    limit_capacities();
    if (fault_) return;
    if (!params.start_flow.empty() || !params.start_potential.empty()) start_from(params);
    assert_normal(problem_);
}

void NormalForm::send_lower_bounds() {
    sent_.assign(network_.lower.begin(), network_.lower.end());
    for (std::size_t a = 0; a < sent_.size(); ++a) {
        if (problem_.capacity[a] != kInfinite) problem_.capacity[a] -= sent_[a];
        TOPOPLACE_ASSERT(problem_.capacity[a] >= 0);
        problem_.supply[index(problem_.tail[a])] -= sent_[a];
        problem_.supply[index(problem_.head[a])] += sent_[a];
    }
}

// Loops of negative cost carry what they can; afterwards no loop carries anything more.
void NormalForm::fill_loops() {
    for (std::size_t a = 0; a < problem_.tail.size(); ++a) {
        if (problem_.tail[a] != problem_.head[a]) continue;
        if (problem_.cost[a] < 0 && problem_.capacity[a] != kInfinite) {
            sent_.resize(problem_.tail.size());
            sent_[a] += problem_.capacity[a];
        }
        problem_.capacity[a] = 0;
    }
}

void NormalForm::fill_demands() {
    std::int64_t surplus = 0;
    for (const std::int64_t supply : network_.supply) surplus -= supply;
    oversupplied_ = surplus < 0;
    if (surplus <= 0) return;
    for (std::int32_t v = 0; v < network_.num_nodes; ++v) {
        if (network_.supply[index(v)] >= 0) continue;
        problem_.tail.push_back(network_.num_nodes);
        problem_.head.push_back(v);
        problem_.capacity.push_back(kInfinite);
        problem_.cost.push_back(0);
    }
    problem_.supply.push_back(surplus);
    ++problem_.num_nodes;
}

void NormalForm::limit_capacities() {
    std::int64_t supplied = 0;
    for (const std::int64_t supply : problem_.supply) supplied += std::max<std::int64_t>(supply, 0);
    Total finite = 0;
    Total negative = 0;
    bool endless = false;
    for (std::size_t a = 0; a < problem_.capacity.size(); ++a) {
        if (problem_.capacity[a] != kInfinite) finite += problem_.capacity[a];
        if (problem_.cost[a] >= 0) continue;
        if (problem_.capacity[a] != kInfinite) negative += problem_.capacity[a];
        if (problem_.capacity[a] == kInfinite) endless = true;
    }
    const Total most = supplied + (endless ? finite : negative) + 1;
    TOPOPLACE_ASSERT(most > 0);
    Total sum = 0;
    for (std::int64_t& capacity : problem_.capacity) {
        capacity = static_cast<std::int64_t>(std::min<Total>(capacity, most));
        sum += capacity;
    }
    if (sum > kMaxUnits) fault_ = "capacity: what flow may fill sums to more than 2^61";
}

void NormalForm::start_from(const FlowParams& params) {
    const std::size_t arcs = network_.tail.size();
    const bool filled = problem_.num_nodes > network_.num_nodes;
    problem_.start_flow.resize(problem_.tail.size());
    const std::int64_t most = kMaxPotential / 4 / (std::int64_t{problem_.num_nodes} + 2);
    const auto fits = [&](std::int64_t potential) { return potential >= -most && potential <= most; };
    if (std::all_of(params.start_potential.begin(), params.start_potential.end(), fits))
        problem_.start_potential.assign(params.start_potential.begin(), params.start_potential.end());
    problem_.start_potential.resize(index(problem_.num_nodes));
    std::vector<std::int64_t> taken(filled ? index(network_.num_nodes) : 0);
    for (std::size_t a = 0; a < params.start_flow.size(); ++a) {
        const std::int64_t sent = sent_.empty() ? 0 : sent_[a];
        const std::int64_t flow = params.start_flow[a] > sent ? params.start_flow[a] - sent : 0;
        problem_.start_flow[a] = std::min(flow, problem_.capacity[a]);
        if (!filled) continue;
        taken[index(network_.head[a])] += problem_.start_flow[a];
        taken[index(network_.tail[a])] -= problem_.start_flow[a];
    }
    for (std::size_t a = arcs; a < problem_.tail.size(); ++a) {
        const std::size_t v = index(problem_.head[a]);
        problem_.start_flow[a] =
            std::clamp<std::int64_t>(-problem_.supply[v] - taken[v], 0, problem_.capacity[a]);
    }
}

FlowResult NormalForm::restore(Solution&& solution) const {
    FlowResult result;
    result.status = solution.status;
    if (solution.status != Status::optimal) return result;
    assert_optimal(problem_, solution);
    // The node that fills up demands has potential 0.
    const std::int64_t zero =
        problem_.num_nodes > network_.num_nodes ? solution.potential.back() : std::int64_t{0};
    result.flow = std::move(solution.flow);
    result.flow.resize(network_.tail.size());
    result.potential = std::move(solution.potential);
    result.potential.resize(index(network_.num_nodes));
    for (std::int64_t& potential : result.potential) potential -= zero;
    for (std::size_t a = 0; a < sent_.size(); ++a) result.flow[a] += sent_[a];
    for (std::size_t a = 0; a < result.flow.size(); ++a)
        result.cost += Total{network_.cost[a]} * result.flow[a];
    return result;
}

}  // namespace topoplace::flow
