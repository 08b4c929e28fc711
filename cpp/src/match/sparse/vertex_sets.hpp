// One mapping for each set of target vertices, over lists of neighbours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "match/sparse/backtrack.hpp"

namespace topoplace::match::sparse {

// Tells `take` each set's smallest mapping, its last vertex apart, in lexicographic order of the sets, until
// it returns false. All sets of one smallest vertex are found, and then put in order.
template <class Take>
void vertex_sets(const Space& space, const Pattern::Impl& pattern, WorkMeter& meter, Take&& take) {
    const bool one_an_image = space.uniform;  // its mapping has the smallest vertex at one place
    std::vector<std::unique_ptr<Backtrack>> searches;
    for (std::int32_t u = 0; u < pattern.size(); ++u) {
        const Plan* plan = pattern.rooted(u, meter);
        if (plan == nullptr) return;
        searches.push_back(std::make_unique<Backtrack>(space, *plan, one_an_image, meter));
    }
    const Plan* in_order = pattern.natural(meter);
    if (in_order == nullptr) return;
    Backtrack natural(space, *in_order, false, meter);
    std::vector<std::vector<std::int32_t>> sets;
    bool room = true;
    for (std::int32_t lowest = 0; lowest < space.target_size() && room; ++lowest) {
        if (space.degree(lowest) == kAbsent) continue;
        sets.clear();
        for (const auto& search : searches) {
            search->fix_lowest(lowest);
            search->run([&](const Backtrack& at_leaf, const Images& last) {
                last.for_each([&](std::int32_t v) {
                    sets.emplace_back(at_leaf.images().begin(), at_leaf.images().end());
                    sets.back().back() = v;
                    std::sort(sets.back().begin(), sets.back().end());
                });
                return !meter.pass_time(256 * index(last.count()));
            });
        }
        if (meter.stopped()) return;
        std::sort(sets.begin(), sets.end());
        sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
        for (const auto& set : sets) {
            natural.restrict_to(set);
            natural.run([&](const Backtrack& at_leaf, const Images& last) {
                room = take(at_leaf, last.lowest());
                return false;
            });
            if (!room || meter.stopped()) return;
        }
    }
}

}  // namespace topoplace::match::sparse
