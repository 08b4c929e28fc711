// Checks rings by the definition alone; shares no code with the search.
#include <algorithm>
#include <set>
#include <string>

#include "topoplace/ring_packing.hpp"

namespace topoplace::collective {

namespace {

const Route* route_between(const RingNetwork& network, const std::set<std::int32_t>& chosen,
                           std::int32_t from, std::int32_t to) {
    for (const Route& route : network.routes(from, to)) {
        if (route.relay < 0 || chosen.contains(route.relay)) return &route;
    }
    return nullptr;
}

}  // namespace

Fault verify_rings(const RingNetwork& network, std::span<const std::int32_t> chosen, const PackParams& params,
                   std::span<const Ring> rings) {
    const std::set<std::int32_t> members(chosen.begin(), chosen.end());
    std::vector<std::int64_t> load(network.capacities().size(), 0);
    std::int64_t total = 0;
    for (const Ring& ring : rings) {
        if (ring.count < 1) return "a ring is there less than once";
        total += ring.count;
        const auto& order = ring.terminals;
        if (order.size() != members.size() || std::set<std::int32_t>(order.begin(), order.end()) != members) {
            return "a ring does not visit each chosen terminal once";
        }
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Route* route = route_between(network, members, order[i], order[(i + 1) % order.size()]);
            if (route == nullptr || route->level > params.level) return "a ring takes a hop without a route";
            for (const LinkUse& use : route->uses) {
                const std::int64_t thousandths = params.rate * use.thousandths;
                load[static_cast<std::size_t>(use.link)] +=
                    ring.count * (thousandths / 1000 + (thousandths % 1000 == 0 ? 0 : 1));
            }
        }
    }
    if (total > params.max_rings) return "there are more rings than allowed";
    if (params.equal && rings.size() > 1) return "the rings are not equal";
    for (std::size_t link = 0; link < load.size(); ++link) {
        if (load[link] > network.capacities()[link]) {
            return "link " + std::to_string(link) + " is overloaded";
        }
    }
    return std::nullopt;
}

}  // namespace topoplace::collective
