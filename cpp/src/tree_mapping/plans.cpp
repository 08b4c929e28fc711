// Plans of filling the tree from the top down.
#include "tree_mapping/plans.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace topoplace::tree_mapping {
namespace {

constexpr std::uint64_t kStepsPerDomain = 250;  // of `WorkMeter`, each a fifth of a nanosecond

// What the domains above the leaves take: multiples of `step`, at most `limit`; leaves take multiples of
// `leaf_step`.
struct Rule {
    Index leaf_step = 1;
    Index step = 1;
    Index limit = std::numeric_limits<Index>::max();
    bool idle_first = false;  // domains whose uplinks others use the least come first
};

class Filler {
  public:
    Filler(const Problem& problem, const Rule& rule)
        : problem_(problem),
          idle_first_(rule.idle_first),
          takes_(problem.parent.size(), 0),
          rooms_(problem.parent.size(), 0) {
        std::vector<Index> depth_of(problem.parent.size(), 0);
        for (std::size_t i = 1; i < depth_of.size(); ++i) depth_of[i] = depth_of[at(problem.parent[i])] + 1;
        for (std::size_t i = takes_.size(); i-- > 0;) {
            const Index leaf = problem.leaf_of_domain[i];
            if (leaf >= 0) takes_[i] = problem.room[at(leaf)] / rule.leaf_step * rule.leaf_step;
            if (leaf >= 0) rooms_[i] = problem.room[at(leaf)];
            if (depth_of[i] + 1 == problem.depth) limit(takes_[i], rule);
            takes_[i] = std::min(takes_[i], static_cast<std::int64_t>(problem.items));
            if (i > 0) takes_[at(problem.parent[i])] += takes_[i];
            if (i > 0) rooms_[at(problem.parent[i])] += rooms_[i];
        }
    }

    bool is_limited() const { return is_limited_; }
    bool has_room() const { return takes_[0] >= problem_.items; }

    Plan plan() {
        Plan plan;
        fill(0, problem_.items, plan);
        return plan;
    }

  private:
    void limit(std::int64_t& takes, const Rule& rule) {
        takes = takes / rule.step * rule.step;
        if (takes > rule.limit) {
            takes = rule.limit;
            is_limited_ = true;
        }
    }

    // Those that take the most first; of equal ones the fullest, then those whose uplinks others use the
    // least.
    std::vector<Index> sorted(std::vector<Index> children) const {
        const auto key = [&](Index one) {
            const double busy = problem_.busy[at(one)];
            return std::tuple(idle_first_ ? busy : 0.0, -takes_[at(one)], rooms_[at(one)], busy);
        };
        std::ranges::stable_sort(children, {}, key);
        return children;
    }

    // The first of the smallest children from number i on that have room for so many, among equally idle ones
    // if these come first.
    std::size_t smallest(const std::vector<Index>& children, std::size_t i, std::int64_t count) const {
        const auto busy = [&](std::size_t one) {
            return idle_first_ ? problem_.busy[at(children[one])] : 0.0;
        };
        const auto takes = [&](std::size_t one) { return takes_[at(children[one])]; };
        std::size_t chosen = i;
        while (chosen + 1 < children.size() && takes(chosen + 1) >= count && busy(chosen + 1) == busy(i))
            ++chosen;
        while (chosen > i && takes(chosen - 1) == takes(chosen)) --chosen;
        return chosen;
    }

    void fill(Index domain, std::int64_t count, Plan& plan) {
        if (const Index leaf = problem_.leaf_of_domain[at(domain)]; leaf >= 0) {
            plan.insert(plan.end(), static_cast<std::size_t>(count), leaf);
            return;
        }
        const std::vector<Index> children = sorted(problem_.children[at(domain)]);
        for (std::size_t i = 0; count > 0 && i < children.size(); ++i) {
            const bool suffices = takes_[at(children[i])] >= count;
            const std::size_t chosen = suffices ? smallest(children, i, count) : i;
            const std::int64_t part = std::min(count, takes_[at(children[chosen])]);
            fill(children[chosen], part, plan);
            count -= part;
        }
    }

    const Problem& problem_;
    bool idle_first_;
    std::vector<std::int64_t> takes_;
    std::vector<std::int64_t> rooms_;  // of each domain, whether or not the items need it
    bool is_limited_ = false;
};

std::vector<Rule> rules_of(const Problem& problem) {
    const Index most = std::clamp(*std::ranges::max_element(problem.room), Index{1}, Index{8});
    std::vector<Rule> rules;
    for (const Index limit : {std::numeric_limits<Index>::max(), Index{8}, Index{16}, Index{4}, Index{2}}) {
        for (Index leaf_step = 1; leaf_step <= most; ++leaf_step) {
            for (const Index step : {1, 2, 4, 8, 16}) {
                if (step > limit) continue;
                rules.push_back({leaf_step, step, limit});
                if (!problem.others.empty()) rules.push_back({leaf_step, step, limit, true});
            }
        }
    }
    return rules;
}

}  // namespace

std::vector<Plan> plans_of(const Problem& problem, std::size_t most, WorkMeter& meter) {
    std::vector<Plan> plans;
    std::set<Plan> known;
    for (const Rule& rule : rules_of(problem)) {
        if (!plans.empty() && meter.spend(kStepsPerDomain * problem.parent.size())) break;
        Filler filler(problem, rule);
        const bool is_new = rule.limit == std::numeric_limits<Index>::max() || filler.is_limited();
        if (!is_new || !filler.has_room()) continue;
        Plan plan = filler.plan();
        if (known.insert(plan).second) plans.push_back(std::move(plan));
        if (plans.size() >= most) break;
    }
    return plans;
}

}  // namespace topoplace::tree_mapping
