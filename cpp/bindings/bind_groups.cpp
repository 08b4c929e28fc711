// Binds the packing and the repacking of groups into domains.
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "convert.hpp"
#include "register.hpp"
#include "topoplace/group_packing.hpp"
#include "topoplace/group_repacking.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using groups::PackParams;
using groups::PackResult;
using groups::RepackParams;
using groups::RepackResult;
using groups::Share;
using Ints = Array<std::int32_t>;
using GroupShares = py::typing::Tuple<bool, py::array_t<std::int32_t>, bool, bool, std::uint64_t>;
using Moves =
    py::typing::Tuple<bool, py::array_t<std::int32_t>, bool, std::int64_t, std::int64_t, std::uint64_t>;

PackParams to_params(const Ints& parent, const Ints& room, const Ints& group_parent, const Ints& group_depth,
                     const Ints& own_tasks) {
    for (const auto& [array, name] :
         {std::pair(&parent, "parent"), std::pair(&room, "room"), std::pair(&group_parent, "group_parent"),
          std::pair(&group_depth, "group_depth"), std::pair(&own_tasks, "own_tasks")}) {
        check_shape(*array, name, {-1});
    }
    return {.parent = as_span(parent),
            .room = as_span(room),
            .group_parent = as_span(group_parent),
            .group_depth = as_span(group_depth),
            .own_tasks = as_span(own_tasks)};
}

py::array_t<std::int32_t> to_rows(const std::vector<Share>& shares) {
    std::vector<std::int32_t> rows;
    for (const Share& share : shares) rows.insert(rows.end(), {share.group, share.leaf, share.tasks});
    return to_array(std::move(rows), {static_cast<py::ssize_t>(shares.size()), 3});
}

std::vector<Share> to_shares(const Ints& array, const char* name) {
    check_shape(array, name, {-1, 3});
    const auto rows = as_span(array);
    std::vector<Share> listed;
    for (std::size_t i = 0; i < rows.size(); i += 3) listed.push_back({rows[i], rows[i + 1], rows[i + 2]});
    return listed;
}

GroupShares pack_groups(const Ints& parent, const Ints& room, const Ints& group_parent,
                        const Ints& group_depth, const Ints& own_tasks, std::int32_t balanced,
                        std::optional<double> timeout, std::optional<std::uint64_t> max_nodes) {
    PackParams params = to_params(parent, room, group_parent, group_depth, own_tasks);
    params.balanced = balanced;
    params.stop = to_stop_condition(timeout, max_nodes);
    const auto result = without_gil<PackResult>([&] {
        require(groups::check(params));
        return groups::pack_groups(params);
    });
    return py::make_tuple(result.found, to_rows(result.shares), result.complete, result.fewest, result.nodes);
}

Fault verify_group_packing(const Ints& parent, const Ints& room, const Ints& group_parent,
                           const Ints& group_depth, const Ints& own_tasks, std::int32_t balanced,
                           const Ints& shares) {
    PackParams params = to_params(parent, room, group_parent, group_depth, own_tasks);
    params.balanced = balanced;
    require(groups::check(params));
    return groups::verify_packing(params, to_shares(shares, "shares"));
}

Moves repack_groups(const Ints& parent, const Ints& room, const Ints& group_parent, const Ints& group_depth,
                    const Ints& own_tasks, const Ints& kept, std::optional<double> timeout,
                    std::optional<std::uint64_t> max_nodes) {
    RepackParams params{.problem = to_params(parent, room, group_parent, group_depth, own_tasks)};
    const std::vector<Share> shares = to_shares(kept, "kept");
    params.kept = shares;
    params.problem.stop = to_stop_condition(timeout, max_nodes);
    const auto result = without_gil<RepackResult>([&] {
        require(groups::check(params));
        return groups::repack_groups(params);
    });
    return py::make_tuple(result.found, to_rows(result.shares), result.complete, result.moved, result.bound,
                          result.nodes);
}

Fault verify_group_repacking(const Ints& parent, const Ints& room, const Ints& group_parent,
                             const Ints& group_depth, const Ints& own_tasks, const Ints& kept,
                             const Ints& shares, std::int64_t moved) {
    RepackParams params{.problem = to_params(parent, room, group_parent, group_depth, own_tasks)};
    require(groups::check(params.problem));
    const std::vector<Share> before = to_shares(kept, "kept");
    params.kept = before;
    return groups::verify_repacking(params, to_shares(shares, "shares"), moved);
}

}  // namespace

void register_groups(py::module_& module) {
    module.def("pack_groups", &pack_groups, py::arg("parent").noconvert(), py::arg("room").noconvert(),
               py::arg("group_parent").noconvert(), py::arg("group_depth").noconvert(),
               py::arg("own_tasks").noconvert(), py::arg("balanced"), py::arg("timeout"),
               py::arg("max_nodes"));
    module.def("verify_group_packing", &verify_group_packing, py::arg("parent").noconvert(),
               py::arg("room").noconvert(), py::arg("group_parent").noconvert(),
               py::arg("group_depth").noconvert(), py::arg("own_tasks").noconvert(), py::arg("balanced"),
               py::arg("shares").noconvert(),
               "None where the packing is right, else the reason why it is not.");
    module.def("repack_groups", &repack_groups, py::arg("parent").noconvert(), py::arg("room").noconvert(),
               py::arg("group_parent").noconvert(), py::arg("group_depth").noconvert(),
               py::arg("own_tasks").noconvert(), py::arg("kept").noconvert(), py::arg("timeout"),
               py::arg("max_nodes"));
    module.def("verify_group_repacking", &verify_group_repacking, py::arg("parent").noconvert(),
               py::arg("room").noconvert(), py::arg("group_parent").noconvert(),
               py::arg("group_depth").noconvert(), py::arg("own_tasks").noconvert(),
               py::arg("kept").noconvert(), py::arg("shares").noconvert(), py::arg("moved"),
               "None where the repacking is right, else the reason why it is not.");
}

}  // namespace topoplace::bindings
