// Binds the division of jobs with groups among machines.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/task_division.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using decide::DomainTree;
using decide::GpuDistances;
using decide::TaskForest;
using Int32s = Array<std::int32_t>;
using Int64s = Array<std::int64_t>;
using Doubles = Array<double>;
// Domains of machines, rails and ports of the GPUs of templates, which ports are joined, and the distance.
using DistanceRow = std::tuple<Int32s, Int32s, Int32s, Array<std::uint8_t>, double>;
using Row = py::array_t<std::int32_t>;
// The parent and the depth of each group, the group of each task, and (s, 3) shares.
using PackedRow = std::tuple<Row, Row, Row, Row>;

std::unique_ptr<GpuDistances> make_distances(const Int32s& template_of, const Int32s& sizes,
                                             const std::vector<Doubles>& inside,
                                             const std::vector<DistanceRow>& rows, double beyond) {
    decide::GpuDistancesParams params{
        .template_of = as_span(template_of), .sizes = as_span(sizes), .beyond = beyond};
    for (const Doubles& one : inside) params.inside.push_back(as_span(one));
    for (const auto& [domain, rail, port, joined, distance] : rows)
        params.levels.push_back({as_span(domain), as_span(rail), as_span(port), as_span(joined), distance});
    require(GpuDistances::check(params));
    return std::make_unique<GpuDistances>(params);
}

double between(const GpuDistances& distances, std::int32_t u, std::int32_t v) {
    for (const std::int32_t gpu : {u, v}) {
        if (gpu < 0 || gpu >= distances.num_gpus()) throw py::index_error("GPU " + std::to_string(gpu));
    }
    return distances.between(u, v);
}

std::unique_ptr<DomainTree> make_tree(const std::vector<std::pair<Int64s, Int64s>>& levels,
                                      const Int32s& machines, const Int32s& sizes, const Int32s& socket_ends,
                                      const Int32s& socket_sizes) {
    decide::DomainTreeParams params{.machines = as_span(machines),
                                    .sizes = as_span(sizes),
                                    .socket_ends = as_span(socket_ends),
                                    .socket_sizes = as_span(socket_sizes)};
    for (const auto& [codes, domains] : levels) params.levels.push_back({as_span(codes), as_span(domains)});
    require(DomainTree::check(params));
    return std::make_unique<DomainTree>(params);
}

Row row_of(std::span<const std::int32_t> values) {
    return to_row(std::vector<std::int32_t>(values.begin(), values.end()));
}

PackedRow row_of(const decide::TaskPacking& packing) {
    std::vector<std::int32_t> shares;
    for (const groups::Share& share : packing.shares)
        shares.insert(shares.end(), {share.group, share.leaf, share.tasks});
    return {row_of(packing.forest.parent), row_of(packing.forest.depth), row_of(packing.forest.inner),
            to_array(std::move(shares), {static_cast<py::ssize_t>(packing.shares.size()), 3})};
}

std::tuple<Row, Row, Row> task_forest(const TogetherRows& groups, const Int32s& tasks,
                                      std::int32_t num_tasks) {
    const std::vector<decide::Together> together = to_together(groups);
    require(TaskForest::check(together, as_span(tasks), num_tasks));
    const TaskForest forest(together, {}, as_span(tasks), num_tasks);
    return {row_of(forest.parent), row_of(forest.depth), row_of(forest.inner)};
}

std::size_t known_level(const DomainTree& tree, std::size_t level) {
    if (level >= tree.num_depths() - 1) throw py::index_error("level = " + std::to_string(level));
    return level;
}

std::size_t first_of(const DomainTree& tree, std::size_t depth) {
    if (depth > tree.num_depths()) throw py::index_error("depth = " + std::to_string(depth));
    return tree.first_of(depth);
}

// Whether the search came to an end, and the packing if there is one.
std::pair<bool, std::optional<PackedRow>> pack_tasks(const DomainTree& tree, std::int32_t num_tasks,
                                                     const Int32s& tasks, const TogetherRows& together,
                                                     const TogetherRows& apart) {
    const decide::TaskPackingParams params{.tree = &tree,
                                           .num_tasks = num_tasks,
                                           .tasks = as_span(tasks),
                                           .together = to_together(together),
                                           .apart = to_together(apart),
                                           .stop = to_stop_condition({})};
    require(check(params));
    std::optional<decide::TaskPacking> made;
    {
        const py::gil_scoped_release release;
        made = decide::pack_tasks(params);
    }
    raise_pending();
    return {made->complete, made->found ? std::optional(row_of(*made)) : std::nullopt};
}

