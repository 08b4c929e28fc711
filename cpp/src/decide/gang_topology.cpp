// What is known of a topology, and what was found for parts of gangs.
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "topoplace/gang_search.hpp"

namespace topoplace::decide {
namespace {

// The network has the GPUs of all machines, and knows on which each is.
Fault check_network(const traffic::CollectiveNetwork& network, const GangMachines& machines) {
    std::size_t gpus = 0;
    for (std::int32_t machine = 0; machine < machines.size(); ++machine)
        gpus += machines.gpus_of(machine).size();
    const std::size_t vertices = index(network.ports().num_vertices());
    if (auto fault = traffic::check_size("network", vertices, gpus)) return fault;
    for (std::int32_t machine = 0; machine < machines.size(); ++machine) {
        for (const std::int32_t gpu : machines.gpus_of(machine)) {
            if (network.vertex(gpu).machine != machine)
                return traffic::wrong("gpus", index(gpu), machine, "the network has it on another machine");
        }
    }
    return std::nullopt;
}

Fault check_mean_speeds(const char* name, std::span<const double> speeds, std::size_t machines) {
    if (auto fault = traffic::check_size(name, speeds.size(), machines)) return fault;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
        if (!(speeds[i] >= 1e-18 && speeds[i] <= 1e18))
            return traffic::wrong(name, i, speeds[i], "not in 1e-18..1e18");
    }
    return std::nullopt;
}

}  // namespace

Fault GangTopology::check(const GangTopologyParams& params) {
    const GangLimits& limits = *params.limits;
    const std::size_t count = index(limits.gpus.size());
    for (std::int32_t machine = 0; machine < limits.gpus.size(); ++machine) {
        if (limits.machine(machine).num_gpus() != limits.gpus.gpus_of(machine).size())
            return traffic::wrong("class_of", index(machine), limits.class_of[index(machine)],
                                  "a class of other GPUs");
    }
    if (auto fault = check_network(*params.network, limits.gpus)) return fault;
    if (auto fault = check_mean_speeds("adapter_speed", params.adapter_speed, count)) return fault;
    return check_mean_speeds("nvlink_speed", params.nvlink_speed, count);
}

GangTopology::GangTopology(const GangTopologyParams& params)
    : limits(*params.limits),
      machines(params.limits->gpus),
      network(*params.network),
      adapter_speed(params.adapter_speed.begin(), params.adapter_speed.end()),
      nvlink_speed(params.nvlink_speed.begin(), params.nvlink_speed.end()) {}

bool GangTopology::known(const std::string& key, Gpus& found) const {
    const std::lock_guard lock(mutex_);
    const auto one = kept_.find(key);
    if (one == kept_.end()) return false;
    found = one->second;
    return true;
}

void GangTopology::keep(const std::string& key, const Gpus& found) const {
    const std::lock_guard lock(mutex_);
    if (kept_.size() < kMostKept) kept_.emplace(key, found);
}

}  // namespace topoplace::decide
