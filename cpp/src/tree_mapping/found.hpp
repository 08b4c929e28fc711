// A mapping as the search compares it.
#pragma once

#include <vector>

#include "tree_mapping/loads.hpp"

namespace topoplace::tree_mapping {

inline constexpr double kEqual = 1 + 1e-9;

struct Found {
    double seconds = 0.0;
    double port_seconds = 0.0;
    double excess = 0.0;
    Index leaves = 0;  // that are used
    std::vector<Index> leaf_of{};

    // Less time, then fewer port-seconds, then fewer leaves.
    bool is_better_than(const Found& other) const {
        if (seconds * kEqual < other.seconds) return true;
        if (seconds > other.seconds * kEqual) return false;
        if (port_seconds * kEqual < other.port_seconds) return true;
        return port_seconds <= other.port_seconds * kEqual && leaves < other.leaves;
    }
};

// Where the loads are now, without the leaves of the items.
inline Found found_in(const Loads& loads) {
    return {loads.seconds(), loads.port_seconds(), loads.excess(), loads.leaves_used(), {}};
}

}  // namespace topoplace::tree_mapping
