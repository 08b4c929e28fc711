// From the innermost level outwards, the machines with the most room of each domain.
#include "decide/few_machines.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

struct Offer {
    std::int64_t domain = 0;
    std::int32_t room = 0;
    std::size_t number = 0;
};

// The offers with the most room of the domain in which they have the least, but enough.
std::span<const Offer> in_one_domain(std::vector<Offer>& order, std::int32_t num_tasks, std::size_t most) {
    std::ranges::sort(order, {},
                      [](const Offer& one) { return std::tuple(one.domain, -one.room, one.number); });
    std::span<const Offer> found;
    std::int64_t least = INT64_MAX;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
        while (end < order.size() && order[end].domain == order[begin].domain) ++end;
        const auto largest = std::span(order).subspan(begin, std::min(end - begin, most));
        std::int64_t room = 0;
        for (const Offer& one : largest) room += one.room;
        if (room >= num_tasks && room < least) least = room, found = largest;
    }
    return found;
}

}  // namespace

std::vector<std::size_t> on_few_machines(const GangSearchParams& params, std::int32_t num_tasks,
                                         std::int32_t max_machines) {
    const MachineOffers& offers = params.offers;
    std::vector<Offer> order;
    for (std::size_t i = 0; i < offers.machines.size(); ++i)
        order.push_back({0, std::min(offers.sizes[i], params.most), i});
    for (std::size_t level = params.levels->size(); level-- > 0;) {
        for (Offer& one : order) {
            // Level 0 is around all others, and the whole is around it.
            const std::size_t machine = index(offers.machines[one.number]);
            one.domain = level == 0 ? 0 : (*params.levels)[level - 1].codes[machine];
        }
        std::vector<std::size_t> found;
        for (const Offer& one : in_one_domain(order, num_tasks, index(max_machines)))
            found.push_back(one.number);
        std::ranges::sort(found);
        if (!found.empty()) return found;
    }
    return {};
}

}  // namespace topoplace::decide
