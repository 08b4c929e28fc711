// The seconds of a class of machines are those of its first machine that has room for a unit.
#include "topoplace/gang_divisions.hpp"

#include <algorithm>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {

Fault GangDivision::check(const MachineLimits& limits, const divisions::DivideParams& params) {
    if (params.unit_size < 1) return traffic::wrong("unit_size", 0, params.unit_size, "below 1");
    return traffic::check_size("most", params.most.size(), index(limits.of_topology().gpus.size()));
}

GangDivision::GangDivision(const MachineLimits& limits, const divisions::DivideParams& params)
    : params_(params), of_sets_(limits.of_topology().machines.size()) {
    const GangLimits& topology = limits.of_topology();
    WorkMeter meter(params.stop);
    std::vector<bool> is_known(of_sets_.size(), false);
    machine_of_.resize(params.usable.size());
    for (std::int32_t machine = 0; machine < topology.gpus.size(); ++machine) {
        for (const std::int32_t gpu : topology.gpus.gpus_of(machine)) {
            if (index(gpu) < machine_of_.size()) machine_of_[index(gpu)] = machine;
        }
        const std::size_t own = index(topology.class_of[index(machine)]);
        if (is_known[own] || params.most[index(machine)] < params.unit_size) continue;
        of_sets_[own] = limits.of_sets(machine, meter);
        is_known[own] = true;
    }
    std::int32_t most = 0;  // units of a machine of which their number alone counts
    for (std::size_t machine = 0; machine < params.most.size(); ++machine) {
        if (of_sets_[index(topology.class_of[machine])].empty())
            most = std::max(most, params.most[machine] / params.unit_size);
    }
    const auto units = static_cast<std::int32_t>(params.units.size()) / params.unit_size;
    for (std::int32_t count = 0; count <= std::min(units, most); ++count)
        of_counts_.push_back(limits.of_count(count));
    sets_.assign(of_sets_.begin(), of_sets_.end());
    params_.machine_of = machine_of_;
    params_.class_of = topology.class_of;
    params_.seconds_of_sets = sets_;
    params_.seconds_of_count = of_counts_;
}

}  // namespace topoplace::decide
