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
// Tasks that are in one domain of a level.
using TogetherRows = std::vector<std::pair<std::size_t, Int32s>>;
// The number of tasks, whether their collectives are stated, groups on one machine, groups in a larger
// domain.
using GroupRows = std::tuple<std::int32_t, bool, std::vector<Int32s>, std::vector<Int32s>>;
// The machine of each task and (u, t) units, or none of both; whether the gang is balanced; tasks together in
// a domain of a level; levels at which one domain must have all tasks; whether groups, balance or a number of
// machines bind the gang.
using GangStart = std::tuple<Int32s, Int32s, bool, TogetherRows, std::vector<std::size_t>, bool>;
// By what share times may differ and count as equal; whether only near GPUs of a machine are compared.
using GangTimes = std::tuple<double, bool>;
// The GPU of each task, seconds, and a lower bound on these.
using GangGpus = std::tuple<Int32s, double, double>;
// The share by which a step may take longer, the most machines, tasks that should be together, TFLOP of a
// step and TFLOP/s of each GPU, and what was found on all offers.
using GangCompact = std::tuple<double, std::int32_t, TogetherRows, double, Doubles, std::optional<GangGpus>>;
// The GPU of each task, seconds, the bound, whether it is open, and offers among which to search once more.
using GangMade = std::tuple<py::array_t<std::int32_t>, double, double, bool, std::vector<std::size_t>>;

std::unique_ptr<GangLevels> make_levels(const GangTopology& topology, const std::vector<LevelRow>& rows,
                                        bool meet_anywhere) {
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

std::vector<std::size_t> beside_no_others(const GangLevels& levels, std::size_t level, const Int32s& machines,
                                          const ports::FlowCounts& others, double most) {
    return levels.beside_no_others(level, as_span(machines), others, most);
}

std::vector<decide::Together> to_together(const TogetherRows& rows) {
    std::vector<decide::Together> found;
    for (const auto& [level, members] : rows) found.push_back({level, as_span(members)});
    return found;
}

decide::TaskGroups to_groups(const GroupRows& rows) {
    const auto& [num_tasks, are_stated, on_machine, in_domain] = rows;
    decide::TaskGroups groups{.num_tasks = num_tasks, .are_stated = are_stated};
    for (const auto& group : on_machine) groups.on_machine.push_back(as_span(group));
    for (const auto& group : in_domain) groups.in_domain.push_back(as_span(group));
    return groups;
}

std::optional<decide::GangFound> to_found(const std::optional<GangGpus>& given) {
    if (!given) return std::nullopt;
    const auto& [gpus, seconds, least] = *given;
    return decide::GangFound{true, {gpus.data(), gpus.data() + gpus.size()}, seconds, least};
}

py::array_t<std::int32_t> gang_units(const CollectivesHandle& job, const GroupRows& rows, std::int32_t most,
                                     const Int32s& sizes) {
    const decide::TaskGroups groups = to_groups(rows);
    require(check(groups));
    require(traffic::check(job.view(), static_cast<std::size_t>(groups.num_tasks)));
    for (const std::int32_t size : as_span(sizes)) {
        if (size < 0) throw std::invalid_argument("sizes has " + std::to_string(size) + ": below 0");
    }
    decide::GangUnits found = decide::first_units(job.view(), groups, most, as_span(sizes));
    const auto count = static_cast<py::ssize_t>(found.view().count());
    return to_array(std::move(found.tasks), {count, found.size});
}

std::optional<GangMade> place_gang(const GangTopology& topology, const GangLevels& levels,
                                   MachineConditions& conditions, const Offered& offered,
                                   const CollectivesHandle& job, const Doubles& edges, std::int32_t most,
                                   const GroupRows& groups, const GangStart& start, const py::object& others,
                                   const GangTimes& times, const GangCompact& compact,
                                   const std::optional<GangGpus>& known, bool is_last,
                                   std::optional<double> timeout) {
    const auto& [machine_of, units, is_balanced, together, whole, is_bound] = start;
    decide::GangDecisionParams params{.groups = to_groups(groups), .is_bound = is_bound, .is_last = is_last};
    decide::GangSearchParams& search = params.search;
    search.topology = &topology;
    search.levels = &levels;
    search.offers = to_offers(offered);
    for (const std::int32_t machine : search.offers.machines) {
        if (machine < 0 || machine >= conditions.num_machines())
            throw py::index_error("machine = " + std::to_string(machine));
    }
    const auto free = decide::free_gpus(conditions, search.offers.machines, search.free_bytes);
    search.free = free;
    search.job = job.view();
    search.edges = as_span(edges);
    search.most = most;
    check_shape(units, "units", {-1, -1});
    search.units = {as_span(units), static_cast<std::int32_t>(units.shape(1))};
    search.start = as_span(machine_of);
    search.is_balanced = is_balanced;
    search.together = to_together(together);
    search.whole = whole;
    search.others = others_of(others);
    std::tie(search.slack, search.near_only) = times;
    search.stop = to_stop_condition(timeout);
    params.compact = std::get<0>(compact);
    params.max_machines = std::get<1>(compact);
    params.preferred = to_together(std::get<2>(compact));
    params.tflop = std::get<3>(compact);
    params.tflop_per_s = as_span(std::get<4>(compact));
    const auto before = to_found(known), instead = to_found(std::get<5>(compact));
    params.known = before ? &*before : nullptr;
    params.instead = instead ? &*instead : nullptr;
    auto made = without_gil<decide::GangDecision>([&] {
        require(check(params));
        return decide::place_gang(params);
    });
    if (!made.best.found) return std::nullopt;
    return GangMade{to_row(std::move(made.best.gpus)), made.best.seconds, made.best.least, made.is_open,
                    std::move(made.fewer)};
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
             "join the machines of a domain.")
        .def("beside_no_others", &beside_no_others, py::arg("level"), py::arg("machines"), py::arg("others"),
             py::arg("most"),
             "The numbers of machines in domains, of the level and inside it, whose uplinks others do not "
             "use.");
    module.def("gang_units", &gang_units, py::arg("job"), py::arg("groups"), py::arg("most"),
               py::arg("sizes"), "(u, t) the tasks of each unit; sizes: of machines, the most tasks.");
    module.def(
        "place_gang", &place_gang, py::arg("topology"), py::arg("levels"), py::arg("conditions"),
        py::arg("offers"), py::arg("job"), py::arg("edges"), py::arg("most"), py::arg("groups"),
        py::arg("start"), py::arg("others"), py::arg("times"), py::arg("compact"), py::arg("known"),
        py::arg("is_last"), py::arg("timeout"),
        "The GPU of each task, seconds beside the others, the least seconds, whether more may be found, "
        "and offers in fewer domains; None without room.");
}

}  // namespace topoplace::bindings
