// The order of the steps, and which vertices are still worth asking for.
#include "match/sparse/canonical.hpp"

#include <algorithm>

#include "match/sparse/core.hpp"

namespace topoplace::match::sparse {

Canonical::Canonical(const Pattern::Impl& pattern, const Target::Sparse& target, double least, Worth worth,
                     std::span<const std::int32_t> free, std::span<const std::int32_t> required,
                     WorkMeter& meter, double tolerance)
    : pattern_(pattern),
      meter_(meter),
      edges_(target, least, meter),
      search_(pattern, edges_, worth, free, meter, tolerance),
      taken_(required.begin(), required.end()) {
    for (const std::int32_t v : required) {
        possible_ = possible_ && search_.is_usable(v);
        search_.require(v);
    }
    possible_ = possible_ && std::ssize(required) <= pattern.size();
}

bool Canonical::best() {
    try {
        return find();
    } catch (const Stopped&) {  // by a preparation
        return false;
    }
}

bool Canonical::settle() {
    try {
        return break_ties();
    } catch (const Stopped&) {
        return false;
    }
}

bool Canonical::find() {
    const Plan& plan = pattern_.plan(meter_);
    bound_ = search_.bound(plan);
    if (!possible_ || bound_ == kNoScore) return false;
    const bool found = taken_.empty() ? search_.run(plan, Search::Goal::best, kNoScore + 1, bound_)
                                      : anchored(Search::Goal::best, taken_.front(), kNoScore + 1);
    if (!found) return false;
    score_ = search_.score();
    vertices_.assign(search_.found().begin(), search_.found().end());
    const Fixed within = search_.better_than(score_) - 1;
    if (!meter_.stopped()) {
        bound_ = std::min(bound_, within);
    } else if (taken_.empty()) {
        bound_ = std::min(bound_, std::max(within, search_.bound_of_rest()));
    }
    return true;
}

bool Canonical::break_ties() {
    const bool is_connected = needs_of(pattern_).is_connected;
    std::vector<std::int32_t> set = vertices_;
    std::sort(set.begin(), set.end());
    std::vector<std::int32_t> open = is_connected && !taken_.empty() ? near(taken_.front()) : everyone();
    std::vector<std::int32_t> taken = taken_;
    for (std::size_t next = 0; std::ssize(taken) < pattern_.size() && !meter_.stopped();) {
        TOPOPLACE_ASSERT(next < open.size());
        const std::int32_t v = open[next++];
        if (!search_.is_usable(v) || std::find(taken.begin(), taken.end(), v) != taken.end()) continue;
        search_.require(v);
        if (!std::binary_search(set.begin(), set.end(), v)) {
            if (!anchored(Search::Goal::any, v, score_)) {
                search_.release();
                search_.forbid(v);
                continue;
            }
            set.assign(search_.found().begin(), search_.found().end());
            std::sort(set.begin(), set.end());
        }
        taken.push_back(v);
        if (taken.size() == 1 && is_connected) {
            open = near(v);
            next = 0;
        }
    }
    if (meter_.stopped()) return false;
    if (!search_.run(pattern_.natural(meter_), Search::Goal::first, score_, score_)) return false;
    vertices_.assign(search_.found().begin(), search_.found().end());
    return true;
}

// One search for each kind of pattern vertex that v may serve as.
bool Canonical::anchored(Search::Goal goal, std::int32_t v, Fixed floor) {
    bool found = false;
    for (const std::int32_t u : pattern_.representatives(meter_)) {
        const bool better = search_.run(pattern_.rooted(u, meter_), goal, floor, bound_, v);
        found = found || better;
        if (better && goal == Search::Goal::best) floor = search_.better_than(search_.score());
        if ((better && goal == Search::Goal::any) || floor > bound_ || meter_.stopped()) break;
    }
    return found;
}

std::vector<std::int32_t> Canonical::everyone() const {
    std::vector<std::int32_t> usable;
    for (std::int32_t v = 0; v < edges_.num_vertices(); ++v) {
        if (search_.is_usable(v)) usable.push_back(v);
    }
    return usable;
}

// Ascending: the usable vertices that a connected pattern with a vertex on v can reach.
std::vector<std::int32_t> Canonical::near(std::int32_t v) const {
    std::vector<bool> seen(index(edges_.num_vertices()));
    std::vector<std::int32_t> found{v};
    seen[index(v)] = true;
    const std::int32_t steps = diameter(pattern_);
    std::size_t begin = 0;
    for (std::int32_t step = 0; step < steps; ++step) {
        const std::size_t end = found.size();
        for (; begin < end; ++begin) {
            meter_.pass_time(16 * index(edges_.degree(found[begin])));
            edges_.each_neighbor(found[begin], [&](std::int32_t u) {
                if (seen[index(u)] || !search_.is_usable(u)) return;
                seen[index(u)] = true;
                found.push_back(u);
            });
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace topoplace::match::sparse
