// Binds what the units of a gang exchange, and lower bounds on its time.
#include <pybind11/stl.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/gang_bounds.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using decide::GangLimits;
using decide::GangLimitsParams;
using decide::MachineLimits;
using Numbers = Array<std::int32_t>;
// Phase ends, from, to, GB.
using ExchangeColumns = std::tuple<std::vector<std::int64_t>, py::array_t<std::int32_t>,
                                   py::array_t<std::int32_t>, py::array_t<double>>;

// entries: of adapters, then of NVLinks: of one GPU, of a machine. switched: the most, whether all have some.
std::unique_ptr<GangLimits> make_limits(const std::array<std::pair<double, double>, 2>& entries,
                                        double most_of_a_gpu, bool has_relays, bool join_machines,
                                        std::pair<double, bool> switched, std::pair<double, double> reducing,
                                        const decide::GangMachines& gpus,
                                        std::vector<const decide::Machine*> machines,
                                        const Numbers& class_of) {
    GangLimitsParams params{.most_of_a_gpu = most_of_a_gpu,
                            .has_relays = has_relays,
                            .join_machines = join_machines,
                            .most_switched = switched.first,
                            .are_switched = switched.second,
                            .most_reducing = reducing.first,
                            .most_reduced = reducing.second,
                            .gpus = &gpus,
                            .machines = std::move(machines),
                            .class_of = as_span(class_of)};
    for (std::size_t i = 0; i < entries.size(); ++i)
        params.entries[i] = {entries[i].first, entries[i].second};
    require(check(params));
    return std::make_unique<GangLimits>(params);
}

decide::Units to_units(const CollectivesHandle& job, const Numbers& units) {
    check_shape(units, "units", {-1, -1});
    const decide::Units found{as_span(units), static_cast<std::int32_t>(units.shape(1))};
    require(check(job.view(), found));
    return found;
}

ExchangeColumns exchanges_of(const CollectivesHandle& job, const Numbers& units, bool rings) {
    const decide::Units of = to_units(job, units);
    auto found = without_gil<decide::Exchanges>([&] { return decide::exchanges_of(job.view(), of, rings); });
    return {std::move(found.phase_ends), to_row(std::move(found.from)), to_row(std::move(found.to)),
            to_row(std::move(found.gigabytes))};
}

std::vector<double> largest_flows(const CollectivesHandle& job, const Numbers& units) {
    return decide::largest_flows(job.view(), to_units(job, units));
}

std::pair<double, double> least_seconds(const GangLimits& limits, const decide::GangRoom& room,
                                        const std::vector<std::int32_t>& own_class,
                                        const CollectivesHandle& job, const Numbers& units,
                                        bool machine_groups) {
    const decide::Units of = to_units(job, units);
    require(check(room, own_class));
    const auto found = without_gil<decide::Least>([&] {
        WorkMeter meter(to_stop_condition({}));
        return decide::least_seconds(limits, room, own_class, job.view(), of, machine_groups, meter);
    });
    return {found.of_all, found.of_whole};
}

std::unique_ptr<MachineLimits> make_machine_limits(const GangLimits& limits, const decide::GangRoom& room,
                                                   const std::vector<std::int32_t>& own_class,
                                                   const CollectivesHandle& job, const Numbers& units,
                                                   bool machine_groups) {
    const decide::Units of = to_units(job, units);
    require(check(room, own_class));
    return without_gil<std::unique_ptr<MachineLimits>>([&] {
        WorkMeter meter(to_stop_condition({}));
        return std::make_unique<MachineLimits>(limits, room, own_class, job.view(), of, machine_groups,
                                               meter);
    });
}

py::array_t<double> of_counts(const MachineLimits& limits, std::int64_t most) {
    std::vector<double> found;
    for (std::int64_t count = 0; count <= most; ++count) found.push_back(limits.of_count(count));
    return to_row(std::move(found));
}

py::array_t<double> of_sets(const MachineLimits& limits, std::int32_t machine) {
    if (machine < 0 || machine >= limits.of_topology().gpus.size())
        throw std::invalid_argument("machine = " + std::to_string(machine) + ": there is no such machine");
    return to_row(without_gil<std::vector<double>>([&] {
        WorkMeter meter(to_stop_condition({}));
        return limits.of_sets(machine, meter);
    }));
}

decide::JobParams checked_job(const CollectivesHandle& job, std::int32_t size, bool communicates) {
    const decide::JobParams params{.collectives = job.view(), .size = size, .communicates = communicates};
    require(check(params, INT32_MAX));
    return params;
}

double least_seconds_of_one(const GangLimits& limits, const CollectivesHandle& job, std::int32_t size,
                            bool communicates) {
    const decide::JobParams params = checked_job(job, size, communicates);
    return without_gil<double>([&] {
        WorkMeter meter(to_stop_condition({}));
        return decide::least_seconds_of_one(limits, params, meter);
    });
}

double least_if_split(const GangLimits& limits, const CollectivesHandle& job, std::int32_t size,
                      bool communicates) {
    return decide::least_if_split(limits, checked_job(job, size, communicates));
}

}  // namespace

void register_gang_bounds(py::module_& module) {
    py::class_<GangLimits>(module, "GangLimits", "What limits gangs on a topology.")
        .def(py::init(&make_limits), py::keep_alive<1, 8>(), py::keep_alive<1, 9>(), py::arg("entries"),
             py::arg("most_of_a_gpu"), py::arg("has_relays"), py::arg("join_machines"), py::arg("switched"),
             py::arg("reducing"), py::arg("gpus"), py::arg("machines"), py::arg("class_of"));
    py::class_<MachineLimits>(module, "MachineLimits", "Bounds by what one machine has of a gang.")
        .def(py::init(&make_machine_limits), py::keep_alive<1, 2>(), py::arg("limits"), py::arg("room"),
             py::arg("own_class"), py::arg("job"), py::arg("units"), py::arg("machine_groups"))
        .def_property_readonly("are_groups", &MachineLimits::are_groups)
        .def_property_readonly("are_rings", &MachineLimits::are_rings)
        .def("of_counts", &of_counts, py::arg("most"), "The least seconds with 0..most units on a machine.")
        .def("of_sets", &of_sets, py::arg("machine"),
             "The least seconds with tasks on each set of a machine's GPUs; empty if only their number "
             "counts.");
    module.def("exchanges_of", &exchanges_of, py::arg("job"), py::arg("units"), py::arg("rings"));
    module.def("largest_flows", &largest_flows, py::arg("job"), py::arg("units"));
    module.def("least_seconds", &least_seconds, py::arg("limits"), py::arg("room"), py::arg("own_class"),
               py::arg("job"), py::arg("units"), py::arg("machine_groups"));
    module.def("least_seconds_of_one", &least_seconds_of_one, py::arg("limits"), py::arg("job"),
               py::arg("size"), py::arg("communicates"));
    module.def("least_if_split", &least_if_split, py::arg("limits"), py::arg("job"), py::arg("size"),
               py::arg("communicates"));
}

}  // namespace topoplace::bindings
