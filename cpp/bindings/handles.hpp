// Handles of objects that several files bind functions of.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "topoplace/condition_sets.hpp"
#include "topoplace/domain_fill.hpp"
#include "topoplace/gang_bounds.hpp"
#include "topoplace/gang_groups.hpp"
#include "topoplace/gang_search.hpp"
#include "topoplace/gang_units.hpp"
#include "topoplace/host_demand.hpp"
#include "topoplace/job_traffic.hpp"
#include "topoplace/machine_conditions.hpp"
#include "topoplace/machine_ranking.hpp"
#include "topoplace/together.hpp"

namespace topoplace::bindings {

using CollectivesHandle = traffic::KeptCollectives;

// Machines, the kind of each, the most tasks of each, (kinds, bytes) usable GPUs as bits.
using Offered =
    std::tuple<Array<std::int32_t>, Array<std::int32_t>, Array<std::int32_t>, Array<std::uint8_t>>;

inline decide::MachineOffers to_offers(const Offered& offered) {
    const auto& [numbers, kind_of, sizes, usable] = offered;
    check_shape(usable, "usable", {-1, -1});
    return {as_span(numbers), as_span(kind_of), as_span(sizes), as_span(usable),
            static_cast<std::size_t>(usable.shape(1))};
}

// Groups of tasks: the level of each, where it ends, and the tasks of all.
using TogetherRows = std::tuple<Array<std::int32_t>, Array<std::int64_t>, Array<std::int32_t>>;

std::vector<decide::Together> to_together(const TogetherRows& rows);

// The groups of a gang with the arrays that hold them.
struct GangGroupsHandle {
    TogetherRows required{}, apart{}, preferred{}, roles{};
    decide::TaskGroups groups{};
    decide::GangGroups bound{};
};

}  // namespace topoplace::bindings

template <>
class pybind11::detail::type_caster<topoplace::ports::PortNetwork>
    : public topoplace::bindings::HandleCaster<topoplace::ports::PortNetwork> {};
template <>
class pybind11::detail::type_caster<topoplace::ports::FlowCounts>
    : public topoplace::bindings::HandleCaster<topoplace::ports::FlowCounts> {};
template <>
class pybind11::detail::type_caster<topoplace::collective::RingRates>
    : public topoplace::bindings::HandleCaster<topoplace::collective::RingRates> {};
template <>
class pybind11::detail::type_caster<topoplace::traffic::CollectiveNetwork>
    : public topoplace::bindings::HandleCaster<topoplace::traffic::CollectiveNetwork> {};
template <>
class pybind11::detail::type_caster<topoplace::bindings::CollectivesHandle>
    : public topoplace::bindings::HandleCaster<topoplace::bindings::CollectivesHandle> {};
template <>
class pybind11::detail::type_caster<topoplace::MachineConditions>
    : public topoplace::bindings::HandleCaster<topoplace::MachineConditions> {};
template <>
class pybind11::detail::type_caster<topoplace::MachineRanking>
    : public topoplace::bindings::HandleCaster<topoplace::MachineRanking> {};
template <>
class pybind11::detail::type_caster<topoplace::DomainFill>
    : public topoplace::bindings::HandleCaster<topoplace::DomainFill> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::ConditionSets>
    : public topoplace::bindings::HandleCaster<topoplace::decide::ConditionSets> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::Machine>
    : public topoplace::bindings::HandleCaster<topoplace::decide::Machine> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::GangMachines>
    : public topoplace::bindings::HandleCaster<topoplace::decide::GangMachines> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::GangLevels>
    : public topoplace::bindings::HandleCaster<topoplace::decide::GangLevels> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::GangTopology>
    : public topoplace::bindings::HandleCaster<topoplace::decide::GangTopology> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::GpuDistances>
    : public topoplace::bindings::HandleCaster<topoplace::decide::GpuDistances> {};
template <>
class pybind11::detail::type_caster<topoplace::bindings::GangGroupsHandle>
    : public topoplace::bindings::HandleCaster<topoplace::bindings::GangGroupsHandle> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::GangRoom>
    : public topoplace::bindings::HandleCaster<topoplace::decide::GangRoom> {};
template <>
class pybind11::detail::type_caster<topoplace::decide::MachineLimits>
    : public topoplace::bindings::HandleCaster<topoplace::decide::MachineLimits> {};

namespace topoplace::bindings {

// A set of numbers as bits, the lowest byte first.
inline MachineConditions::Words words_of(const pybind11::bytes& given) {
    const std::string_view bytes = given;
    MachineConditions::Words words((bytes.size() + 7) / 8, 0);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        words[i / 8] |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * (i % 8));
    return words;
}

// Tasks; their CPUs in units, and thousandths in a unit; MB of a task, rounded up and down; thousandths of
// CPUs and MB of the whole job on one machine.
using DemandRow = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                             std::int64_t, std::int64_t>;

inline HostDemand demand_of(const DemandRow& row) {
    const auto& [tasks, cpus, unit, megabytes, least, whole_cpus, whole_megabytes] = row;
    const HostDemand job{.num_tasks = tasks,
                         .cpus = cpus,
                         .unit = unit,
                         .megabytes = megabytes,
                         .least_megabytes = least,
                         .whole = {whole_cpus, whole_megabytes}};
    require(check(job));
    return job;
}

// The flows of other jobs; null for None.
inline const ports::FlowCounts* others_of(const pybind11::object& others) {
    return others.is_none() ? nullptr : &others.cast<const ports::FlowCounts&>();
}

}  // namespace topoplace::bindings
