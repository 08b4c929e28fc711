// Binds the mapping of items to a tree of domains.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <tuple>
#include <vector>

#include "convert.hpp"
#include "register.hpp"
#include "tree_convert.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using tree_mapping::TreeMapParams;
using tree_mapping::TreeMapResult;
using Ints = Array<std::int32_t>;
using Reals = Array<double>;
// Whether there is a mapping, leaves, seconds, port-seconds, bound, whether it is complete, moves.
using TreeMapped = std::tuple<bool, py::array_t<std::int32_t>, double, double, double, bool, std::uint64_t>;

TreeMapped map_to_tree(const Tree& tree, const Items& items, std::uint64_t seed, std::uint64_t moves,
                       std::optional<double> timeout) {
    TreeMapParams params = to_params(tree, items);
    params.seed = seed;
    params.moves = moves;
    params.stop = to_stop_condition(timeout);
    auto found = without_gil<TreeMapResult>([&] {
        require(tree_mapping::check(params));
        return tree_mapping::map_to_tree(params);
    });
    return {found.found,   to_row(std::move(found.leaf_of)),
            found.seconds, found.port_seconds,
            found.bound,   found.complete,
            found.moves};
}

std::pair<double, py::array_t<double>> tree_bound(const Tree& tree, const Items& items) {
    const TreeMapParams params = to_params(tree, items);
    auto found = without_gil<tree_mapping::TreeBound>([&] {
        require(tree_mapping::check(params));
        return tree_mapping::tree_bound(params);
    });
    return {found.seconds, to_row(std::move(found.phases))};
}

Fault verify_tree_mapping(const Tree& tree, const Items& items, const Ints& leaf_of, double seconds,
                          double port_seconds) {
    const TreeMapParams params = to_params(tree, items);
    require(tree_mapping::check(params));
    return tree_mapping::verify_tree_mapping(params, as_span(leaf_of),
                                             {.seconds = seconds, .port_seconds = port_seconds});
}

}  // namespace

void register_tree_mapping(py::module_& module) {
    module.def("map_to_tree", &map_to_tree, py::arg("tree"), py::arg("items"), py::arg("seed"),
               py::arg("moves"), py::arg("timeout"));
    module.def("tree_bound", &tree_bound, py::arg("tree"), py::arg("items"));
    module.def("verify_tree_mapping", &verify_tree_mapping, py::arg("tree"), py::arg("items"),
               py::arg("leaf_of").noconvert(), py::arg("seconds"), py::arg("port_seconds"),
               "None where the mapping is right, else the reason why it is not.");
}

}  // namespace topoplace::bindings
