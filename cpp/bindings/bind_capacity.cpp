// Binds capacity planning: prices of nodes, lists of nodes, search and verification.
#include <pybind11/stl.h>

#include "convert.hpp"
#include "register.hpp"
#include "topoplace/capacity.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::capacity::Problem>
    : public topoplace::bindings::HandleCaster<topoplace::capacity::Problem> {};

namespace topoplace::bindings {
namespace {

using capacity::Node;
using capacity::Problem;
using Jobs = std::vector<std::pair<std::int32_t, std::int32_t>>;
using NodeTuple = std::pair<std::int32_t, Jobs>;
// Cost, reduced cost, type, jobs: a tuple because lists hold up to a million of them.
using Priced = std::tuple<double, double, std::int32_t, Jobs>;

// SearchResult as Python sees it.
struct SearchAnswer {
    std::vector<NodeTuple> nodes;
    double cost;
    double bound;
    bool complete;
    std::uint64_t rounds;
    std::uint64_t improvements;
    std::uint64_t knapsacks;
};

capacity::Tables to_tables(const Array<std::int32_t>& gpus, const Array<double>& open,
                           const Array<double>& run, const Array<double>& pay, const Array<double>& wait) {
    check_shape(gpus, "gpus", {-1});
    check_shape(open, "open", {gpus.shape(0)});
    check_shape(wait, "wait", {-1});
    check_shape(run, "run", {wait.shape(0), gpus.shape(0), -1});
    check_shape(pay, "pay", {wait.shape(0), gpus.shape(0), run.shape(2)});
    return {.gpus = as_span(gpus),
            .open = as_span(open),
            .run = as_span(run),
            .pay = as_span(pay),
            .wait = as_span(wait),
            .most_gpus = static_cast<std::int32_t>(run.shape(2))};
}

std::unique_ptr<Problem> problem(const Array<std::int32_t>& gpus, const Array<double>& open,
                                 const Array<double>& run, const Array<double>& pay,
                                 const Array<double>& wait) {
    const auto tables = to_tables(gpus, open, run, pay, wait);
    require(Problem::check(tables));
    return std::make_unique<Problem>(tables);
}

Jobs to_jobs(const Node& node) {
    Jobs jobs;
    for (const auto& [job, gpus] : node.jobs) jobs.emplace_back(job, gpus);
    return jobs;
}

std::vector<Node> to_nodes(const std::vector<NodeTuple>& given) {
    std::vector<Node> nodes;
    for (const auto& [type, jobs] : given) {
        Node& node = nodes.emplace_back(Node{.type = type});
        for (const auto& [job, gpus] : jobs) node.jobs.push_back({job, gpus});
    }
    return nodes;
}

std::vector<Priced> to_priced(const std::vector<capacity::PricedNode>& nodes) {
    std::vector<Priced> priced;
    priced.reserve(nodes.size());
    for (const auto& [node, reduced] : nodes)
        priced.emplace_back(node.cost, reduced, node.type, to_jobs(node));
    return priced;
}

std::vector<Priced> price(const Problem& problem, const Array<double>& price) {
    return to_priced(without_gil<std::vector<capacity::PricedNode>>([&] {
        require(capacity::check(problem, as_span(price)));
        return capacity::price(problem, as_span(price));
    }));
}

std::optional<std::vector<Priced>> list(const Problem& problem, const Array<double>& price, double limit,
                                        std::size_t most, std::optional<double> timeout) {
    using Listed = std::optional<std::vector<capacity::PricedNode>>;
    const auto found = without_gil<Listed>([&] {
        require(capacity::check(problem, as_span(price)));
        return capacity::list(problem, as_span(price), limit, most, to_stop_condition(timeout));
    });
    if (!found) return std::nullopt;
    return to_priced(*found);
}

SearchAnswer search(const Problem& problem, std::int32_t num_nodes, const std::vector<NodeTuple>& start,
                    std::uint64_t price_steps, std::uint64_t rounds, std::uint64_t seed,
                    std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    const auto nodes = to_nodes(start);
    capacity::SearchParams params;
    params.num_nodes = num_nodes;
    params.start = nodes;
    params.price_steps = price_steps;
    params.rounds = rounds;
    params.seed = seed;
    params.stop = to_stop_condition(timeout, max_nodes);
    const auto result = without_gil<capacity::SearchResult>([&] {
        require(capacity::check(problem, params));
        return capacity::search(problem, params);
    });
    std::vector<NodeTuple> found;
    for (const Node& node : result.nodes) found.emplace_back(node.type, to_jobs(node));
    return {.nodes = std::move(found),
            .cost = result.cost,
            .bound = result.bound,
            .complete = result.complete,
            .rounds = result.rounds,
            .improvements = result.improvements,
            .knapsacks = result.knapsacks};
}

Fault verify(const Array<std::int32_t>& gpus, const Array<double>& open, const Array<double>& run,
             const Array<double>& pay, const Array<double>& wait, const std::vector<NodeTuple>& nodes,
             double cost) {
    return capacity::verify(to_tables(gpus, open, run, pay, wait), to_nodes(nodes), cost);
}

}  // namespace

void register_capacity(py::module_& module) {
    py::class_<Problem>(module, "CapacityTables", "What nodes and jobs cost, as searches read it.")
        .def(py::init(&problem), py::arg("gpus").noconvert(), py::arg("open").noconvert(),
             py::arg("run").noconvert(), py::arg("pay").noconvert(), py::arg("wait").noconvert());
    py::class_<SearchAnswer>(module, "CapacityAnswer", "The answer of `search_capacity`.")
        .def_readonly("nodes", &SearchAnswer::nodes)
        .def_readonly("cost", &SearchAnswer::cost)
        .def_readonly("bound", &SearchAnswer::bound)
        .def_readonly("complete", &SearchAnswer::complete)
        .def_readonly("rounds", &SearchAnswer::rounds)
        .def_readonly("improvements", &SearchAnswer::improvements)
        .def_readonly("knapsacks", &SearchAnswer::knapsacks);
    module.def("price_nodes", &price, py::arg("problem"), py::arg("price").noconvert());
    module.def("list_nodes", &list, py::arg("problem"), py::arg("price").noconvert(), py::arg("limit"),
               py::arg("most"), py::arg("timeout"));
    module.def("search_capacity", &search, py::arg("problem"), py::arg("num_nodes"), py::arg("start"),
               py::arg("price_steps"), py::arg("rounds"), py::arg("seed"), py::arg("timeout"),
               py::arg("max_nodes"));
    module.def("verify_capacity", &verify, py::arg("gpus").noconvert(), py::arg("open").noconvert(),
               py::arg("run").noconvert(), py::arg("pay").noconvert(), py::arg("wait").noconvert(),
               py::arg("nodes"), py::arg("cost"),
               "None where the plan is right, else the reason why it is not.");
}

}  // namespace topoplace::bindings
