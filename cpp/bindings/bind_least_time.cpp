// Binds the decision about jobs of whole GPUs.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/least_time.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::decide::LeastTime>
    : public topoplace::bindings::HandleCaster<topoplace::decide::LeastTime> {};

namespace topoplace::bindings {
namespace {

using decide::ConditionSets;
using decide::LeastTime;
using Doubles = Array<double>;
// The machine or -1, the GPU of each task, seconds, whether these are proven to be the least, a bound on
// them, and whether several machines may be much faster.
using PlacedRow =
    std::tuple<std::int32_t, py::typing::Tuple<int, py::ellipsis>, double, bool, std::optional<double>, bool>;

std::unique_ptr<LeastTime> make_least_time(ConditionSets& sets, MachineRanking& ranking,
                                           const py::object& domains, std::size_t before_domains,
                                           const decide::GangTopology& topology,
                                           const decide::GangLevels& levels,
                                           const std::optional<DemandRow>& hosts, std::int32_t most,
                                           std::int32_t max_machines, bool is_limited, double split,
                                           double compact) {
    const decide::LeastTimeParams params{
        .sets = &sets,
        .ranking = &ranking,
        .domains = domains.is_none() ? nullptr : &domains.cast<DomainFill&>(),
        .before_domains = before_domains,
        .topology = &topology,
        .levels = &levels,
        .hosts = hosts ? std::optional(demand_of(*hosts)) : std::nullopt,
        .most = most,
        .max_machines = max_machines,
        .is_limited = is_limited,
        .split = split,
        .compact = compact};
    require(check(params));
    return std::make_unique<LeastTime>(params);
}

std::optional<PlacedRow> row_of(const decide::PlacedJob& placed) {
    if (!placed.found) return std::nullopt;
    py::tuple gpus(placed.gpus.size());
    for (std::size_t i = 0; i < placed.gpus.size(); ++i) gpus[i] = placed.gpus[i];
    return PlacedRow{placed.machine, std::move(gpus), placed.seconds,
                     placed.optimal, placed.least,    placed.may_be_faster_if_split};
}

std::optional<PlacedRow> on_one_machine(const LeastTime& decision, const CollectivesHandle& job,
                                        std::optional<double> timeout) {
    require(decision.check(job.view()));
    const StopCondition stop = to_stop_condition(timeout);
    decide::PlacedJob placed{.complete = false};
    while (!placed.complete) {  // another thread may have changed the best machine meanwhile
        placed = decision.on_one_machine(job.view(), stop, kOtherThreads);
        raise_pending();
        if (!placed.complete && stop.time_is_up()) raise_time_is_up();
    }
    return row_of(placed);
}

std::optional<PlacedRow> on_several(const LeastTime& decision, const CollectivesHandle& job,
                                    const Doubles& edges, const GangGroupsHandle& groups, double tflop,
                                    const Doubles& tflop_per_s, const py::object& others,
                                    std::optional<double> timeout) {
    const decide::GangJob gang{.collectives = job.view(),
                               .edges = as_span(edges),
                               .groups = groups.groups,
                               .bound = groups.bound,
                               .tflop = tflop,
                               .tflop_per_s = as_span(tflop_per_s),
                               .others = others_of(others)};
    require(decision.check(gang));
    const decide::PlacedJob placed =
        decision.on_several(gang, to_stop_condition(timeout), to_stop_condition({}), kOtherThreads);
    raise_pending();
    return row_of(placed);
}

}  // namespace

void register_least_time(py::module_& module) {
    py::class_<LeastTime>(module, "LeastTime", "Decides jobs of equal needs.")
        .def(py::init(&make_least_time), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(),
             py::keep_alive<1, 4>(), py::keep_alive<1, 6>(), py::keep_alive<1, 7>(), py::arg("sets"),
             py::arg("ranking"), py::arg("domains"), py::arg("before_domains"), py::arg("topology"),
             py::arg("levels"), py::arg("hosts"), py::arg("most"), py::arg("max_machines"),
             py::arg("is_limited"), py::arg("split"), py::arg("compact"),
             "hosts: the CPUs and memory of a job. most: tasks on one machine. max_machines: 0 for no limit. "
             "is_limited: GPUs with more memory than those of `sets` may be faster. "
             "split: how many times faster several machines have to be than one; 0 never splits a job that "
             "fits one.")
        .def("on_one_machine", &on_one_machine, py::arg("job"), py::arg("timeout"),
             "The machine, the GPU of each task, seconds, whether these are the least, a bound, and whether "
             "several machines may be much faster; None without room. DeadlineError after `timeout` seconds.")
        .def("on_several", &on_several, py::arg("job"), py::arg("edges"), py::arg("groups"), py::arg("tflop"),
             py::arg("tflop_per_s"), py::arg("others"), py::arg("timeout"),
             "The same; None also where some tasks have no path. "
             "timeout: exceeded only until there is a first mapping.");
}

}  // namespace topoplace::bindings
