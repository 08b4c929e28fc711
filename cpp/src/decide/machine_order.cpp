// Sorts machines by their domains, unless they are in order as most are.
#include "decide/machine_order.hpp"

#include <algorithm>
#include <numeric>

#include "graph/index.hpp"

namespace topoplace::decide {

MachineOrder machine_order(const MachineOffers& offers, const LevelCodes& codes) {
    const std::size_t count = offers.machines.size();
    const auto machine = [&](std::int32_t offer) { return index(offers.machines[index(offer)]); };
    const auto is_before = [&](std::int32_t one, std::int32_t other) {
        for (const auto& level : codes) {
            if (level[machine(one)] != level[machine(other)])
                return level[machine(one)] < level[machine(other)];
        }
        return machine(one) < machine(other);
    };
    MachineOrder found{std::vector<std::int32_t>(count), {}};
    std::iota(found.order.begin(), found.order.end(), 0);
    if (!std::ranges::is_sorted(found.order, is_before)) std::ranges::sort(found.order, is_before);
    std::vector<std::uint8_t> begins(count, 0);  // whether a domain of this level or one above begins there
    for (const auto& level : codes) {
        std::vector<std::int32_t>& firsts = found.firsts.emplace_back();
        for (std::size_t leaf = 0; leaf < count; ++leaf) {
            const auto code = [&](std::size_t one) { return level[machine(found.order[one])]; };
            if (leaf == 0 || code(leaf) != code(leaf - 1)) begins[leaf] = 1;
            if (begins[leaf] != 0) firsts.push_back(static_cast<std::int32_t>(leaf));
        }
    }
    found.firsts.emplace_back(count);
    std::iota(found.firsts.back().begin(), found.firsts.back().end(), 0);
    return found;
}

}  // namespace topoplace::decide
