// Binds the mapping of tasks to vertices.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "convert.hpp"
#include "graph_handle.hpp"
#include "register.hpp"
#include "topoplace/distribution.hpp"
#include "topoplace/mapping.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::mapping::Target>
    : public topoplace::bindings::HandleCaster<topoplace::mapping::Target> {};

namespace topoplace::bindings {
namespace {

using mapping::DistributeParams;
using mapping::DistributeResult;
using mapping::MapParams;
using mapping::MapResult;
using mapping::Target;
using Vertices = std::vector<std::int32_t>;

// A tuple, as reading many attributes would take longer than a small mapping. `result_fields` names its
// elements.
using MapAnswer = py::typing::Tuple<py::array_t<std::int32_t>, double, double, bool, bool, std::int32_t,
                                    std::uint64_t, std::uint64_t>;
using MaybeAnswer = py::typing::Optional<MapAnswer>;
using Distribution = py::typing::Tuple<py::array_t<std::int32_t>, double, double, bool, bool, std::uint64_t>;
using MaybeDistribution = py::typing::Optional<Distribution>;

std::unique_ptr<Target> target_distance(const Array<double>& distance) {
    check_shape(distance, "target_distance", {-1, distance.shape(0)});
    const auto values = as_span(distance);
    const auto size = static_cast<std::int32_t>(distance.shape(0));
    const py::gil_scoped_release release;
    require(Target::check(size, values));
    return std::make_unique<Target>(size, std::vector<double>(values.begin(), values.end()));
}

mapping::Method to_method(const std::string& name) {
    if (name == "drb") return mapping::Method::drb;
    if (name == "exact") return mapping::Method::exact;
    throw std::invalid_argument("method = '" + name + "' is not one of drb, exact");
}

MapParams to_params(const Target& target, const std::optional<Array<double>>& target_cost,
                    const std::optional<Vertices>& free) {
    MapParams params;
    if (target_cost) {
        check_shape(*target_cost, "target_cost", {target.num_vertices()});
        params.target_cost = as_span(*target_cost);
    }
    if (free) params.free = *free;
    return params;
}

MaybeAnswer map_graph(const GraphHandle& source, const Target& target, const std::string& method,
                      const std::optional<Array<double>>& target_cost, const std::optional<Vertices>& free,
                      const std::vector<Vertices>& regions, const Vertices& start, std::int32_t kicks,
                      std::uint64_t proof_nodes, std::uint64_t seed, std::optional<double> timeout,
                      std::optional<std::uint64_t> max_nodes) {
    MapParams params = to_params(target, target_cost, free);
    params.method = to_method(method);
    params.regions = regions;
    params.start = start;
    params.kicks = kicks;
    params.proof_nodes = proof_nodes;
    params.seed = seed;
    params.stop = to_stop_condition(timeout, max_nodes);
    auto result = without_gil<MapResult>([&] {
        require(mapping::check(source.source(), target, params));
        return mapping::map_graph(source.source(), target, params);
    });
    if (!result.found) return py::none();
    return py::make_tuple(to_row(std::move(result.target_of)), result.cost, result.bound, result.optimal,
                          result.complete, result.descents, result.exchanges, result.nodes);
}

Fault verify_task_mapping(const GraphHandle& source, const Target& target, const Vertices& target_of,
                          double cost, const std::optional<Array<double>>& target_cost,
                          const std::optional<Vertices>& free) {
    return mapping::verify_mapping(source.graph(), target.num_vertices(), target.distance(),
                                   to_params(target, target_cost, free), target_of, cost);
}

DistributeParams to_params(const Array<std::int32_t>& room, const Array<double>& distance) {
    check_shape(room, "room", {-1});
    check_shape(distance, "distance", {room.shape(0), room.shape(0)});
    return {.room = as_span(room), .distance = as_span(distance)};
}

MaybeDistribution distribute(const GraphHandle& source, const Array<std::int32_t>& room,
                             const Array<double>& distance, std::int32_t starts, std::uint64_t seed,
                             std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    DistributeParams params = to_params(room, distance);
    params.starts = starts;
    params.seed = seed;
    params.stop = to_stop_condition(timeout, max_nodes);
    auto result = without_gil<DistributeResult>([&] {
        require(mapping::check(source.source(), params));
        return mapping::distribute(source.source(), params);
    });
    if (!result.found) return py::none();
    return py::make_tuple(to_row(std::move(result.block_of)), result.cost, result.bound, result.optimal,
                          result.complete, result.exchanges);
}

Fault verify_distribution(const GraphHandle& source, const Array<std::int32_t>& room,
                          const Array<double>& distance, const Vertices& block_of, double cost) {
    return mapping::verify_distribution(source.graph(), to_params(room, distance), block_of, cost);
}

}  // namespace

void register_mapping(py::module_& module) {
    py::class_<Target>(module, "TargetDistance", "Distances between the vertices of a target.")
        .def(py::init(&target_distance), py::arg("distance").noconvert())
        .def_property_readonly("num_vertices", &Target::num_vertices, "The number of vertices.");
    module.def("map_graph", &map_graph, py::arg("source"), py::arg("target"), py::arg("method"),
               py::arg("target_cost").noconvert(), py::arg("free"), py::arg("regions"), py::arg("start"),
               py::arg("kicks"), py::arg("proof_nodes"), py::arg("seed"), py::arg("timeout"),
               py::arg("max_nodes"));
    module.def("verify_task_mapping", &verify_task_mapping, py::call_guard<py::gil_scoped_release>(),
               py::arg("source"), py::arg("target"), py::arg("target_of"), py::arg("cost"),
               py::arg("target_cost").noconvert(), py::arg("free"),
               "None where the mapping is right, else the reason why it is not.");
    module.def("distribute", &distribute, py::arg("source"), py::arg("room").noconvert(),
               py::arg("distance").noconvert(), py::arg("starts"), py::arg("seed"), py::arg("timeout"),
               py::arg("max_nodes"));
    module.def("verify_distribution", &verify_distribution, py::arg("source"), py::arg("room").noconvert(),
               py::arg("distance").noconvert(), py::arg("block_of"), py::arg("cost"),
               "None where the distribution is right, else the reason why it is not.");
}

}  // namespace topoplace::bindings
