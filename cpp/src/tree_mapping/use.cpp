// GB and rooms of the domains that a mapping uses.
#include "tree_mapping/use.hpp"

#include <algorithm>

namespace topoplace::tree_mapping {
namespace {

constexpr double kRounding = 1 + 1e-9;

}  // namespace

Use::Use(const Problem& problem, const std::vector<Index>& leaf_of)
    : amounts_(at(problem.depth) + 2, 0.0), sizes_(2 * at(problem.depth) + 1, 0) {
    count(problem, leaf_of);
    measure(problem, leaf_of);
}

void Use::count(const Problem& problem, const std::vector<Index>& leaf_of) {
    std::vector<std::uint8_t> is_used(problem.parent.size(), 0);
    for (Index depth = problem.depth; depth > 0; --depth) {
        const auto& domains = problem.above[at(depth)];
        std::int64_t& number = depth == problem.depth ? sizes_[0] : sizes_[2 * at(depth) - 1];
        for (const Index leaf : leaf_of) {
            auto& is_known = is_used[at(domains[at(leaf)])];
            if (is_known != 0) continue;
            is_known = 1;
            ++number;
            if (const Index domain = domains[at(leaf)]; problem.port_of[at(domain)] >= 0)
                amounts_.back() += problem.busy[at(domain)];
        }
        for (Index leaf = 0; leaf < problem.leaves; ++leaf) {
            if (is_used[at(domains[at(leaf)])] != 0) sizes_[2 * at(depth)] += problem.room[at(leaf)];
        }
    }
}

void Use::measure(const Problem& problem, const std::vector<Index>& leaf_of) {
    for (std::size_t edge = 0; edge < problem.from.size(); ++edge) {
        const Index here = leaf_of[at(problem.from[edge])], there = leaf_of[at(problem.to[edge])];
        for (Index depth = problem.meeting(here, there) + 1; depth <= problem.depth; ++depth) {
            for (const Index leaf : {here, there}) {
                if (problem.port_of[at(problem.above[at(depth)][at(leaf)])] >= 0)
                    amounts_[at(depth)] += problem.half(edge);
            }
        }
    }
}

bool Use::is_fuller_than(const Use& other) const {
    const auto is_no_more = [](double one, double most) { return one <= most * kRounding; };
    const bool is_idler = sizes_ == other.sizes_ && amounts_.back() * kRounding < other.amounts_.back();
    return (sizes_ < other.sizes_ || is_idler) && std::ranges::equal(amounts_, other.amounts_, is_no_more);
}

}  // namespace topoplace::tree_mapping
