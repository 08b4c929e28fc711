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

// The results of the kernel as Python sees them.
struct EnumerateAnswer {
    Rows rows;
    bool complete;
    std::uint64_t nodes;
};

struct CountAnswer {
    std::int64_t count;
    bool complete;
    std::uint64_t nodes;
};

struct BestAnswer {
    MaybeRow vertices;
    double score;
    double bound;
    bool optimal;
    bool complete;
    std::uint64_t nodes;
};

struct RemainderAnswer {
    MaybeRow vertices;
    double remainder;
    double score;
    bool optimal;
    std::uint64_t nodes;
};

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

EnumerateAnswer enumerate(const GraphHandle& pattern, const GraphHandle& target, const std::string& distinct,
                          bool induced, double min_weight, std::int64_t limit,
                          const std::optional<Array<std::uint8_t>>& candidates,
                          std::optional<double> timeout) {
    const auto params = to_params(pattern, target, distinct, induced, min_weight, limit, candidates, timeout);
    auto result = without_gil<EnumerateResult>(
        [&] { return match::enumerate_subgraphs(pattern.pattern(), target.target(), params); });
    std::vector<py::ssize_t> shape{result.count, pattern.graph().num_vertices()};
    return {.rows = to_array(std::move(result.vertices), std::move(shape)),
            .complete = result.complete,
            .nodes = result.nodes};
}

CountAnswer count(const GraphHandle& pattern, const GraphHandle& target, const std::string& distinct,
                  bool induced, double min_weight, std::int64_t limit,
                  const std::optional<Array<std::uint8_t>>& candidates, std::optional<double> timeout) {
    const auto params = to_params(pattern, target, distinct, induced, min_weight, limit, candidates, timeout);
    const auto result = without_gil<EnumerateResult>(
        [&] { return match::count_subgraphs(pattern.pattern(), target.target(), params); });
    return {.count = result.count, .complete = result.complete, .nodes = result.nodes};
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
                std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    check_vertices(required, "required", target.graph().num_vertices());
    const BestParams params{
        .required = required, .min_weight = min_weight, .stop = to_stop_condition(timeout, max_nodes)};
    const Vertices usable = to_free(target, std::move(free));
    auto result = without_gil<BestResult>(
        [&] { return match::best_subgraph(pattern.pattern(), target.target(), usable, goal, params); });
    return {.vertices = to_mapping(result.found, std::move(result.vertices)),
            .score = result.score,
            .bound = result.bound,
            .optimal = result.optimal,
            .complete = result.complete,
            .nodes = result.nodes};
}

BestAnswer best_named(const GraphHandle& pattern, const GraphHandle& target, const std::string& objective,
                      std::optional<Vertices> free, const Vertices& required, double min_weight,
                      std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    return best(pattern, target, to_objective(objective), std::move(free), required, min_weight, timeout,
                max_nodes);
}

RemainderAnswer remainder(const GraphHandle& pattern, const GraphHandle& target, std::optional<Vertices> free,
                          const Vertices& kept, const Vertices& required, std::optional<double> timeout,
                          std::optional<std::uint64_t> max_nodes) {
    check_vertices(required, "required", target.graph().num_vertices());
    const Vertices usable = to_free(target, std::move(free));
    check_vertices(kept, "kept", target.graph().num_vertices());
    const match::RemainderParams params{
        .required = required, .kept = kept, .stop = to_stop_condition(timeout, max_nodes)};
    auto result = without_gil<match::RemainderResult>(
        [&] { return match::best_remainder(pattern.pattern(), target.target(), usable, params); });
    return {.vertices = to_mapping(result.found, std::move(result.vertices)),
            .remainder = result.remainder,
            .score = result.score,
            .optimal = result.optimal,
            .nodes = result.nodes};
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

}  // namespace

void register_match(py::module_& module) {
    py::class_<EnumerateAnswer>(module, "EnumerateAnswer", "The answer of `enumerate_subgraphs`.")
        .def_readonly("rows", &EnumerateAnswer::rows)
        .def_readonly("complete", &EnumerateAnswer::complete)
        .def_readonly("nodes", &EnumerateAnswer::nodes);
    py::class_<CountAnswer>(module, "CountAnswer", "The answer of `count_subgraphs`.")
        .def_readonly("count", &CountAnswer::count)
        .def_readonly("complete", &CountAnswer::complete)
        .def_readonly("nodes", &CountAnswer::nodes);
    py::class_<BestAnswer>(module, "BestAnswer", "The answer of `best_subgraph`.")
        .def_readonly("vertices", &BestAnswer::vertices, "None where no embedding was found.")
        .def_readonly("score", &BestAnswer::score)
        .def_readonly("bound", &BestAnswer::bound)
        .def_readonly("optimal", &BestAnswer::optimal)
        .def_readonly("complete", &BestAnswer::complete)
        .def_readonly("nodes", &BestAnswer::nodes);
    py::class_<RemainderAnswer>(module, "RemainderAnswer", "The answer of `best_remainder`.")
        .def_readonly("vertices", &RemainderAnswer::vertices, "None where no embedding was found.")
        .def_readonly("remainder", &RemainderAnswer::remainder)
        .def_readonly("score", &RemainderAnswer::score)
        .def_readonly("optimal", &RemainderAnswer::optimal)
        .def_readonly("nodes", &RemainderAnswer::nodes);
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
               py::arg("max_nodes"));
    module.def("best_subgraph", &best<match::LinkCountScore>, py::arg("pattern"), py::arg("target"),
               py::arg("objective"), py::arg("free"), py::arg("required"), py::arg("min_weight"),
               py::arg("timeout"), py::arg("max_nodes"));
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
