// Packing of one hub: its best members in the order of their prices, filled from the dearest on.
#include "flow/scheduling/start/hub_packing.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

class HubPacking {
  public:
    HubPacking(Assignment& assignment, std::int32_t hub) : assignment_(assignment), hub_(hub) {}

    void run() {
        find_best_members();
        std::size_t cheapest = 0;
        for (std::size_t dearest = leaves_.size(); dearest-- > cheapest;) {
            while (!place(dearest).full() && cheapest < dearest) {
                if (!move_one(cheapest, leaves_[dearest])) ++cheapest;
            }
        }
    }

  private:
    std::int32_t place_of(std::int32_t leaf) const {
        return assignment_.hub(hub_).members[index(leaf)].place;
    }
    const Assignment::Place& place(std::size_t i) const { return assignment_.place(place_of(leaves_[i])); }

    // The best members with a price, the cheapest first.
    void find_best_members() {
        const Assignment::Hub& hub = assignment_.hub(hub_);
        const std::int64_t level = assignment_.value(hub.target);
        for (std::size_t leaf = 0; leaf < hub.members.size(); ++leaf) {
            const Member& member = hub.members[leaf];
            const bool best = member.distance + assignment_.value(member.place) == level;
            if (best && assignment_.price(member.place) > 0)
                leaves_.push_back(static_cast<std::int32_t>(leaf));
        }
        std::sort(leaves_.begin(), leaves_.end(), [&](std::int32_t a, std::int32_t b) {
            const std::int64_t first = assignment_.price(place_of(a));
            const std::int64_t second = assignment_.price(place_of(b));
            return first != second ? first < second : a < b;
        });
    }

    // Moves a task that came through the hub; false if there is none.
    bool move_one(std::size_t from, std::int32_t leaf) {
        const std::int32_t target = assignment_.hub(hub_).target;
        std::int32_t task = place(from).first_task;
        while (task >= 0 && assignment_.option(assignment_.task(task).option).target != target) {
            task = assignment_.next_task(task);
        }
        if (task < 0) return false;
        const std::int32_t left = assignment_.task(task).place;
        const std::int32_t option = assignment_.task(task).option;
        assignment_.unassign(task);
        assignment_.refresh(left);
        assignment_.assign(task, place_of(leaf), {.option = option, .hub = hub_, .leaf = leaf});
        assignment_.worklist().unsettled.push_back(left);
        return true;
    }

    Assignment& assignment_;
    std::int32_t hub_;
    std::vector<std::int32_t> leaves_;
};

}  // namespace

void pack_hubs(Assignment& assignment) {
    for (const Assignment::Hub& hub : assignment.hubs()) {
        if (!assignment.is_popular(hub.target)) continue;
        HubPacking(assignment, assignment.hub_of(hub.target)).run();
    }
}

}  // namespace topoplace::flow
