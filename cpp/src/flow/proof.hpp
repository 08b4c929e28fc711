// Checks every answer by the proof that comes with it, where assertions are on.
#pragma once

#include "topoplace/assert.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::flow {

// Takes one pass over nodes and arcs; does nothing unless assertions are on.
inline void assert_proven(const Network& network, const FlowResult& result) {
    if constexpr (!kAssertionsOn) return;
    switch (result.status) {
        case Status::optimal:
            return TOPOPLACE_ASSERT(!verify_flow(network, result.flow, result.potential, result.cost));
        case Status::infeasible:
            return TOPOPLACE_ASSERT(!verify_infeasible(network, result.cut));
        case Status::unbounded:
            return TOPOPLACE_ASSERT(!verify_unbounded(network, result.cycle));
        case Status::timeout:
            return TOPOPLACE_ASSERT(result.flow.empty() && result.potential.empty());
    }
}

}  // namespace topoplace::flow
