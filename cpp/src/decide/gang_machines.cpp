// Machines and their offers, checked once.
#include "topoplace/gang_machines.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

using traffic::check_once;
using traffic::check_range;
using traffic::check_size;
using traffic::wrong;

Fault check_ends(std::span<const std::int64_t> ends, std::size_t gpus) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] <= last) return wrong("gpu_ends", i, ends[i], "a machine without GPUs");
        last = ends[i];
    }
    return check_size("gpus", gpus, static_cast<std::size_t>(last));
}

Fault check_speeds(const char* name, std::span<const double> speeds) {
    for (std::size_t i = 0; i < speeds.size(); ++i) {
        if (!(speeds[i] >= 0.0 && speeds[i] <= 1e18)) return wrong(name, i, speeds[i], "not in 0..1e18");
    }
    return std::nullopt;
}

struct Kinds {
    std::vector<std::size_t> counts{};  // of usable GPUs
    std::vector<std::size_t> widths{};  // 1 + the last one
};

Kinds kinds_of(const MachineOffers& offers) {
    Kinds kinds;
    for (std::size_t kind = 0; kind < offers.usable.size() / offers.bytes; ++kind) {
        std::size_t count = 0, width = 0;
        offers.each_usable(static_cast<std::int32_t>(kind), [&](std::size_t i) {
            ++count;
            width = i + 1;
        });
        kinds.counts.push_back(count);
        kinds.widths.push_back(width);
    }
    return kinds;
}

}  // namespace

Fault check(const GangMachinesParams& params) {
    const std::size_t gpus = params.gpus.size();
    if (Fault fault = check_ends(params.gpu_ends, gpus)) return fault;
    if (Fault fault = check_once("gpus", params.gpus, gpus)) return fault;
    if (Fault fault = check_size("domain", params.domain.size(), gpus)) return fault;
    if (Fault fault = check_range("domain", params.domain, 0, std::size_t{1} << 31)) return fault;
    if (Fault fault = check_size("adapter", params.adapter.size(), gpus)) return fault;
    if (Fault fault = check_range("adapter", params.adapter, -1, params.gb_per_s.size())) return fault;
    if (Fault fault = check_size("way_out", params.way_out.size(), gpus)) return fault;
    if (Fault fault = check_speeds("way_out", params.way_out)) return fault;
    return check_speeds("gb_per_s", params.gb_per_s);
}

GangMachines::GangMachines(const GangMachinesParams& params)
    : ends_{0}, gpus_(params.gpus.begin(), params.gpus.end()) {
    for (const std::int64_t end : params.gpu_ends) ends_.push_back(static_cast<std::size_t>(end));
    for (std::size_t i = 0; i < params.gpus.size(); ++i) {
        const std::int32_t adapter = params.adapter[i];
        const double gb_per_s = adapter < 0 ? 0.0 : params.gb_per_s[index(adapter)];
        described_.push_back({params.domain[i], adapter, params.way_out[i], gb_per_s});
    }
}

Fault check(const MachineOffers& offers, const GangMachines& machines) {
    if (offers.bytes == 0 || offers.usable.size() % offers.bytes != 0) return "usable is not in equal rows";
    const Kinds kinds = kinds_of(offers);
    const std::size_t count = offers.machines.size();
    if (Fault fault = check_once("machines", offers.machines, index(machines.size()))) return fault;
    if (Fault fault = check_size("kind_of", offers.kind_of.size(), count)) return fault;
    if (Fault fault = check_range("kind_of", offers.kind_of, 0, kinds.counts.size())) return fault;
    if (Fault fault = check_size("sizes", offers.sizes.size(), count)) return fault;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t kind = index(offers.kind_of[i]);
        if (offers.sizes[i] < 0 || index(offers.sizes[i]) > kinds.counts[kind])
            return wrong("sizes", i, offers.sizes[i], "not a number of GPUs that its kind offers");
        if (kinds.widths[kind] > machines.gpus_of(offers.machines[i]).size())
            return wrong("kind_of", i, offers.kind_of[i], "offers more GPUs than the machine has");
    }
    return std::nullopt;
}

Fault check(const LevelCodes& codes, const GangMachines& machines) {
    for (const auto& level : codes) {
        if (Fault fault = check_size("codes", level.size(), index(machines.size()))) return fault;
    }
    return std::nullopt;
}

}  // namespace topoplace::decide
