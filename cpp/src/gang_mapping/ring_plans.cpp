// Fills domains from the top down, then takes items from the fullest ones for those that have too few.
#include "gang_mapping/ring_plans.hpp"

#include <algorithm>
#include <tuple>

#include "graph/index.hpp"

namespace topoplace::gang_mapping {
namespace {

using tree_mapping::Problem;

class RingFiller {
  public:
    RingFiller(const Problem& problem, const std::vector<Index>& room, Index depth, Index least)
        : problem_(problem), least_(least), depth_of_(problem.parent.size(), 0), ring_depth_(depth) {
        takes_.assign(problem.parent.size(), 0);
        for (std::size_t i = 1; i < depth_of_.size(); ++i) {
            depth_of_[i] = depth_of_[index(problem.parent[i])] + 1;
        }
        for (std::size_t i = takes_.size(); i-- > 0;) {
            const Index leaf = problem.leaf_of_domain[i];
            if (leaf >= 0) takes_[i] = room[index(leaf)];
            if (depth_of_[i] == depth && takes_[i] < least) takes_[i] = 0;
            if (i > 0) takes_[index(problem.parent[i])] += takes_[i];
        }
    }

    Plan plan() {
        if (takes_[0] < problem_.items) return {};
        fill(0, problem_.items);
        if (!spread()) return {};
        Plan plan;
        for (const auto& [domain, count] : chosen_) fill_leaves(domain, count, plan);
        return plan;
    }

  private:
    struct Part {
        Index domain = 0;
        std::int64_t count = 0;
    };

    // The largest first; of equal ones the one with the least room besides.
    std::vector<Index> sorted(const std::vector<Index>& children) const {
        std::vector<Index> found(children);
        std::ranges::stable_sort(found, {}, [&](Index one) { return -takes_[index(one)]; });
        return found;
    }

    // The smallest child that has room for so many, from number i on, or that one.
    std::size_t tightest(const std::vector<Index>& children, std::size_t i, std::int64_t count) const {
        std::size_t chosen = i;
        while (chosen + 1 < children.size() && takes_[index(children[chosen + 1])] >= count) ++chosen;
        while (chosen > i && takes_[index(children[chosen - 1])] == takes_[index(children[chosen])]) --chosen;
        return chosen;
    }

    template <class Take>
    void divide(Index domain, std::int64_t count, const Take& take) const {
        std::vector<Index> children = sorted(problem_.children[index(domain)]);
        for (std::size_t i = 0; count > 0 && i < children.size(); ++i) {
            const std::size_t chosen = takes_[index(children[i])] >= count ? tightest(children, i, count) : i;
            const std::int64_t part = std::min(count, takes_[index(children[chosen])]);
            if (part > 0) take(children[chosen], part);
            count -= part;
        }
    }

    void fill(Index domain, std::int64_t count) {
        if (depth_of_[index(domain)] == ring_depth_) {
            chosen_.push_back({domain, count});
            return;
        }
        divide(domain, count, [this](Index child, std::int64_t part) { fill(child, part); });
    }

    // Brings every chosen domain to `least` items; false where there are too few.
    bool spread() {
        for (Part& poor : chosen_) {
            while (poor.count < least_) {
                const auto rich = std::ranges::max_element(chosen_, {}, &Part::count);
                if (rich->count <= least_) return false;
                const std::int64_t part = std::min(rich->count - least_, least_ - poor.count);
                rich->count -= part;
                poor.count += part;
            }
        }
        return true;
    }

    void fill_leaves(Index domain, std::int64_t count, Plan& plan) const {
        if (const Index leaf = problem_.leaf_of_domain[index(domain)]; leaf >= 0) {
            plan.insert(plan.end(), static_cast<std::size_t>(count), leaf);
            return;
        }
        divide(domain, count, [&](Index child, std::int64_t part) { fill_leaves(child, part, plan); });
    }

    const Problem& problem_;
    std::int64_t least_;
    std::vector<Index> depth_of_;
    Index ring_depth_;
    std::vector<std::int64_t> takes_;
    std::vector<Part> chosen_{};
};

}  // namespace

Plan ring_plan(const Problem& problem, const std::vector<Index>& room, Index depth, Index least) {
    return RingFiller(problem, room, depth, least).plan();
}

}  // namespace topoplace::gang_mapping
