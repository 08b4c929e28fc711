// The time of the flows of each phase, and the checks of flows.
#include <string>
#include <tuple>

#include "ports/loads.hpp"

namespace topoplace::ports {
namespace {

template <class T>
std::string wrong(const char* name, std::size_t i, T value, const std::string& rule) {
    return std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) + ": " + rule;
}

Fault check_ends(std::span<const std::int64_t> phase_ends, std::size_t count) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < phase_ends.size(); ++i) {
        if (phase_ends[i] < last) return wrong("phase_ends", i, phase_ends[i], "descends");
        last = phase_ends[i];
    }
    if (static_cast<std::size_t>(last) == count) return std::nullopt;
    return "phase_ends ends at " + std::to_string(last) + " of " + std::to_string(count) + " flows";
}

}  // namespace

Fault check(std::span<const std::int64_t> phase_ends, const Flows& flows, std::int32_t count) {
    if (auto fault = check(flows, count)) return fault;
    return check_ends(phase_ends, flows.from.size());
}

Fault check(const Flows& flows, std::int32_t count) {
    const std::size_t number = flows.from.size();
    if (flows.to.size() != number || flows.there.size() != number || flows.back.size() != number)
        return "start, end, there and back differ in length";
    for (const auto& [values, name] : {std::tuple(flows.from, "start"), std::tuple(flows.to, "end")}) {
        for (std::size_t i = 0; i < number; ++i) {
            if (values[i] < 0 || values[i] >= count) return wrong(name, i, values[i], "out of range");
        }
    }
    for (const auto& [values, name] : {std::tuple(flows.there, "there"), std::tuple(flows.back, "back")}) {
        for (std::size_t i = 0; i < number; ++i) {
            const bool is_good = values[i] >= 0.0 && values[i] < std::numeric_limits<double>::infinity();
            if (!is_good) return wrong(name, i, values[i], "not a finite number of 0 or above");
        }
    }
    return std::nullopt;
}

std::vector<PhaseTime> phase_times(const PortNetwork& network, std::span<const std::int64_t> phase_ends,
                                   const Flows& flows, const FlowCounts* others) {
    TOPOPLACE_ASSERT(!check(phase_ends, flows, network.num_vertices()));
    Loads loads(network, others);
    std::vector<PhaseTime> times;
    std::size_t i = 0;
    for (const std::int64_t end : phase_ends) {
        for (; i < static_cast<std::size_t>(end); ++i) {
            loads.add(flows.from[i], flows.to[i], flows.there[i], flows.back[i]);
        }
        times.push_back(loads.take().phase);
    }
    return times;
}

}  // namespace topoplace::ports
