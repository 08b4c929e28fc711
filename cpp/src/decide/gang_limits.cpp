// What limits gangs on a topology: the fastest ports and rings of its machines.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "decide/set_times.hpp"
#include "graph/index.hpp"
#include "topoplace/gang_bounds.hpp"

namespace topoplace::decide {
namespace {

bool has_adapter(const GangMachines& gpus, std::int32_t machine, bool all) {
    const auto has_one = [&](std::int32_t gpu) { return gpus.gpu(gpu).adapter >= 0; };
    const auto own = gpus.gpus_of(machine);
    return all ? std::ranges::all_of(own, has_one) : std::ranges::any_of(own, has_one);
}

bool have_adapters(const GangMachines& gpus, bool all) {
    for (std::int32_t machine = 0; machine < gpus.size(); ++machine) {
        if (has_adapter(gpus, machine, all) != all) return !all;
    }
    return all;
}

std::size_t most_gpus(const std::vector<const Machine*>& machines) {
    std::size_t most = 0;
    for (const Machine* one : machines) most = std::max(most, one->num_gpus());
    return most;
}

double fastest_on(const Machine& machine, std::size_t size, WorkMeter& meter) {
    const std::size_t n = machine.num_gpus();
    if (size > n) return 0.0;
    if (machine.rated == nullptr || collective::num_sets(n, size) > kMostSets) return kNever;
    Gpus all(n);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<double> pairs = machine.rated->rated(collective::sets_of(all, 2), meter);
    // Some exchange over ports, by which they may be faster.
    if (std::ranges::any_of(pairs, [](double one) { return one <= 0.0; })) return kNever;
    return std::ranges::max(machine.rated->fastest(collective::sets_of(all, size), meter));
}

}  // namespace

Fault check(const GangLimitsParams& params) {
    for (const GangLimitsParams::Entry& one : params.entries) {
        if (!(one.of_gpu > 0.0 && one.of_machine > 0.0)) return "entries has a speed that is not above 0";
    }
    if (params.class_of.size() != index(params.gpus->size()))
        return "class_of has " + std::to_string(params.class_of.size()) + " entries, not " +
               std::to_string(params.gpus->size());
    for (std::size_t i = 0; i < params.class_of.size(); ++i) {
        const std::int32_t one = params.class_of[i];
        const auto own = params.gpus->gpus_of(static_cast<std::int32_t>(i)).size();
        const bool is_right =
            one >= 0 && index(one) < params.machines.size() && params.machines[index(one)]->num_gpus() == own;
        if (!is_right)
            return "class_of[" + std::to_string(i) + "] = " + std::to_string(one) + ": no machine of " +
                   std::to_string(own) + " GPUs";
    }
    return std::nullopt;
}

Fault check(const GangRoom& room, std::span<const std::int32_t> own_class) {
    if (own_class.size() + 1 != room.tasks.size())
        return "own_class has " + std::to_string(own_class.size()) + " entries, not " +
               std::to_string(room.tasks.size() - 1);
    if (std::ranges::all_of(own_class, [](std::int32_t one) { return one == 0 || one == 1; }))
        return std::nullopt;
    return "own_class has a number other than 0 and 1";
}

GangLimits::GangLimits(const GangLimitsParams& params)
    : entries(params.entries),
      most_of_a_gpu(params.most_of_a_gpu),
      has_relays(params.has_relays),
      join_machines(params.join_machines),
      most_switched(params.most_switched),
      are_switched(params.are_switched),
      most_reducing(params.most_reducing),
      most_reduced(params.most_reduced),
      gpus(*params.gpus),
      machines(params.machines),
      class_of(params.class_of.begin(), params.class_of.end()),
      has_adapters(have_adapters(*params.gpus, false)),
      all_have_adapters(have_adapters(*params.gpus, true)),
      fastest_(1 + most_gpus(params.machines)) {}

double GangLimits::of_unit(std::int32_t port_class, std::int64_t unit) const {
    double most = 0.0;
    for (const GangLimitsParams::Entry& one : std::span(entries).first(index(port_class) + 1))
        most = std::max(most, std::min(static_cast<double>(unit) * one.of_gpu, one.of_machine));
    return most;
}

double GangLimits::fastest_rings(std::int64_t size, WorkMeter& meter) const {
    const auto place = static_cast<std::size_t>(size);
    if (place >= fastest_.size()) return 0.0;
    const double* found = fastest_[place].get([&]() -> std::optional<double> {
        double most = 0.0;
        for (const Machine* one : machines) most = std::max(most, fastest_on(*one, place, meter));
        return meter.stopped() ? std::nullopt : std::optional(most);
    });
    return found == nullptr ? kNever : *found;
}

bool GangLimits::are_alike() const {
    return std::ranges::all_of(machines, [](const Machine* one) { return one->are_alike; });
}

}  // namespace topoplace::decide
