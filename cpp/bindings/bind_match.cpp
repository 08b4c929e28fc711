// Binds subgraph matching: enumeration, counting, the best embedding and the best remainder.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <numeric>

#include "graph_handle.hpp"
#include "register.hpp"
#include "topoplace/match.hpp"

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
using MaybeRow = py::typing::Optional<Rows>;

// Results cross as tuples: reading one attribute of a bound class takes 2,200 instructions, and a search may
// take no more. `result_fields` names their elements.
using EnumerateAnswer = py::typing::Tuple<Rows, bool, std::uint64_t>;
using CountAnswer = py::typing::Tuple<std::int64_t, bool, std::uint64_t>;
using BestAnswer = py::typing::Tuple<MaybeRow, double, double, bool, bool, std::uint64_t>;
using RemainderAnswer = py::typing::Tuple<MaybeRow, double, double, bool, std::uint64_t>;

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
    EnumerateParams params{.distinct = to_distinct(distinct),
                           .induced = induced,
                           .min_weight = min_weight,
                           .limit = limit,
                           .stop = to_stop_condition(timeout)};
    if (candidates) {
        check_shape(*candidates, "candidates",
                    {pattern.graph().num_vertices(), target.graph().num_vertices()});
        params.candidates = as_span(*candidates);
    }
    return params;
}

// What the kernel says of both graphs, and `otherwise` where it is stopped before they are prepared.
template <class Result, class Search, class Otherwise>
Result searched(const GraphHandle& pattern, const GraphHandle& target, const StopCondition& stop,
                Search&& search, Otherwise&& otherwise) {
    return without_gil<Result>([&]() -> Result {
        const match::Pattern* prepared = pattern.pattern(stop);
        const match::Target* searchable = prepared == nullptr ? nullptr : target.target(stop);
        return searchable == nullptr ? otherwise() : search(*prepared, *searchable);
    });
}

EnumerateResult enumerated(const GraphHandle& pattern, const GraphHandle& target,
                           const EnumerateParams& params,
                           EnumerateResult (*search)(const match::Pattern&, const match::Target&,
                                                     const EnumerateParams&)) {
    return searched<EnumerateResult>(
        pattern, target, params.stop,
        [&](const match::Pattern& p, const match::Target& t) { return search(p, t, params); },
        [] { return EnumerateResult{.vertices = {}, .complete = false}; });
}

EnumerateAnswer enumerate(const GraphHandle& pattern, const GraphHandle& target, const std::string& distinct,
                          bool induced, double min_weight, std::int64_t limit,
                          const std::optional<Array<std::uint8_t>>& candidates,
                          std::optional<double> timeout) {
    const auto params = to_params(pattern, target, distinct, induced, min_weight, limit, candidates, timeout);
    auto result = enumerated(pattern, target, params, match::enumerate_subgraphs);
    std::vector<py::ssize_t> shape{result.count, pattern.graph().num_vertices()};
    return py::make_tuple(to_array(std::move(result.vertices), std::move(shape)), result.complete,
                          result.nodes);
}

