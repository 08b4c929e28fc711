// The flows of running jobs by hop.
#include <algorithm>
#include <string>

#include "ports/loads.hpp"

namespace topoplace::ports {

Fault FlowCounts::check(Hop hop) const {
    if (hop >= 0 && static_cast<std::size_t>(hop) < sizes_.size()) return std::nullopt;
    return "hop = " + std::to_string(hop) + ": out of range";
}

double FlowCounts::counted(Hop hop, double most) const {
    TOPOPLACE_ASSERT(!check(hop));
    double sum = 0.0;
    for (const Size& size : sizes_[static_cast<std::size_t>(hop)]) {
        sum += std::min(size.gigabytes, most) * static_cast<double>(size.flows);
    }
    return sum;
}

Fault FlowCounts::remove(const Flows& flows) {
    if (change(flows, -1)) return std::nullopt;
    return "flows that were not added cannot be removed";
}

bool FlowCounts::change(const Flows& flows, std::int64_t sign) {
    TOPOPLACE_ASSERT(!ports::check(flows, network_.num_vertices()));
    std::vector<Hop> hops;
    bool is_there = true;
    for (std::size_t i = 0; i < flows.from.size() && is_there; ++i) {
        put_both_ways(network_, flows.from[i], flows.to[i], flows.there[i], flows.back[i], hops,
                      [&](Hop hop, double gb) { is_there = is_there && put(hop, gb, sign); });
    }
    return is_there;
}

bool FlowCounts::put(Hop hop, double gigabytes, std::int64_t sign) {
    if (gigabytes <= 0.0) return true;
    auto& sizes = sizes_[static_cast<std::size_t>(hop)];
    auto place = std::ranges::lower_bound(sizes, gigabytes, {}, &Size::gigabytes);
    if (place == sizes.end() || place->gigabytes != gigabytes) {
        if (sign < 0) return false;
        place = sizes.insert(place, Size{gigabytes, 0});
    }
    place->flows += sign;
    if (place->flows == 0) sizes.erase(place);
    return true;
}

}  // namespace topoplace::ports
