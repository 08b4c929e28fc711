// The images a vertex may take: the neighbours of the placed neighbour that has fewest, tested one by one.
#include "match/sparse/backtrack.hpp"

#include <algorithm>

#include "match/sparse/core.hpp"

namespace topoplace::match::sparse {

Space::Space(const Pattern::Impl& pattern, const Graph& graph, const EnumerateParams& params)
    : induced(params.induced),
      pattern_(pattern),
      graph_(graph),
      min_weight_(params.min_weight),
      candidates_(params.candidates) {
    const auto row = [&](std::int32_t u) {
        return candidates_.subspan(index(u) * index(target_size()), index(target_size()));
    };
    for (std::int32_t u = 1; u < pattern.size() && !candidates_.empty(); ++u)
        uniform = uniform && std::equal(row(u).begin(), row(u).end(), row(0).begin());
}

std::optional<Space> Space::make(const Pattern::Impl& pattern, const Target::Sparse& target,
                                 const EnumerateParams& params, WorkMeter& meter) {
    Space space(pattern, target.graph(), params);
    auto& degree = space.degree_;
    const auto each = [&](std::int32_t v, auto&& visit) { space.each_neighbor(v, visit); };
    for (std::int32_t v = 0; v < target.size(); ++v) {
        degree.push_back(0);
        each(v, [&](std::int32_t) { ++degree.back(); });
        if (meter.pass_time(16 + 8 * target.graph().neighbors(v).size())) return std::nullopt;
    }
    const Needs needs = needs_of(pattern);
    peel(needs.degree, degree, each, meter);
    drop_small_components(needs.component, degree, each, meter);
    if (meter.stopped()) return std::nullopt;
    return space;
}

Backtrack::Backtrack(const Space& space, const Plan& plan, bool break_symmetry, WorkMeter& meter)
    : space_(space),
      plan_(plan),
      break_symmetry_(break_symmetry),
      meter_(meter),
      last_(static_cast<std::int32_t>(plan.order.size()) - 1),
      image_(plan.order.size()),
      found_(plan.order.size()),
      used_(index(space.target_size())),
      ball_(plan, space.target_size()) {}

Backtrack::Range Backtrack::range(std::int32_t depth) const {
    Range range{root_, space_.target_size()};
    if (!break_symmetry_) return range;
    for (const std::int32_t i : plan_.greater[depth]) range.above = std::max(range.above, image_[index(i)]);
    for (const std::int32_t i : plan_.less[depth]) range.below = std::min(range.below, image_[index(i)]);
    range.below = std::min(range.below, space_.target_size() - plan_.followers[index(depth)]);
    return range;
}

// Apart from the edge to `pivot`, which is known.
bool Backtrack::takes(std::int32_t depth, std::int32_t v, std::int32_t pivot) const {
    if (used_[index(v)] || !space_.may_go(plan_.order[index(depth)], v)) return false;
    if (depth > 0 && !ball_.allows(depth, v)) return false;
    if (!within_.empty() && !std::binary_search(within_.begin(), within_.end(), v)) return false;
    for (const std::int32_t i : plan_.back[depth]) {
        const std::int32_t u = image_[index(i)];
        if (u != pivot && !space_.adjacent(u, v)) return false;
    }
    if (!space_.induced) return true;
    return std::none_of(plan_.apart[depth].begin(), plan_.apart[depth].end(),
                        [&](std::int32_t i) { return space_.adjacent(image_[index(i)], v); });
}

// The placed neighbour of fewest neighbours; kAbsent where none is placed.
std::int32_t Backtrack::pivot_of(std::int32_t depth) const {
    std::int32_t pivot = kAbsent;
    for (const std::int32_t i : plan_.back[depth]) {
        const std::int32_t u = image_[index(i)];
        if (pivot == kAbsent || space_.degree(u) < space_.degree(pivot)) pivot = u;
    }
    return pivot;
}

void Backtrack::collect(std::int32_t depth) {
    std::vector<std::int32_t>& found = found_[index(depth)];
    found.clear();
    const Range range = this->range(depth);
    if (depth == 0 && root_ != kAbsent) {
        const bool fits = root_ < range.below && space_.may_go(plan_.order[0], root_);
        if (fits) found.push_back(root_);
        return;
    }
    const std::int32_t pivot = pivot_of(depth);
    const auto look = [&](std::int32_t v) {
        if (v > range.above && v < range.below && takes(depth, v, pivot)) found.push_back(v);
    };
    if (pivot != kAbsent) {
        space_.each_neighbor(pivot, look);
        meter_.pass_time(32 * index(space_.degree(pivot)));
    } else if (!within_.empty()) {
        for (const std::int32_t v : within_) look(v);
    } else {
        for (std::int32_t v = range.above + 1; v < range.below; ++v) look(v);
        meter_.pass_time(16 * index(space_.target_size()));
    }
}

}  // namespace topoplace::match::sparse
