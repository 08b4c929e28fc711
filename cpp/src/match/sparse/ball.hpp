// The vertices near the image of a plan's first vertex, which alone are worth trying for later ones.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::match::sparse {

class RootBall {
  public:
    RootBall(const Plan& plan, std::int32_t target_size) {
        for (std::int32_t d = 0; d < std::ssize(plan.order); ++d) {
            radius_.push_back(kAnywhere);
            for (const Reach& reach : plan.reach[d]) {
                if (reach.depth == 0 && reach.radius <= kLargest) radius_.back() = reach.radius;
            }
            if (radius_.back() != kAnywhere) widest_ = std::max(widest_, radius_.back());
        }
        if (widest_ > 0) distance_.assign(index(target_size), kFar);
    }

    // each(v, visit) visits all neighbours of v.
    template <class EachNeighbor>
    void center(std::int32_t root, EachNeighbor&& each, WorkMeter& meter) {
        if (widest_ == 0) return;
        for (const std::int32_t v : inside_) distance_[index(v)] = kFar;
        inside_.assign(1, root);
        distance_[index(root)] = 0;
        known_ = widest_;
        std::size_t looked_at = 0;
        for (std::size_t next = 0; next < inside_.size(); ++next) {
            const std::int32_t v = inside_[next];
            const std::int32_t beyond = distance_[index(v)] + 1;
            if (beyond > widest_) break;
            if (looked_at > kMostLooks) {
                known_ = beyond - 1;
                break;
            }
            each(v, [&](std::int32_t u) {
                ++looked_at;
                if (distance_[index(u)] != kFar) return;
                distance_[index(u)] = static_cast<std::uint8_t>(beyond);
                inside_.push_back(u);
            });
        }
        meter.pass_time(16 * looked_at);
    }

    // Of the vertex at this depth, whether it may go to v.
    bool allows(std::int32_t depth, std::int32_t v) const {
        const std::int32_t radius = radius_[index(depth)];
        return radius > known_ || distance_[index(v)] <= radius;
    }

  private:
    static constexpr std::uint8_t kFar = std::numeric_limits<std::uint8_t>::max();
    static constexpr std::int32_t kAnywhere = std::numeric_limits<std::int32_t>::max();
    static constexpr std::int32_t kLargest = 250;
    static constexpr std::size_t kMostLooks = 1U << 12;  // beyond, a ball costs more than it saves

    std::vector<std::int32_t> radius_;  // by depth
    std::int32_t widest_ = 0;
    std::int32_t known_ = -1;  // nearer vertices are all in the ball
    std::vector<std::uint8_t> distance_;
    std::vector<std::int32_t> inside_;
};

}  // namespace topoplace::match::sparse
