// Binds the search for the GPUs of a gang.
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
// The machine of each task or none, whether it may leave it, whether the gang is balanced, tasks together in
// a domain of a level, levels at which one domain must have all tasks.
using GangStart =
    std::tuple<Int32s, bool, bool, std::vector<std::pair<std::size_t, Int32s>>, std::vector<std::size_t>>;
// By what share times may differ and count as equal, whether only near GPUs of a machine are compared, and
// the share of the usual work.
using GangTimes = std::tuple<double, bool, double>;
// The GPU of each task, seconds, and a lower bound on these.
using GangGpus = std::tuple<py::array_t<std::int32_t>, double, double>;

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

// (offers, bytes) free GPUs of each machine, as bits.
std::vector<std::uint8_t> free_of(MachineConditions& conditions, std::span<const std::int32_t> machines,
                                  std::size_t& bytes) {
    conditions.refresh();
    const auto words_of = [&](std::int32_t machine) -> const MachineConditions::Words& {
        if (machine < 0 || machine >= conditions.num_machines())
            throw py::index_error("machine = " + std::to_string(machine));
        return conditions.condition(conditions.condition_of(machine)).free;
    };
    std::size_t words = 1;
    for (const std::int32_t machine : machines) words = std::max(words, words_of(machine).size());
    bytes = 8 * words;
    std::vector<std::uint8_t> found(machines.size() * bytes, 0);
    for (std::size_t i = 0; i < machines.size(); ++i) {
        const MachineConditions::Words& own = words_of(machines[i]);
        for (std::size_t byte = 0; byte < 8 * own.size(); ++byte)
            found[i * bytes + byte] = static_cast<std::uint8_t>(own[byte / 8] >> (byte % 8 * 8));
    }
    return found;
}

std::optional<GangGpus> search_gang(const GangTopology& topology, const GangLevels& levels,
                                    MachineConditions& conditions, const Offered& offered,
                                    const CollectivesHandle& job, const Doubles& edges, std::int32_t most,
                                    const Int32s& units, bool machine_groups, const GangStart& start,
                                    const py::object& others, const GangTimes& times,
                                    std::optional<double> timeout) {
    const auto& [machine_of, may_leave, is_balanced, together, whole] = start;
    check_shape(units, "units", {-1, -1});
    decide::GangSearchParams params{.topology = &topology, .levels = &levels, .offers = to_offers(offered)};
    const std::vector<std::uint8_t> free = free_of(conditions, params.offers.machines, params.free_bytes);
    params.free = free;
    params.job = job.view();
    params.edges = as_span(edges);
    params.most = most;
    params.units = {as_span(units), static_cast<std::int32_t>(units.shape(1))};
    params.machine_groups = machine_groups;
    params.start = as_span(machine_of);
    params.may_leave = may_leave;
    params.is_balanced = is_balanced;
    for (const auto& [level, members] : together) params.together.push_back({level, as_span(members)});
    params.whole = whole;
    params.others = others_of(others);
    std::tie(params.slack, params.near_only, params.share) = times;
    params.stop = to_stop_condition(timeout);
    auto found = without_gil<decide::GangFound>([&] {
        require(check(params));
        return decide::search_gang(params);
    });
    if (!found.found) return std::nullopt;
    return GangGpus{to_row(std::move(found.gpus)), found.seconds, found.least};
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
    module.def("search_gang", &search_gang, py::arg("topology"), py::arg("levels"), py::arg("conditions"),
               py::arg("offers"), py::arg("job"), py::arg("edges"), py::arg("most"), py::arg("units"),
               py::arg("machine_groups"), py::arg("start"), py::arg("others"), py::arg("times"),
               py::arg("timeout"),
               "The GPU of each task, seconds beside the others, and the least seconds; None without room.");
}

}  // namespace topoplace::bindings
