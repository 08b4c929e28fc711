// Trees of domains and the items on their leaves, as Python gives them.
#pragma once

#include <pybind11/stl.h>

#include <tuple>

#include "convert.hpp"
#include "topoplace/tree_mapping.hpp"

namespace topoplace::bindings {

// Parent, room, uplink, own_class, own.
using Tree =
    std::tuple<Array<std::int32_t>, Array<std::int32_t>, Array<double>, Array<std::int32_t>, Array<double>>;
// Number of items, phase ends, from, to, gigabytes, start, confined, others.
using Items = std::tuple<std::int32_t, Array<std::int64_t>, Array<std::int32_t>, Array<std::int32_t>,
                         Array<double>, Array<std::int32_t>, Array<std::int32_t>, Array<double>>;

inline tree_mapping::TreeMapParams to_params(const Tree& tree, const Items& items) {
    const auto& [parent, room, uplink, own_class, own] = tree;
    const auto& [count, ends, from, to, gigabytes, start, confined, others] = items;
    tree_mapping::TreeMapParams params;
    params.tree = {as_span(parent), as_span(room), as_span(uplink), as_span(own_class), as_span(own)};
    params.items = {count,          as_span(ends),     as_span(from),  as_span(to), as_span(gigabytes),
                    as_span(start), as_span(confined), as_span(others)};
    return params;
}

}  // namespace topoplace::bindings
