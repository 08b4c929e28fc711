// Binds the mapping of gangs to the vertices of a collective network.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <tuple>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/gang_mapping.hpp"
#include "tree_convert.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using gang_mapping::GangParams;
using gang_mapping::GangResult;
// (items, t) tasks of each item, places of each leaf and those before it, places.
using Gang = std::tuple<Array<std::int32_t>, Array<std::int64_t>, Array<std::int32_t>>;
// Whether there is a mapping, the vertex of each task, seconds, port-seconds, whether it is complete, work.
using GangMapped = std::tuple<bool, py::array_t<std::int32_t>, double, double, bool, std::uint64_t>;

GangParams to_gang(const traffic::CollectiveNetwork& network, const CollectivesHandle& job, const Tree& tree,
                   const Items& items, const Gang& gang) {
    const auto& [tasks, leaf_ends, places] = gang;
    GangParams params;
    params.network = &network;
    params.job = job.view();
    params.items = to_params(tree, items);
    params.tasks = as_span(tasks);
    params.leaf_ends = as_span(leaf_ends);
    params.places = as_span(places);
    return params;
}

GangMapped map_gang(const traffic::CollectiveNetwork& network, const CollectivesHandle& job, const Tree& tree,
                    const Items& items, const Gang& gang, const py::object& others, double least_seconds,
                    std::uint64_t seed, std::uint64_t work, std::uint64_t moves,
                    std::optional<double> timeout) {
    GangParams params = to_gang(network, job, tree, items, gang);
    params.others = others_of(others);
    params.least_seconds = least_seconds;
    params.items.seed = seed;
    params.work = work;
    params.items.moves = moves;
    params.items.stop = to_stop_condition(timeout);
    auto found = without_gil<GangResult>([&] {
        require(gang_mapping::check(params));
        return gang_mapping::map_gang(params);
    });
    return {found.found,    to_row(std::move(found.vertex_of)),
            found.seconds,  found.port_seconds,
            found.complete, found.work};
}

Fault verify_gang(const traffic::CollectiveNetwork& network, const CollectivesHandle& job, const Tree& tree,
                  const Items& items, const Gang& gang, const py::object& others,
                  const Array<std::int32_t>& vertex_of, double seconds, double port_seconds) {
    GangParams params = to_gang(network, job, tree, items, gang);
    params.others = others_of(others);
    return without_gil<Fault>([&] {
        require(gang_mapping::check(params));
        return gang_mapping::verify_gang(params, as_span(vertex_of), seconds, port_seconds);
    });
}

}  // namespace

void register_gang_mapping(py::module_& module) {
    module.def("map_gang", &map_gang, py::arg("network"), py::arg("job"), py::arg("tree"), py::arg("items"),
               py::arg("gang"), py::arg("others"), py::arg("least_seconds"), py::arg("seed"), py::arg("work"),
               py::arg("moves"), py::arg("timeout"));
    module.def("verify_gang", &verify_gang, py::arg("network"), py::arg("job"), py::arg("tree"),
               py::arg("items"), py::arg("gang"), py::arg("others"), py::arg("vertex_of").noconvert(),
               py::arg("seconds"), py::arg("port_seconds"),
               "None where the mapping is right, else the reason why it is not.");
}

}  // namespace topoplace::bindings
