// What is known of a topology, and what was found for parts of gangs.
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "topoplace/gang_search.hpp"

namespace topoplace::decide {

Fault GangTopology::check(const GangTopologyParams& params) {
    const GangLimits& limits = *params.limits;
    const std::size_t count = index(limits.gpus.size());
    for (std::int32_t machine = 0; machine < limits.gpus.size(); ++machine) {
        if (limits.machine(machine).num_gpus() != limits.gpus.gpus_of(machine).size())
            return traffic::wrong("class_of", index(machine), limits.class_of[index(machine)],
                                  "a class of other GPUs");
    }
    if (auto fault = traffic::check_size("adapter_speed", params.adapter_speed.size(), count)) return fault;
    return traffic::check_size("nvlink_speed", params.nvlink_speed.size(), count);
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
