// Finds the common shift as an order statistic of the margins at which tasks change between a limited place
// and their exit.
#include "flow/scheduling/solver/price_leveller.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "topoplace/assert.hpp"

namespace topoplace::flow {

// By how much the price of every limited place would have to rise until a task leaves for its exit; below
// zero, fall until it comes.
std::int64_t PriceLeveller::exit_margin(std::int32_t task) const {
    const std::int32_t exit = exits_.exit_of(task);
    if (exit < 0) return kFar;
    const Option& out = assignment_.option(exit);
    const std::int64_t leaving = out.cost + assignment_.value(out.target);
    const Assignment::Task& at = assignment_.task(task);
    if (at.assigned() && !assignment_.is_exit(at.place)) return leaving - assignment_.current_cost(task);
    std::int64_t inside = kFar;
    for (std::int32_t option = at.first; option < at.end(); ++option) {
        const Option& to = assignment_.option(option);
        if (!assignment_.is_hub(to.target) && assignment_.is_exit(to.target)) continue;
        inside = std::min(inside, to.cost + assignment_.value(to.target));
    }
    return leaving - inside;
}

// By how much prices have to rise until there is room for all tasks that want a limited place; zero if they
// need not, or cannot.
std::int64_t PriceLeveller::common_shift() const {
    std::int64_t least = kFar;
    for (std::int32_t place = 0; place < assignment_.num_targets(); ++place) {
        if (assignment_.is_limited(place)) least = std::min(least, assignment_.price(place));
    }
    TOPOPLACE_ASSERT(least >= 0);
    std::vector<std::int64_t> margins;
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        if (assignment_.task(task).count > 0) margins.push_back(margins_[index(task)]);
    }
    const std::int64_t room = assignment_.limited_room();
    if (least == 0 || static_cast<std::int64_t>(margins.size()) <= room) return 0;
    const auto nth = margins.begin() + static_cast<std::ptrdiff_t>(room);
    std::nth_element(margins.begin(), nth, margins.end(), std::greater<>());
    return *nth > kFar / 2 ? 0 : std::max(*nth, -least);
}

void PriceLeveller::level() {
    // An unknown exit would keep its price while those of its competitors change.
    if (!exits_.is_complete()) exits_.open();
    margins_.assign(assignment_.tasks().size(), kFar);
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        if (assignment_.task(task).count > 0) margins_[index(task)] = exit_margin(task);
    }
    const std::int64_t by = common_shift();
    if (by == 0) return;
    for (std::int32_t task = 0; task < assignment_.num_tasks(); ++task) {
        const std::int32_t place = assignment_.task(task).place;
        if (place < 0) continue;
        const std::int64_t margin = margins_[index(task)];
        if (assignment_.is_exit(place) ? margin <= by : margin >= by) continue;
        assignment_.withdraw(task);
        assignment_.worklist().waiting.push_back(task);
    }
    assignment_.shift_prices(by);
    entrances_.update_costs();
}

}  // namespace topoplace::flow
