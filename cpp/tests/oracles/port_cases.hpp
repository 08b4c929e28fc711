// Arguments of the kernels about ports, which own what the spans of their parameters refer to.
#pragma once

#include <cstdint>
#include <vector>

#include "topoplace/port_network.hpp"
#include "topoplace/tree_mapping.hpp"

namespace oracle {

struct NetworkCase {
    std::int32_t n = 0;
    std::vector<double> speeds{};
    std::vector<std::int32_t> entry{}, segment_of{}, domain{}, uplink{}, links{};
    std::vector<std::uint8_t> is_slower{};
    std::vector<std::int32_t> group{}, lane{}, access{};

    topoplace::ports::NetworkParams params() const {
        return {.num_vertices = n,
                .gb_per_s = speeds,
                .entry = entry,
                .segment_of = segment_of,
                .domain = domain,
                .uplink = uplink,
                .links = links,
                .is_slower = is_slower,
                .access = access,
                .group = group,
                .lane = lane};
    }
};

struct TreeCase {
    std::vector<std::int32_t> parent{-1};
    std::vector<std::int32_t> room{};
    std::vector<double> uplink{0};
    std::vector<std::int32_t> own_class{};
    std::vector<double> own{};
    std::int32_t items = 0;
    std::vector<std::int64_t> ends{};
    std::vector<std::int32_t> from{}, to{};
    std::vector<double> gigabytes{};
    std::vector<std::int32_t> start{}, confined{};
    std::vector<double> others{};
    std::uint64_t moves = 2000;

    topoplace::tree_mapping::TreeMapParams params() const {
        topoplace::tree_mapping::TreeMapParams made;
        made.tree = {parent, room, uplink, own_class, own};
        made.items = {items, ends, from, to, gigabytes, start, confined, others};
        made.moves = moves;
        return made;
    }
};

}  // namespace oracle
