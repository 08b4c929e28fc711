#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <numeric>

#include "convert.hpp"
#include "graph_handle.hpp"
#include "register.hpp"
#include "topoplace/match.hpp"
#include "topoplace/partition.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::match::LinkCountScore>
    : public topoplace::bindings::HandleCaster<topoplace::match::LinkCountScore> {};

namespace topoplace::bindings {
namespace {

using match::BestParams;
using match::BestResult;
using match::EnumerateParams;
using match::EnumerateResult;
using Vertices = std::vector<std::int32_t>;

using Rows = py::array_t<std::int32_t>;
using Mapping = py::typing::Optional<Rows>;
using Enumerated = py::typing::Tuple<Rows, bool, std::uint64_t>;
using Counted = py::typing::Tuple<std::int64_t, bool, std::uint64_t>;
using Best = py::typing::Tuple<Mapping, double, double, bool, bool, std::uint64_t>;
using Remained = py::typing::Tuple<Mapping, double, double, bool, std::uint64_t>;

match::Distinct to_distinct(const std::string& name) {
    if (name == "mappings") return match::Distinct::mappings;
    if (name == "images") return match::Distinct::images;
    if (name == "vertex_sets") return match::Distinct::vertex_sets;
    throw std::invalid_argument("distinct = '" + name + "' is not one of mappings, images, vertex_sets");
}

match::Objective to_objective(const std::string& name) {
    if (name == "sum") return match::Objective::sum;
    if (name == "bottleneck") return match::Objective::bottleneck;
    if (name == "bottleneck_sum") return match::Objective::bottleneck_sum;
    throw std::invalid_argument("objective = '" + name + "' is not one of sum, bottleneck, bottleneck_sum");
}

EnumerateParams to_params(const GraphHandle& pattern, const GraphHandle& target, const std::string& distinct,
                          bool induced, double min_weight, std::int64_t limit,
                          const std::optional<Array<std::uint8_t>>& candidates,
                          std::optional<double> timeout) {
    EnumerateParams params{to_distinct(distinct), induced, min_weight, limit, {}, to_deadline(timeout)};
    if (candidates) {
        check_shape(*candidates, "candidates",
                    {pattern.graph().num_vertices(), target.graph().num_vertices()});
        params.candidates = as_span(*candidates);
    }
    return params;
}

Enumerated enumerate(const GraphHandle& pattern, const GraphHandle& target, const std::string& distinct,
                     bool induced, double min_weight, std::int64_t limit,
                     const std::optional<Array<std::uint8_t>>& candidates, std::optional<double> timeout) {
    const auto params = to_params(pattern, target, distinct, induced, min_weight, limit, candidates, timeout);
    auto result = without_gil<EnumerateResult>(
        [&] { return match::enumerate_subgraphs(pattern.pattern(), target.target(), params); });
    std::vector<py::ssize_t> shape{result.count, pattern.graph().num_vertices()};
    return py::make_tuple(to_array(std::move(result.vertices), std::move(shape)), result.complete,
                          result.nodes);
}

Counted count(const GraphHandle& pattern, const GraphHandle& target, const std::string& distinct,
              bool induced, double min_weight, std::int64_t limit,
              const std::optional<Array<std::uint8_t>>& candidates, std::optional<double> timeout) {
    const auto params = to_params(pattern, target, distinct, induced, min_weight, limit, candidates, timeout);
    const auto result = without_gil<EnumerateResult>(
        [&] { return match::count_subgraphs(pattern.pattern(), target.target(), params); });
    return py::make_tuple(result.count, result.complete, result.nodes);
}

// All vertices where none are named.
Vertices to_free(const GraphHandle& target, std::optional<Vertices>&& free) {
    const std::int32_t size = target.graph().num_vertices();
    if (free) {
        check_vertices(*free, "free", size);
        return std::move(*free);
    }
    Vertices everyone(static_cast<std::size_t>(size));
    std::iota(everyone.begin(), everyone.end(), 0);
    return everyone;
}

BestParams to_params(const GraphHandle& target, const Vertices& required, double min_weight,
                     std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    check_vertices(required, "required", target.graph().num_vertices());
    return {required, {}, min_weight, to_deadline(timeout, max_nodes)};
}

py::object to_mapping(bool found, Vertices&& vertices) {
    if (!found) return py::none();
    const auto size = static_cast<py::ssize_t>(vertices.size());
    return to_array(std::move(vertices), {size});
}

template <class Goal>
Best best(const GraphHandle& pattern, const GraphHandle& target, const Goal& goal,
          std::optional<Vertices> free, const Vertices& required, double min_weight,
          std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    const BestParams params = to_params(target, required, min_weight, timeout, max_nodes);
    const Vertices usable = to_free(target, std::move(free));
    auto result = without_gil<BestResult>(
        [&] { return match::best_subgraph(pattern.pattern(), target.target(), usable, goal, params); });
    return py::make_tuple(to_mapping(result.found, std::move(result.vertices)), result.score, result.bound,
                          result.optimal, result.complete, result.nodes);
}

Best best_named(const GraphHandle& pattern, const GraphHandle& target, const std::string& objective,
                std::optional<Vertices> free, const Vertices& required, double min_weight,
                std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    return best(pattern, target, to_objective(objective), std::move(free), required, min_weight, timeout,
                max_nodes);
}

Remained remainder(const GraphHandle& pattern, const GraphHandle& target, std::optional<Vertices> free,
                   const Vertices& kept, const Vertices& required, std::optional<double> timeout,
                   std::optional<std::uint64_t> max_nodes) {
    BestParams params = to_params(target, required, 0, timeout, max_nodes);
    const Vertices usable = to_free(target, std::move(free));
    check_vertices(kept, "kept", target.graph().num_vertices());
    params.kept = kept;
    auto result = without_gil<match::RemainderResult>(
        [&] { return match::best_remainder(pattern.pattern(), target.target(), usable, params); });
    return py::make_tuple(to_mapping(result.found, std::move(result.vertices)), result.remainder,
                          result.score, result.optimal, result.nodes);
}

std::unique_ptr<match::LinkCountScore> link_count_score(const GraphHandle& target,
                                                        const Array<std::uint8_t>& classes,
                                                        std::int32_t num_classes, std::int32_t num_edges,
                                                        const Array<double>& scores) {
    const py::ssize_t n = target.graph().num_vertices();
    check_shape(classes, "link_class", {n, n});
    check_shape(scores, "scores", {-1});
    const py::gil_scoped_release release;
    return std::make_unique<match::LinkCountScore>(target.target(), as_span(classes), num_classes, num_edges,
                                                   as_span(scores));
}

py::array_t<std::int32_t> count_vectors(std::int32_t num_edges, std::int32_t num_classes) {
    auto rows = match::LinkCountScore::count_vectors(num_edges, num_classes);
    const auto length = static_cast<py::ssize_t>(rows.size()) / num_classes;
    return to_array(std::move(rows), {length, num_classes});
}

using Sides = py::array_t<std::int8_t>;
using Halves = py::typing::Tuple<Sides, double, bool, bool, double, std::uint64_t, std::uint64_t,
                                 std::uint64_t, std::uint64_t>;
using Halved = py::typing::Tuple<std::string, Halves>;

const char* to_name(partition::BipartitionStatus status) {
    switch (status) {
        case partition::BipartitionStatus::optimal:
            return "optimal";
        case partition::BipartitionStatus::feasible:
            return "feasible";
        case partition::BipartitionStatus::infeasible:
            return "infeasible";
        case partition::BipartitionStatus::not_found:
            return "not_found";
    }
    return "not_found";
}

partition::BipartitionParams to_params(const GraphHandle& graph, double fraction, double imbalance,
                                       const std::optional<Array<std::int64_t>>& vertex_weights,
                                       const std::optional<Array<std::int8_t>>& fixed) {
    const py::ssize_t n = graph.graph().num_vertices();
    partition::BipartitionParams params;
    params.fraction = fraction;
    params.imbalance = imbalance;
    if (vertex_weights) {
        check_shape(*vertex_weights, "vertex_weights", {n});
        params.vertex_weights = as_span(*vertex_weights);
    }
    if (fixed) {
        check_shape(*fixed, "fixed", {n});
        params.fixed = as_span(*fixed);
    }
    return params;
}

Halved bipartition(const GraphHandle& graph, double fraction, double imbalance,
                   const std::optional<Array<std::int64_t>>& vertex_weights,
                   const std::optional<Array<std::int8_t>>& fixed, std::int32_t starts, std::int32_t cycles,
                   std::uint64_t seed, std::int32_t exact_up_to, std::optional<double> timeout) {
    auto params = to_params(graph, fraction, imbalance, vertex_weights, fixed);
    params.starts = starts;
    params.cycles = cycles;
    params.seed = seed;
    params.exact_up_to = exact_up_to;
    params.deadline = to_deadline(timeout);
    auto result = without_gil<partition::BipartitionResult>(
        [&] { return partition::bipartition(graph.graph(), params); });
    const auto size = static_cast<py::ssize_t>(result.side.size());
    const bool optimal = result.status == partition::BipartitionStatus::optimal;
    return py::make_tuple(
        to_name(result.status),
        py::make_tuple(to_array(std::move(result.side), {size}), result.cut, optimal, result.complete,
                       result.start_cut, result.passes, result.moves, result.rollbacks, result.nodes));
}

bool verify_bipartition(const GraphHandle& graph, const Array<std::int8_t>& side, double cut, double fraction,
                        double imbalance, const std::optional<Array<std::int64_t>>& vertex_weights,
                        const std::optional<Array<std::int8_t>>& fixed) {
    check_shape(side, "side", {-1});
    return partition::verify_bipartition(
        graph.graph(), to_params(graph, fraction, imbalance, vertex_weights, fixed), as_span(side), cut);
}

}  // namespace

void register_kernels(py::module_& module) {
    py::class_<GraphHandle> graph(module, "Graph", "An undirected, simple, weighted graph.");
    py::class_<match::LinkCountScore> score(module, "LinkCountScore", "Scores by link counts, tabulated.");
    graph
        .def(py::init<std::int32_t, const Array<std::int32_t>&, const Array<double>&>(),
             py::call_guard<py::gil_scoped_release>(), py::arg("num_vertices"), py::arg("edges").noconvert(),
             py::arg("weights").noconvert())
        .def_property_readonly(
            "num_vertices", [](const GraphHandle& g) { return g.graph().num_vertices(); },
            "How many vertices the graph has.")
        .def_property_readonly(
            "num_edges", [](const GraphHandle& g) { return g.graph().num_edges(); },
            "How many edges the graph has.")
        .def_property_readonly(
            "num_automorphisms",
            [](const GraphHandle& g) {
                const py::gil_scoped_release release;
                return g.pattern().num_automorphisms();
            },
            "How many permutations of the vertices keep every edge, whatever its weight; exact up to 2**53.");
    score.def(py::init(&link_count_score), py::arg("target"), py::arg("link_class").noconvert(),
              py::arg("num_classes"), py::arg("num_edges"), py::arg("scores").noconvert());
    module.def("count_vectors", &count_vectors, py::arg("num_edges"), py::arg("num_classes"));
    module.def("enumerate_subgraphs", &enumerate, py::arg("pattern"), py::arg("target"), py::arg("distinct"),
               py::arg("induced"), py::arg("min_weight"), py::arg("limit"), py::arg("candidates").noconvert(),
               py::arg("timeout"));
    module.def("count_subgraphs", &count, py::arg("pattern"), py::arg("target"), py::arg("distinct"),
               py::arg("induced"), py::arg("min_weight"), py::arg("limit"), py::arg("candidates").noconvert(),
               py::arg("timeout"));
    module.def("best_subgraph", &best_named, py::arg("pattern"), py::arg("target"), py::arg("objective"),
               py::arg("free"), py::arg("required"), py::arg("min_weight"), py::arg("timeout"),
               py::arg("max_nodes"));
    module.def("best_subgraph", &best<match::LinkCountScore>, py::arg("pattern"), py::arg("target"),
               py::arg("objective"), py::arg("free"), py::arg("required"), py::arg("min_weight"),
               py::arg("timeout"), py::arg("max_nodes"));
    module.def("best_remainder", &remainder, py::arg("pattern"), py::arg("target"), py::arg("free"),
               py::arg("kept"), py::arg("required"), py::arg("timeout"), py::arg("max_nodes"));
    module.def(
        "verify_mapping",
        [](const GraphHandle& pattern, const GraphHandle& target, const Vertices& vertices, bool induced,
           double min_weight) {
            return match::verify_mapping(pattern.graph(), target.graph(), vertices, induced, min_weight);
        },
        py::arg("pattern"), py::arg("target"), py::arg("vertices"), py::arg("induced"),
        py::arg("min_weight"));
    module.def("bipartition", &bipartition, py::arg("graph"), py::arg("fraction"), py::arg("imbalance"),
               py::arg("vertex_weights").noconvert(), py::arg("fixed").noconvert(), py::arg("starts"),
               py::arg("cycles"), py::arg("seed"), py::arg("exact_up_to"), py::arg("timeout"));
    module.def("verify_bipartition", &verify_bipartition, py::call_guard<py::gil_scoped_release>(),
               py::arg("graph"), py::arg("side").noconvert(), py::arg("cut"), py::arg("fraction"),
               py::arg("imbalance"), py::arg("vertex_weights").noconvert(), py::arg("fixed").noconvert());
}

}  // namespace topoplace::bindings
