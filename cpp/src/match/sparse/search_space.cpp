// Which vertices are still worth asking for.
#include "match/sparse/search_space.hpp"

#include "match/sparse/core.hpp"

namespace topoplace::match::sparse {

SearchSpace::SearchSpace(const Pattern::Impl& pattern, WorkMeter& meter, const Target::Sparse& target,
                         double least, Worth worth, std::span<const std::int32_t> free,
                         std::span<const std::int32_t> required, double tolerance)
    : pattern_(pattern),
      meter_(meter),
      edges_(target, least, meter),
      search_(pattern, edges_, worth, free, meter, tolerance) {
    for (const std::int32_t v : required) {
        is_possible_ = is_possible_ && search_.is_usable(v);
        search_.require(v);
    }
    is_possible_ = is_possible_ && std::ssize(required) <= pattern.size() && !meter.stopped();
}

SearchSpace::Set SearchSpace::set_of(std::span<const std::int32_t> vertices) {
    Set set{.members = {vertices.begin(), vertices.end()}};
    std::sort(set.members.begin(), set.members.end());
    return set;
}

void SearchSpace::start_ties() {
    may_narrow_ = needs_of(pattern_).is_connected;
    if (!may_narrow_ || search_.required().empty()) open_ = everyone();
}

std::int32_t SearchSpace::next_open(Fixed) {
    if (may_narrow_ && !search_.required().empty()) {
        open_ = near(search_.required().front());
        next_ = 0;
        may_narrow_ = false;
    }
    for (;;) {
        TOPOPLACE_ASSERT(next_ < open_.size());
        const std::int32_t v = open_[next_++];
        if (search_.is_usable(v) && !search_.is_required(v)) return v;
    }
}

std::vector<std::int32_t> SearchSpace::everyone() const {
    std::vector<std::int32_t> usable;
    for (std::int32_t v = 0; v < edges_.num_vertices(); ++v) {
        if (search_.is_usable(v)) usable.push_back(v);
    }
    return usable;
}

// Ascending: the usable vertices that a connected pattern with a vertex on v can reach.
std::vector<std::int32_t> SearchSpace::near(std::int32_t v) const {
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