decide::TaskDivisionParams to_division(const DomainTree& tree, std::int32_t num_tasks,
                                       const TogetherRows& required, const TogetherRows& apart) {
    return {.tree = &tree,
            .num_tasks = num_tasks,
            .required = to_together(required),
            .apart = to_together(apart),
            .stop = to_stop_condition({})};
}

std::optional<Row> divide_tasks(const DomainTree& tree, std::int32_t num_tasks, const TogetherRows& required,
                                const TogetherRows& apart, const TogetherRows& preferred,
                                std::int32_t balanced, const Doubles& edges, const py::object& distances,
                                const Int32s& gpus, std::optional<double> better_for) {
    decide::TaskDivisionParams params = to_division(tree, num_tasks, required, apart);
    params.preferred = to_together(preferred);
    params.balanced = balanced;
    params.edges = as_span(edges);
    params.distances = distances.is_none() ? nullptr : &distances.cast<const GpuDistances&>();
    params.gpus = as_span(gpus);
    if (better_for) params.better_until = StopCondition::in(*better_for).when;
    require(check(params));
    auto made = without_gil<decide::TaskDivision>([&] { return decide::divide_tasks(params); });
    if (!made.found) return std::nullopt;
    return to_row(std::move(made.leaf_of));
}

bool can_be_divided(const DomainTree& tree, std::int32_t num_tasks, const TogetherRows& required,
                    const TogetherRows& apart) {
    const decide::TaskDivisionParams params = to_division(tree, num_tasks, required, apart);
    require(check(params));
    return without_gil<bool>([&] { return decide::can_be_divided(params); });
}

}  // namespace

void register_task_groups(py::module_& module) {
    py::class_<GpuDistances>(module, "GpuDistances", "The distance between any two GPUs of a cluster.")
        .def(py::init(&make_distances), py::arg("template_of"), py::arg("sizes"), py::arg("inside"),
             py::arg("levels"), py::arg("beyond"),
             "The template of each machine, the GPUs of each template, (n, n) distances of each. Of each "
             "level, the innermost first: (m,) domains or -1; of GPUs of templates: rails or none, and "
             "ports; (p, p) 1 where ports are joined; the distance.")
        .def("between", &between, py::arg("u"), py::arg("v"));
    py::class_<DomainTree>(module, "DomainTree", "The domains of offered machines as a tree.")
        .def(py::init(&make_tree), py::arg("levels"), py::arg("machines"), py::arg("sizes"),
             py::arg("socket_ends"), py::arg("socket_sizes"),
             "levels: the outermost first, machines last; of each, (m,) domains in the tree, and without "
             "cuts. sizes: the most tasks of each machine. Sockets: none of both where machines are leaves.")
        .def_property_readonly("parent", [](const DomainTree& tree) { return row_of(tree.parent()); })
        .def_property_readonly("room", [](const DomainTree& tree) { return row_of(tree.room()); })
        .def_property_readonly(
            "order", [](const DomainTree& tree) { return row_of(tree.order()); },
            "The offers in the order of their machines in the tree.")
        .def_property_readonly(
            "machine_of", [](const DomainTree& tree) { return row_of(tree.machine_of()); },
            "The place in this order of each leaf's machine.")
        .def("first_of", &first_of, py::arg("depth"))
        .def_property_readonly("first_leaf", &DomainTree::first_leaf)
        .def(
            "domains_of",
            [](const DomainTree& tree, std::size_t level) {
                return to_row(tree.domains_of(known_level(tree, level)));
            },
            py::arg("level"), "The domain of each leaf, without cuts.")
        .def(
            "part_of",
            [](const DomainTree& tree, std::size_t level) {
                return to_row(tree.part_of(known_level(tree, level)));
            },
            py::arg("level"), "The domain of each leaf in the tree.");
    module.def("task_forest", &task_forest, py::arg("groups"), py::arg("tasks"), py::arg("num_tasks"));
    module.def("pack_tasks", &pack_tasks, py::arg("tree"), py::arg("num_tasks"), py::arg("tasks"),
               py::arg("together"), py::arg("apart"));
    module.def("divide_tasks", &divide_tasks, py::arg("tree"), py::arg("num_tasks"), py::arg("required"),
               py::arg("apart"), py::arg("preferred"), py::arg("balanced"), py::arg("edges"),
               py::arg("distances"), py::arg("gpus"), py::arg("better_for"),
               "The leaf of each task, from 0; None if there is no division, or none was found in time.");
    module.def("can_be_divided", &can_be_divided, py::arg("tree"), py::arg("num_tasks"), py::arg("required"),
               py::arg("apart"));
}

}  // namespace topoplace::bindings
