// Binds what machines offer to a gang: the tree of their domains, and the room of these.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/free_offers.hpp"
#include "topoplace/gang_tree.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using decide::GangMachines;
using decide::GangRoom;
using Codes = std::vector<Array<std::int64_t>>;
// Order, parent, first leaf, ends of levels, ends of places, places.
using TreeOfGang =
    std::tuple<py::array_t<std::int32_t>, py::array_t<std::int32_t>, py::array_t<std::int32_t>,
               py::array_t<std::int64_t>, py::array_t<std::int64_t>, py::array_t<std::int32_t>>;

std::unique_ptr<GangMachines> make_machines(const Array<std::int64_t>& gpu_ends,
                                            const Array<std::int32_t>& gpus,
                                            const Array<std::int32_t>& domain,
                                            const Array<std::int32_t>& adapter, const Array<double>& way_out,
                                            const Array<double>& gb_per_s) {
    const decide::GangMachinesParams params{as_span(gpu_ends), as_span(gpus),    as_span(domain),
                                            as_span(adapter),  as_span(way_out), as_span(gb_per_s)};
    require(check(params));
    return std::make_unique<GangMachines>(params);
}

// Calls `make` without the GIL, with offers and levels that are in order.
template <class Result, class Make>
Result from_offers(const GangMachines& machines, const Offered& offered, const Codes& codes,
                   const Make& make) {
    const decide::MachineOffers offers = to_offers(offered);
    decide::LevelCodes levels;
    for (const auto& level : codes) levels.push_back(as_span(level));
    const py::gil_scoped_release release;
    require(check(offers, machines));
    require(check(levels, machines));
    return make(offers, levels);
}

TreeOfGang gang_tree(const GangMachines& machines, const Offered& offered, const Codes& codes) {
    auto found = from_offers<decide::GangTree>(
        machines, offered, codes, [&](const decide::MachineOffers& offers, const decide::LevelCodes& levels) {
            return decide::gang_tree(machines, offers, levels);
        });
    return {to_row(std::move(found.order)),      to_row(std::move(found.parent)),
            to_row(std::move(found.first_leaf)), to_row(std::move(found.level_ends)),
            to_row(std::move(found.place_ends)), to_row(std::move(found.places))};
}

// suitable: of each template, GPUs as bits, the lowest byte first.
std::tuple<py::array_t<std::int32_t>, py::array_t<std::int32_t>, py::array_t<std::int32_t>,
           py::array_t<std::uint8_t>>
free_offers(MachineConditions& conditions, const std::vector<py::bytes>& suitable, std::int32_t most) {
    std::vector<MachineConditions::Words> of_template;
    for (const py::bytes& one : suitable) of_template.push_back(words_of(one));
    require(decide::check_suitable(conditions, of_template, most));
    auto found = decide::free_offers(conditions, of_template, most);
    const auto bytes = static_cast<py::ssize_t>(found.bytes);
    const auto kinds = static_cast<py::ssize_t>(found.usable.size()) / bytes;
    return {to_row(std::move(found.machines)), to_row(std::move(found.kind_of)),
            to_row(std::move(found.sizes)), to_array(std::move(found.usable), {kinds, bytes})};
}

// free: (m, 2 or more) thousandths of CPUs and MB.
py::array_t<std::int64_t> tasks_hosted_by(const DemandRow& job, const Array<std::int64_t>& free,
                                          bool at_best) {
    if (free.ndim() != 2 || free.shape(1) < 2) throw std::invalid_argument("free: not (machines, 2 or more)");
    const HostDemand demand = demand_of(job);
    std::vector<std::int64_t> found;
    for (py::ssize_t machine = 0; machine < free.shape(0); ++machine)
        found.push_back(tasks_hosted(demand, {free.at(machine, 0), free.at(machine, 1)}, at_best));
    return to_row(std::move(found));
}

GangRoom gang_room(const GangMachines& machines, const Offered& offered, const Codes& codes,
                   std::int32_t most) {
    return from_offers<GangRoom>(machines, offered, codes,
                                 [&](const decide::MachineOffers& offers, const decide::LevelCodes& levels) {
                                     return decide::gang_room(machines, offers, levels, most);
                                 });
}

std::int64_t positive(std::int64_t size) {
    if (size < 1) throw std::invalid_argument("size = " + std::to_string(size) + ": below 1");
    return size;
}

std::vector<std::int64_t> fit(const GangRoom& room, std::int64_t size) {
    std::vector<std::int64_t> found;
    for (const auto& tasks : room.tasks) found.push_back(decide::groups_that_fit(tasks, positive(size)));
    return found;
}

std::vector<std::int64_t> most_tasks(const GangRoom& room) {
    std::vector<std::int64_t> found;
    for (const auto& tasks : room.tasks)
        found.push_back(tasks.empty() ? 0 : *std::ranges::max_element(tasks));
    return found;
}

}  // namespace

void register_gang_room(py::module_& module) {
    py::class_<GangMachines>(module, "GangMachines", "The machines of a topology as a gang sees them.")
        .def(py::init(&make_machines), py::arg("gpu_ends"), py::arg("gpus"), py::arg("domain"),
             py::arg("adapter"), py::arg("way_out"), py::arg("gb_per_s"),
             "Of each machine the end of its GPUs, these, and of each GPU the domain of its rings, its "
             "adapter "
             "and GB/s into the network; then GB/s of each port.");
    module.def(
        "gang_tree", &gang_tree, py::arg("machines"), py::arg("offers"), py::arg("codes"),
        "The offered machines as the leaves of a tree of domains; codes: of each level around machines, "
        "the outermost first.");
    module.def("tasks_hosted", &tasks_hosted_by, py::arg("job"), py::arg("free"), py::arg("at_best"),
               "(machines,) the tasks for which free CPUs and memory suffice.");
    module.def(
        "free_offers", &free_offers, py::arg("conditions"), py::arg("suitable"), py::arg("most"),
        "What machines offer to a job of whole GPUs. suitable: of each template, GPUs as bits, the lowest "
        "byte first. most: tasks on one machine.");
    py::class_<GangRoom>(module, "GangRoom", "How many tasks domains take, and their adapters for rings.")
        .def(py::init(&gang_room), py::arg("machines"), py::arg("offers"), py::arg("codes"), py::arg("most"),
             "most: tasks on one machine.")
        .def_property_readonly("most_tasks", &most_tasks,
                               "The most tasks in a domain of each depth: of the whole, of each level, of "
                               "machines.")
        .def("fit", &fit, py::arg("size"), "Groups of so many tasks that fit into domains of each depth.")
        .def_property_readonly(
            "ring_tasks", [](const GangRoom& room) { return to_row(std::vector(room.ring_tasks)); },
            "(d,) the most tasks in each domain of rings.")
        .def(
            "fit_rings",
            [](const GangRoom& room, std::int64_t size) {
                return decide::groups_that_fit(room.ring_tasks, positive(size));
            },
            py::arg("size"), "Groups of so many tasks that fit into domains of rings.")
        .def_property_readonly("has_adapters", [](const GangRoom& room) { return !room.adapters.empty(); })
        .def(
            "channels",
            [](const GangRoom& room, std::int64_t size, double way_out) {
                return decide::most_of_channels(room, positive(size), way_out);
            },
            py::arg("size"), py::arg("way_out") = 0.0,
            "The most GB/s of a ring over several domains; way_out: that of all adapters.")
        .def_property_readonly("most_of_adapters", &decide::most_of_adapters,
                               "The most GB/s of all adapters of a domain together.");
}

}  // namespace topoplace::bindings
