// Binds the decision about the GPUs of a gang.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/free_offers.hpp"
#include "topoplace/gang_decision.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using decide::GangLevels;
using decide::GangTopology;
using Int32s = Array<std::int32_t>;
using Int64s = Array<std::int64_t>;
using Doubles = Array<double>;
// Codes, domains, uplink, uplinks, whether it is switched.
using LevelRow = std::tuple<Int64s, Int64s, Doubles, Int64s, bool>;
// By what share times may differ and count as equal; whether only near GPUs of a machine are compared.
using GangTimes = std::tuple<double, bool>;
// The share by which a step may take longer, the most machines, TFLOP of a step and TFLOP/s of each GPU.
using GangCompact = std::tuple<double, std::int32_t, double, Doubles>;
// The GPU of each task, seconds, and a lower bound on these.
using GangMade = std::tuple<py::array_t<std::int32_t>, double, double>;

std::unique_ptr<GangLevels> make_levels(const GangTopology& topology, const std::vector<LevelRow>& rows,
                                        bool meet_anywhere) {
    if (rows.empty()) throw std::invalid_argument("levels has none, the last is that of machines");
    std::vector<decide::GangLevelParams> levels;
    for (const auto& [codes, domains, uplink, uplinks, is_switched] : rows) {
        levels.push_back({as_span(codes), as_span(domains), as_span(uplink), as_span(uplinks), is_switched});
        require(check(levels.back(), topology.machines.size(), topology.network.ports()));
    }
    return std::make_unique<GangLevels>(levels, meet_anywhere);
}

std::unique_ptr<GangTopology> make_topology(const decide::GangLimits& limits,
                                            const traffic::CollectiveNetwork& network,
                                            const Doubles& adapter_speed, const Doubles& nvlink_speed) {
    const decide::GangTopologyParams params{&limits, &network, as_span(adapter_speed), as_span(nvlink_speed)};
    require(GangTopology::check(params));
    return std::make_unique<GangTopology>(params);
}

}  // namespace

std::vector<decide::Together> to_together(const TogetherRows& rows) {
    const auto& [levels, ends, tasks] = rows;
    const auto all = as_span(tasks);
    if (levels.size() != ends.size()) throw std::invalid_argument("groups have different numbers of levels");
    std::vector<decide::Together> found;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < as_span(ends).size(); ++i) {
        const std::int64_t end = as_span(ends)[i];
        if (as_span(levels)[i] < 0 || end <= begin || static_cast<std::size_t>(end) > all.size())
            throw std::invalid_argument("groups[" + std::to_string(i) + "] has no level, or no tasks");
        found.push_back(
            {static_cast<std::size_t>(as_span(levels)[i]),
             all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))});
        begin = end;
    }
    return found;
}

