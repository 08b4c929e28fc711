// Counts domains by the numbers of their machines.
#include "decide/narrow_domains.hpp"

#include <algorithm>
#include <map>

#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

using Codes = std::vector<std::int64_t>;

std::size_t count_unlike(Codes codes) {
    std::ranges::sort(codes);
    return static_cast<std::size_t>(std::unique(codes.begin(), codes.end()) - codes.begin());
}

bool is_narrow(const GangLevel& level, const GangTopology& topology) {
    constexpr double kLess = 1 - 1e-6;
    if (level.uplink.empty()) return false;
    std::map<std::int64_t, double> below;  // GB/s of all adapters of a domain
    for (std::int32_t machine = 0; machine < topology.machines.size(); ++machine)
        below[level.codes[index(machine)]] += topology.adapter_speed[index(machine)] *
                                              static_cast<double>(topology.machines.gpus_of(machine).size());
    for (std::size_t machine = 0; machine < level.uplink.size(); ++machine) {
        if (level.uplink[machine] < below[level.codes[machine]] * kLess) return true;
    }
    return false;
}

// None if all together have too little room.
Codes fewest_with_room(const std::map<std::int64_t, std::int64_t>& rooms, std::int64_t size) {
    std::vector<std::pair<std::int64_t, std::int64_t>> order(rooms.begin(), rooms.end());
    std::ranges::stable_sort(order, {}, [](const auto& one) { return -one.second; });
    Codes found;
    std::size_t next = 0;
    for (; next < order.size() && order[next].second < size; ++next) {
        found.push_back(order[next].first);
        size -= order[next].second;
    }
    if (next == order.size()) return {};
    while (next + 1 < order.size() && order[next + 1].second >= size) ++next;
    found.push_back(order[next].first);
    return found;
}

}  // namespace

std::size_t count_domains(const GangSearchParams& params, const Together& tasks,
                          std::span<const std::int32_t> gpus) {
    Codes found;
    for (const std::int32_t task : tasks.tasks) {
        const std::int32_t machine = params.topology->network.vertex(gpus[index(task)]).machine;
        found.push_back((*params.levels)[tasks.level].domains[index(machine)]);
    }
    return count_unlike(std::move(found));
}

std::vector<std::size_t> in_fewest_narrow_domains(const GangSearchParams& params,
                                                  std::span<const std::int32_t> gpus) {
    std::size_t level = params.levels->size() - 1;
    do {
        if (level == 0) return {};
        --level;
    } while (!is_narrow((*params.levels)[level], *params.topology));
    const std::vector<std::int64_t>& codes = (*params.levels)[level].codes;
    const auto code = [&](std::int32_t machine) { return codes[index(machine)]; };
    std::map<std::int64_t, std::int64_t> rooms;
    for (std::size_t i = 0; i < params.offers.machines.size(); ++i)
        rooms[code(params.offers.machines[i])] += params.offers.sizes[i];
    Codes chosen = fewest_with_room(rooms, static_cast<std::int64_t>(gpus.size())), used;
    for (const std::int32_t gpu : gpus) used.push_back(code(params.topology->network.vertex(gpu).machine));
    if (chosen.size() >= count_unlike(std::move(used))) return {};
    std::ranges::sort(chosen);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < params.offers.machines.size(); ++i) {
        if (std::ranges::binary_search(chosen, code(params.offers.machines[i]))) found.push_back(i);
    }
    return found;
}

}  // namespace topoplace::decide
