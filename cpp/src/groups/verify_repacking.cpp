// Checks a repacking by the definition alone; shares no code with the search.
#include <algorithm>
#include <string>

#include "topoplace/group_repacking.hpp"

namespace topoplace::groups {

Fault verify_repacking(const RepackParams& params, std::span<const Share> shares, std::int64_t moved) {
    if (const Fault fault = verify_packing(params.problem, shares)) return fault;
    std::int64_t counted = 0;
    for (const Share& share : shares) {
        std::int32_t stay = 0;
        for (const Share& kept : params.kept) {
            if (kept.group == share.group && kept.leaf == share.leaf)
                stay = std::min(kept.tasks, share.tasks);
        }
        counted += share.tasks - stay;
    }
    if (counted != moved) return std::to_string(counted) + " tasks move, not " + std::to_string(moved);
    return std::nullopt;
}

}  // namespace topoplace::groups
