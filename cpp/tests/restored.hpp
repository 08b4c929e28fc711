// The state that bytes of a cluster hold.
#pragma once

#include <string_view>
#include <utility>

#include "topoplace/cluster_state.hpp"

inline topoplace::ClusterState restored(std::string_view bytes, std::int32_t num_gpus,
                                        topoplace::Machines machines = {}) {
    topoplace::Fault fault;
    return topoplace::ClusterState::restore(bytes, num_gpus, std::move(machines), fault).value();
}
