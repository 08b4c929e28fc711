// Why a GPU or a machine is given to no new job.
#pragma once

#include <cstdint>

namespace topoplace {

// The reasons are set and taken back one by one; in service is what has none of them.
struct Withdrawal {
    bool drained = false;
    bool unhealthy = false;
    std::uint16_t held = 0;  // the number of the reason it is held for, 0 where it is not held

    bool in_service() const { return !drained && !unhealthy && held == 0; }
    bool operator==(const Withdrawal&) const = default;
};

}  // namespace topoplace