CountAnswer count(const GraphHandle& pattern, const GraphHandle& target, const std::string& distinct,
                  bool induced, double min_weight, std::int64_t limit,
                  const std::optional<Array<std::uint8_t>>& candidates, std::optional<double> timeout) {
    const auto params = to_params(pattern, target, distinct, induced, min_weight, limit, candidates, timeout);
    const auto result = enumerated(pattern, target, params, match::count_subgraphs);
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

MaybeRow to_mapping(bool found, Vertices&& vertices) {
    if (!found) return py::none();
    return to_row(std::move(vertices));
}

template <class Goal>
BestAnswer best(const GraphHandle& pattern, const GraphHandle& target, const Goal& goal,
                std::optional<Vertices> free, const Vertices& required, double min_weight,
                std::optional<double> timeout, std::optional<std::uint64_t> max_nodes, double tolerance) {
    check_vertices(required, "required", target.graph().num_vertices());
    const BestParams params{.required = required,
                            .min_weight = min_weight,
                            .stop = to_stop_condition(timeout, max_nodes),
                            .tolerance = tolerance};
    const Vertices usable = to_free(target, std::move(free));
    auto result = searched<BestResult>(
        pattern, target, params.stop,
        [&](const match::Pattern& p, const match::Target& t) {
            require(match::check(p, t, goal));
            return match::best_subgraph(p, t, usable, goal, params);
        },
        [&] { return match::plain_subgraph(pattern.graph(), target.graph(), usable, goal, params); });
    return py::make_tuple(to_mapping(result.found, std::move(result.vertices)), result.score, result.bound,
                          result.optimal, result.complete, result.nodes);
}

BestAnswer best_named(const GraphHandle& pattern, const GraphHandle& target, const std::string& objective,
                      std::optional<Vertices> free, const Vertices& required, double min_weight,
                      std::optional<double> timeout, std::optional<std::uint64_t> max_nodes,
                      double tolerance) {
    return best(pattern, target, to_objective(objective), std::move(free), required, min_weight, timeout,
                max_nodes, tolerance);
}

RemainderAnswer remainder(const GraphHandle& pattern, const GraphHandle& target, std::optional<Vertices> free,
                          const Vertices& kept, const Vertices& required, std::optional<double> timeout,
                          std::optional<std::uint64_t> max_nodes) {
    check_vertices(required, "required", target.graph().num_vertices());
    const Vertices usable = to_free(target, std::move(free));
    check_vertices(kept, "kept", target.graph().num_vertices());
    const match::RemainderParams params{
        .required = required, .kept = kept, .stop = to_stop_condition(timeout, max_nodes)};
    auto result = searched<match::RemainderResult>(
        pattern, target, params.stop,
        [&](const match::Pattern& p, const match::Target& t) {
            require(match::check_remainder(p, t));
            return match::best_remainder(p, t, usable, params);
        },
        [] { return match::RemainderResult{}; });
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
    const match::Target& searchable = *target.target({});
    require(
        match::LinkCountScore::check(searchable, as_span(classes), num_classes, num_edges, as_span(scores)));
    return std::make_unique<match::LinkCountScore>(searchable, as_span(classes), num_classes, num_edges,
                                                   as_span(scores));
}

py::array_t<std::int32_t> count_vectors(std::int32_t num_edges, std::int32_t num_classes) {
    require(match::LinkCountScore::check(num_edges, num_classes));
    auto rows = match::LinkCountScore::count_vectors(num_edges, num_classes);
    const auto length = static_cast<py::ssize_t>(rows.size()) / num_classes;
    return to_array(std::move(rows), {length, num_classes});
}

}  // namespace

void register_match(py::module_& module) {
    py::class_<match::LinkCountScore> score(module, "LinkCountScore", "Scores by link counts, tabulated.");
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
               py::arg("max_nodes"), py::arg("tolerance"));
    module.def("best_subgraph", &best<match::LinkCountScore>, py::arg("pattern"), py::arg("target"),
               py::arg("objective"), py::arg("free"), py::arg("required"), py::arg("min_weight"),
               py::arg("timeout"), py::arg("max_nodes"), py::arg("tolerance"));
    module.def("best_remainder", &remainder, py::arg("pattern"), py::arg("target"), py::arg("free"),
               py::arg("kept"), py::arg("required"), py::arg("timeout"), py::arg("max_nodes"));
    module.def(
        "verify_embedding",
        [](const GraphHandle& pattern, const GraphHandle& target, const Vertices& vertices, bool induced,
           double min_weight) {
            return match::verify_embedding(pattern.graph(), target.graph(), vertices, induced, min_weight);
        },
        py::arg("pattern"), py::arg("target"), py::arg("vertices"), py::arg("induced"), py::arg("min_weight"),
        "None where the vertices are an embedding, else the reason why they are not.");
}

}  // namespace topoplace::bindings
