// Binds the divisions of a job among machines.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <tuple>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/gang_divisions.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using divisions::DivideParams;
using divisions::DivideResult;
using divisions::Division;
using Integers = Array<std::int32_t>;
using Flags = Array<std::uint8_t>;
// (units, t) tasks of each, the GPU on which each task may stay, the order of units.
using UnitArrays = std::tuple<Integers, Integers, Integers>;
// Of each GPU its machine, and whether the job may use it.
using GpuArrays = std::tuple<Integers, Flags>;
// Of each machine its most tasks, whether it is known, and its class.
using MachineArrays = std::tuple<Integers, Flags, Integers>;
// Seconds by set of GPUs for each class, and by number of units.
using SecondsArrays = std::tuple<std::vector<Array<double>>, Array<double>>;
// The moves, the seconds and the GPU of each task, which is empty for some, of each division; whether there
// are too many, whether all were found, nodes.
using Divided = std::tuple<std::vector<std::tuple<std::int64_t, double, py::array_t<std::int32_t>>>, bool,
                           bool, std::uint64_t>;

struct DivisionArrays {
    DivisionArrays(const UnitArrays& units, const GpuArrays& gpus, const MachineArrays& machines,
                   const SecondsArrays& seconds) {
        const auto& [tasks, stays, order] = units;
        check_shape(tasks, "units", {-1, -1});
        params.units = as_span(tasks);
        params.unit_size = static_cast<std::int32_t>(tasks.shape(1));
        params.stays = as_span(stays);
        params.order = as_span(order);
        params.machine_of = as_span(std::get<0>(gpus));
        params.usable = as_span(std::get<1>(gpus));
        params.most = as_span(std::get<0>(machines));
        params.known = as_span(std::get<1>(machines));
        params.class_of = as_span(std::get<2>(machines));
        for (const auto& one : std::get<0>(seconds)) sets.push_back(as_span(one));
        params.seconds_of_sets = sets;
        params.seconds_of_count = as_span(std::get<1>(seconds));
    }
    DivisionArrays(const DivisionArrays&) = delete;  // the parameters refer to it
    DivisionArrays& operator=(const DivisionArrays&) = delete;

    std::vector<std::span<const double>> sets;
    DivideParams params;
};

Divided to_divided(DivideResult&& result) {
    Divided divided({}, result.too_many, result.complete, result.nodes);
    for (Division& one : result.found)
        std::get<0>(divided).emplace_back(one.moves, one.seconds, to_row(std::move(one.gpus)));
    return divided;
}

Divided divide(const UnitArrays& units, const GpuArrays& gpus, const MachineArrays& machines,
               const SecondsArrays& seconds, const Array<double>& limits, double below, bool fastest,
               std::uint64_t most_steps, std::optional<double> timeout,
               std::optional<std::uint64_t> max_nodes) {
    DivisionArrays arrays(units, gpus, machines, seconds);
    arrays.params.limits = as_span(limits);
    arrays.params.below = below;
    if (const Fault fault = divisions::check(arrays.params)) throw std::invalid_argument(*fault);
    arrays.params.fastest = fastest;
    arrays.params.most_steps = most_steps;
    arrays.params.stop = to_stop_condition(timeout, max_nodes);
    return to_divided(without_gil<DivideResult>([&] { return divisions::divide(arrays.params); }));
}

// `limits` of machines, and on their seconds.
Divided divide_gang(const decide::MachineLimits& of_machines, const UnitArrays& units, const Flags& usable,
                    const Integers& most, const Flags& known, const Array<double>& limits, double below,
                    std::uint64_t most_steps) {
    const auto& [tasks, stays, order] = units;
    check_shape(tasks, "units", {-1, -1});
    const DivideParams params{.units = as_span(tasks),
                              .unit_size = static_cast<std::int32_t>(tasks.shape(1)),
                              .usable = as_span(usable),
                              .most = as_span(most),
                              .stays = as_span(stays),
                              .known = as_span(known),
                              .order = as_span(order),
                              .limits = as_span(limits),
                              .below = below,
                              .most_steps = most_steps,
                              .stop = to_stop_condition({})};
    require(decide::GangDivision::check(of_machines, params));
    return to_divided(without_gil<DivideResult>([&] {
        const decide::GangDivision division(of_machines, params);
        require(divisions::check(division.params()));
        return divisions::divide(division.params());
    }));
}

Fault verify_division(const UnitArrays& units, const GpuArrays& gpus, const MachineArrays& machines,
                      const SecondsArrays& seconds, std::int64_t moves, double limit,
                      const Integers& placed) {
    const DivisionArrays arrays(units, gpus, machines, seconds);
    if (const Fault fault = divisions::check(arrays.params)) throw std::invalid_argument(*fault);
    const auto listed = as_span(placed);
    return divisions::verify_division(arrays.params, {moves, limit, {listed.begin(), listed.end()}});
}

}  // namespace

void register_divisions(py::module_& module) {
    module.def("divide", &divide, py::arg("units"), py::arg("gpus"), py::arg("machines"), py::arg("seconds"),
               py::arg("limits"), py::arg("below"), py::arg("fastest"), py::arg("most_steps"),
               py::arg("timeout"), py::arg("max_nodes"));
    module.def("divide_gang", &divide_gang, py::arg("of_machines"), py::arg("units"), py::arg("usable"),
               py::arg("most"), py::arg("known"), py::arg("limits"), py::arg("below"), py::arg("most_steps"));
    module.def("verify_division", &verify_division, py::arg("units"), py::arg("gpus"), py::arg("machines"),
               py::arg("seconds"), py::arg("moves"), py::arg("limit"), py::arg("placed"),
               "None where the division is right, else the reason why it is not.");
}

}  // namespace topoplace::bindings