namespace {

std::unique_ptr<GangGroupsHandle> make_groups(std::int32_t num_tasks, bool are_stated, const GangLevels& tree,
                                              std::vector<std::size_t> level_of, TogetherRows required,
                                              TogetherRows apart, TogetherRows preferred,
                                              std::int32_t balanced, bool on_machine, std::size_t outermost,
                                              TogetherRows roles, const py::object& distances) {
    auto made = std::make_unique<GangGroupsHandle>(
        GangGroupsHandle{std::move(required), std::move(apart), std::move(preferred), std::move(roles)});
    decide::GangGroups& bound = made->bound;
    bound.tree = &tree;
    bound.level_of = std::move(level_of);
    bound.required = to_together(made->required);
    bound.apart = to_together(made->apart);
    bound.preferred = to_together(made->preferred);
    bound.balanced = balanced;
    bound.on_machine = on_machine;
    bound.outermost = outermost;
    for (const decide::Together& role : to_together(made->roles)) bound.roles.push_back(role.tasks);
    bound.distances = distances.is_none() ? nullptr : &distances.cast<const decide::GpuDistances&>();
    made->groups = {.num_tasks = num_tasks, .are_stated = are_stated};
    for (const auto* some : {&bound.required, &bound.apart}) {
        for (const decide::Together& one : *some)
            (one.level + 1 == tree.size() ? made->groups.on_machine : made->groups.in_domain)
                .push_back(one.tasks);
    }
    require(check(made->groups));
    return made;
}

py::array_t<std::int32_t> gang_units(const CollectivesHandle& job, const GangGroupsHandle& groups,
                                     std::int32_t most, const Int32s& sizes) {
    require(traffic::check(job.view(), static_cast<std::size_t>(groups.groups.num_tasks)));
    for (const std::int32_t size : as_span(sizes)) {
        if (size < 0) throw std::invalid_argument("sizes has " + std::to_string(size) + ": below 0");
    }
    decide::GangUnits found = decide::first_units(job.view(), groups.groups, most, as_span(sizes));
    const auto count = static_cast<py::ssize_t>(found.view().count());
    return to_array(std::move(found.tasks), {count, found.size});
}

// A gang, and the GPUs that are free on the machines that are offered to it.
struct AskedGang {
    decide::GangDecisionParams params{};
    std::vector<std::uint8_t> free{};
};

AskedGang to_gang(const GangTopology& topology, const GangLevels& levels, MachineConditions& conditions,
                  const Offered& offered, const CollectivesHandle& job, const Doubles& edges,
                  std::int32_t most, const GangGroupsHandle& groups, std::optional<double> timeout) {
    AskedGang asked{.params = {.groups = groups.groups, .bound = groups.bound}};
    decide::GangSearchParams& search = asked.params.search;
    search.topology = &topology;
    search.levels = &levels;
    search.offers = to_offers(offered);
    for (const std::int32_t machine : search.offers.machines) {
        if (machine < 0 || machine >= conditions.num_machines())
            throw py::index_error("machine = " + std::to_string(machine));
    }
    asked.free = decide::free_gpus(conditions, search.offers.machines, search.free_bytes);
    search.free = asked.free;
    search.job = job.view();
    search.edges = as_span(edges);
    search.most = most;
    search.stop = to_stop_condition(timeout);
    asked.params.until_found = to_stop_condition({});
    return asked;
}

std::optional<GangMade> place_gang(const GangTopology& topology, const GangLevels& levels,
                                   MachineConditions& conditions, const Offered& offered,
                                   const CollectivesHandle& job, const Doubles& edges, std::int32_t most,
                                   const GangGroupsHandle& groups, bool may_divide, const py::object& others,
                                   const GangTimes& times, const GangCompact& compact,
                                   std::optional<double> timeout) {
    AskedGang asked = to_gang(topology, levels, conditions, offered, job, edges, most, groups, timeout);
    decide::GangDecisionParams& params = asked.params;
    params.may_divide = may_divide;
    params.search.others = others_of(others);
    std::tie(params.search.slack, params.search.near_only) = times;
    params.compact = std::get<0>(compact);
    params.max_machines = std::get<1>(compact);
    params.tflop = std::get<2>(compact);
    params.tflop_per_s = as_span(std::get<3>(compact));
    auto made = without_gil<decide::GangFound>([&] {
        require(check(params));
        return decide::place_gang(params);
    });
    if (!made.found) return std::nullopt;
    return GangMade{to_row(std::move(made.gpus)), made.seconds, made.least};
}

bool can_place_gang(const GangTopology& topology, const GangLevels& levels, MachineConditions& conditions,
                    const Offered& offered, const CollectivesHandle& job, const Doubles& edges,
                    std::int32_t most, const GangGroupsHandle& groups, std::optional<double> timeout) {
    const AskedGang asked = to_gang(topology, levels, conditions, offered, job, edges, most, groups, timeout);
    return without_gil<bool>([&] {
        require(check(asked.params));
        return decide::can_place_gang(asked.params);
    });
}

}  // namespace

void register_gang_search(py::module_& module) {
    py::class_<GangTopology>(module, "GangTopology", "What is known of a topology before any gang asks.")
        .def(py::init(&make_topology), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(), py::arg("limits"),
             py::arg("network"), py::arg("adapter_speed"), py::arg("nvlink_speed"),
             "Speeds: (m,) mean GB/s per GPU of each machine, of adapters and of NVLinks into switches.");
    py::class_<GangLevels>(module, "GangLevels", "The levels of domains around machines, and their uplinks.")
        .def(py::init(&make_levels), py::arg("topology"), py::arg("levels"), py::arg("meet_anywhere"),
             "The outermost level first, machines last. Of each: (m,) domains of machines in the tree, (m,) "
             "domains without cuts, (m,) GB/s of uplinks, (k, 2) machines and uplinks, and whether NVLinks "
             "join the machines of a domain.");
    py::class_<GangGroupsHandle>(module, "GangGroups", "What binds the tasks of a gang to each other.")
        .def(py::init(&make_groups), py::keep_alive<1, 4>(), py::keep_alive<1, 13>(), py::arg("num_tasks"),
             py::arg("are_stated"), py::arg("tree"), py::arg("level_of"), py::arg("required"),
             py::arg("apart"), py::arg("preferred"), py::arg("balanced"), py::arg("on_machine"),
             py::arg("outermost"), py::arg("roles"), py::arg("distances"),
             "tree: the levels that groups name by their numbers. level_of: each of these among the levels "
             "of the search. Groups: the level and the end of each, and the tasks of all.");
    module.def("gang_units", &gang_units, py::arg("job"), py::arg("groups"), py::arg("most"),
               py::arg("sizes"), "(u, t) the tasks of each unit; sizes: of machines, the most tasks.");
    module.def("place_gang", &place_gang, py::arg("topology"), py::arg("levels"), py::arg("conditions"),
               py::arg("offers"), py::arg("job"), py::arg("edges"), py::arg("most"), py::arg("groups"),
               py::arg("may_divide"), py::arg("others"), py::arg("times"), py::arg("compact"),
               py::arg("timeout"),
               "The GPU of each task, seconds beside the others, and the least seconds; None without room.");
    module.def("can_place_gang", &can_place_gang, py::arg("topology"), py::arg("levels"),
               py::arg("conditions"), py::arg("offers"), py::arg("job"), py::arg("edges"), py::arg("most"),
               py::arg("groups"), py::arg("timeout"));
}

}  // namespace topoplace::bindings
