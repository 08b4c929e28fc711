// The flows of running jobs by hop.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "ports/loads.hpp"

namespace topoplace::ports {

double FlowCounts::counted(Hop hop, double most) const {
    if (hop < 0 || static_cast<std::size_t>(hop) >= sizes_.size()) {
        throw std::invalid_argument("hop = " + std::to_string(hop) + ": out of range");
    }
    double sum = 0.0;
    for (const Size& size : sizes_[static_cast<std::size_t>(hop)]) {
        sum += std::min(size.gigabytes, most) * static_cast<double>(size.flows);
    }
    return sum;
}

void FlowCounts::change(const Flows& flows, std::int64_t sign) {
    check_flows(flows, network_.num_vertices());
    std::vector<Hop> hops;
    for (std::size_t i = 0; i < flows.from.size(); ++i) {
        put_both_ways(network_, flows.from[i], flows.to[i], flows.there[i], flows.back[i], hops,
                      [&](Hop hop, double gigabytes) { put(hop, gigabytes, sign); });
    }
}

void FlowCounts::put(Hop hop, double gigabytes, std::int64_t sign) {
    if (gigabytes <= 0.0) return;
    auto& sizes = sizes_[static_cast<std::size_t>(hop)];
    auto place = std::ranges::lower_bound(sizes, gigabytes, {}, &Size::gigabytes);
    if (place == sizes.end() || place->gigabytes != gigabytes) {
        if (sign < 0) throw std::invalid_argument("flows that were not added cannot be removed");
        place = sizes.insert(place, Size{gigabytes, 0});
    }
    place->flows += sign;
    if (place->flows == 0) sizes.erase(place);
}

}  // namespace topoplace::ports
