// Binds the mapping of items to a tree of domains.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <tuple>
#include <vector>

#include "convert.hpp"
#include "register.hpp"
#include "topoplace/tree_mapping.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using tree_mapping::ItemParams;
using tree_mapping::TreeMapParams;
using tree_mapping::TreeMapResult;
using tree_mapping::TreeParams;
using Ints = Array<std::int32_t>;
using Reals = Array<double>;
using Tree = std::tuple<Ints, Ints, Reals, Ints, Reals>;  // parent, room, uplink, own_class, own
// Number of items, phase ends, from, to, gigabytes, start, confined, others.
using Items = std::tuple<std::int32_t, Array<std::int64_t>, Ints, Ints, Reals, Ints, Ints, Reals>;
// Whether there is a mapping, leaves, seconds, port-seconds, bound, whether it is complete, moves.
using TreeMapped = std::tuple<bool, py::array_t<std::int32_t>, double, double, double, bool, std::uint64_t>;

TreeMapParams to_params(const Tree& tree, const Items& items) {
    const auto& [parent, room, uplink, own_class, own] = tree;
    const auto& [count, ends, from, to, gigabytes, start, confined, others] = items;
    TreeMapParams params;
    params.tree = {as_span(parent), as_span(room), as_span(uplink), as_span(own_class), as_span(own)};
    params.items = {count,          as_span(ends),     as_span(from),  as_span(to), as_span(gigabytes),
                    as_span(start), as_span(confined), as_span(others)};
    return params;
}

TreeMapped map_to_tree(const Tree& tree, const Items& items, std::uint64_t seed, std::uint64_t moves,
                       std::optional<double> timeout) {
    TreeMapParams params = to_params(tree, items);
    params.seed = seed;
    params.moves = moves;
    params.stop = to_stop_condition(timeout);
    auto found = without_gil<TreeMapResult>([&] { return tree_mapping::map_to_tree(params); });
    return {found.found,   to_row(std::move(found.leaf_of)),
            found.seconds, found.port_seconds,
            found.bound,   found.complete,
            found.moves};
}

std::pair<double, py::array_t<double>> tree_bound(const Tree& tree, const Items& items) {
    const TreeMapParams params = to_params(tree, items);
    auto found = without_gil<tree_mapping::TreeBound>([&] { return tree_mapping::tree_bound(params); });
    return {found.seconds, to_row(std::move(found.phases))};
}

Fault verify_tree_mapping(const Tree& tree, const Items& items, const Ints& leaf_of, double seconds,
                          double port_seconds) {
    return tree_mapping::verify_tree_mapping(to_params(tree, items), as_span(leaf_of),
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
