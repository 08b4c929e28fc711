// Plans of filling the tree from the top down.
#include "tree_mapping/plans.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "tree_mapping/least_sum.hpp"

namespace topoplace::tree_mapping {
namespace {

constexpr std::uint64_t kStepsPerDomain = 250;  // of `WorkMeter`, each a fifth of a nanosecond
constexpr Index kNoLimit = std::numeric_limits<Index>::max();
constexpr Index kMostOnLeaves = 8;  // of what leaves take at least

// What the domains above the leaves take: multiples of `step`, at most `limit`; leaves take multiples of
// `leaf_step`, at least `least` and at most `most`.
struct Rule {
    Index leaf_step = 1;
    Index step = 1;
    Index limit = kNoLimit;
    bool idle_first = false;     // domains whose uplinks others use the least come first
    bool largest_first = false;  // to the last one, which often has the fastest uplink
    Index least = 1;
    Index most = kNoLimit;
};

struct Part {
    Index domain = 0;
    std::int64_t count = 0;  // of items
};

class Filler {
  public:
    Filler(const Problem& problem, const Rule& rule)
        : problem_(problem), rule_(rule), takes_(problem.parent.size(), 0), rooms_(problem.parent.size(), 0) {
        depth_of_.assign(problem.parent.size(), 0);
        for (std::size_t i = 1; i < depth_of_.size(); ++i)
            depth_of_[i] = depth_of_[at(problem.parent[i])] + 1;
        for (std::size_t i = takes_.size(); i-- > 0;) {
            const Index leaf = problem.leaf_of_domain[i];
            if (leaf >= 0) takes_[i] = taken_by(leaf);
            if (leaf >= 0) rooms_[i] = problem.room[at(leaf)];
            if (depth_of_[i] + 1 == problem.depth) limit(takes_[i]);
            takes_[i] = std::min(takes_[i], static_cast<std::int64_t>(problem.items));
            if (i > 0) takes_[at(problem.parent[i])] += takes_[i];
            if (i > 0) rooms_[at(problem.parent[i])] += rooms_[i];
        }
    }

    bool is_limited() const { return is_limited_; }

    // Of each depth from that of leaves up, the domain with the least room of those that take all items. If
    // idle ones come first, that of the idlest.
    std::vector<Index> tops() const {
        std::vector<Index> found(at(problem_.depth) + 1, -1);
        for (Index one = 0; one < static_cast<Index>(takes_.size()); ++one) {
            Index& top = found[at(problem_.depth - depth_of_[at(one)])];
            if (takes_[at(one)] >= problem_.items && (top < 0 || is_tighter(one, top))) top = one;
        }
        std::erase(found, -1);
        return found;
    }

    // All items in one domain; none if the rule does not allow it.
    std::optional<Plan> inside(Index top) {
        Plan plan;
        fill({top, problem_.items}, plan);
        return checked(std::move(plan));
    }

    // All items in few domains of one depth, whatever the domains above.
    std::optional<Plan> across(Index depth) {
        std::vector<Index> domains;
        for (Index one = 0; one < static_cast<Index>(takes_.size()); ++one) {
            if (depth_of_[at(one)] == depth) domains.push_back(one);
        }
        std::vector<Part> parts = parts_of(std::move(domains), problem_.items);
        std::ranges::sort(parts, {}, &Part::domain);
        Plan plan;
        for (const Part& part : parts) fill(part, plan);
        return checked(std::move(plan));
    }

    void fill(const Part& whole, Plan& plan) {
        if (const Index leaf = problem_.leaf_of_domain[at(whole.domain)]; leaf >= 0) {
            plan.insert(plan.end(), static_cast<std::size_t>(whole.count), leaf);
            return;
        }
        for (const Part& part : parts_of(problem_.children[at(whole.domain)], whole.count)) fill(part, plan);
    }

  private:
    std::int64_t taken_by(Index leaf) const {
        const Index room = std::min(problem_.room[at(leaf)], rule_.most);
        return room < rule_.least ? 0 : room / rule_.leaf_step * rule_.leaf_step;
    }

    void limit(std::int64_t& takes) {
        takes = takes / rule_.step * rule_.step;
        if (takes > rule_.limit) {
            takes = rule_.limit;
            is_limited_ = true;
        }
    }

    // Of two domains of one depth: the idlest if these come first, then the one with the least room, or below
    // such a one, then the one whose uplink others use the least, or below such a one.
    bool is_tighter(Index one, Index other) const {
        if (busy(one) != busy(other)) return busy(one) < busy(other);
        const auto [fuller, looser] = differing(one, other, rooms_);
        if (fuller != looser) return rooms_[at(fuller)] < rooms_[at(looser)];
        const auto [idle, busier] = differing(one, other, problem_.busy);
        return problem_.busy[at(idle)] < problem_.busy[at(busier)];
    }

    // The lowest domains with different values that have one of the two each; twice the same if there are
    // none.
    template <class Value>
    std::pair<Index, Index> differing(Index one, Index other, const std::vector<Value>& values) const {
        while (one != other && values[at(one)] == values[at(other)]) {
            one = problem_.parent[at(one)];
            other = problem_.parent[at(other)];
        }
        return {one, other};
    }

    double busy(Index domain) const { return rule_.idle_first ? problem_.busy[at(domain)] : 0.0; }

    // Those that take the most first; of equal ones the fullest, then those whose uplinks others use the
    // least.
    std::vector<Index> sorted(std::vector<Index> domains) const {
        const auto key = [&](Index one) {
            return std::tuple(busy(one), -takes_[at(one)], rooms_[at(one)], problem_.busy[at(one)]);
        };
        std::erase_if(domains, [&](Index one) { return takes_[at(one)] == 0; });
        std::ranges::stable_sort(domains, {}, key);
        return domains;
    }

    // The first of the smallest domains from number i on that take so many, among equally idle ones if these
    // come first.
    std::size_t smallest(const std::vector<Index>& domains, std::size_t i, std::int64_t count) const {
        const auto takes = [&](std::size_t one) { return takes_[at(domains[one])]; };
        std::size_t chosen = i;
        while (chosen + 1 < domains.size() && takes(chosen + 1) >= count &&
               busy(domains[chosen + 1]) == busy(domains[i])) {
            ++chosen;
        }
        while (chosen > i && takes(chosen - 1) == takes(chosen)) --chosen;
        return chosen;
    }

    // The first domains, and at last the smallest that suffices: the fewest, but not always the fullest.
    std::vector<Index> greedily(const std::vector<Index>& domains, std::int64_t count) const {
        std::vector<Index> found;
        for (std::size_t i = 0; count > 0 && i < domains.size(); ++i) {
            const bool suffices = !rule_.largest_first && takes_[at(domains[i])] >= count;
            found.push_back(domains[suffices ? smallest(domains, i, count) : i]);
            count -= std::min(count, takes_[at(found.back())]);
        }
        return found;
    }

    // As many, with less room together, if there are such.
    std::vector<Index> fullest(const std::vector<Index>& domains, std::vector<Index> found,
                               std::int64_t count) const {
        std::int64_t sum = 0;
        for (const Index one : found) sum += takes_[at(one)];
        if (found.size() < 2 || sum == count || rule_.idle_first || rule_.largest_first) return found;
        std::vector<std::int64_t> values;
        for (const Index one : domains) values.push_back(takes_[at(one)]);
        const std::vector<std::size_t> places = least_sum(values, found.size(), count, sum);
        for (std::size_t i = 0; i < places.size(); ++i) found[i] = domains[places[i]];
        return found;
    }

    // Full domains, and the last one takes the rest.
    std::vector<Part> parts_of(std::vector<Index> domains, std::int64_t count) const {
        domains = sorted(std::move(domains));
        std::vector<Part> parts;
        for (const Index one : fullest(domains, greedily(domains, count), count)) {
            parts.push_back({one, std::min(count, takes_[at(one)])});
            count -= parts.back().count;
        }
        return parts;
    }

    // The plan with as many items on each leaf as the rule wants at least; none if there are too few.
    std::optional<Plan> checked(Plan plan) const {
        if (rule_.least <= 1) return plan;
        std::vector<Part> parts = runs_of(plan);
        std::size_t givers = parts.size();  // those after them have nothing to spare
        for (Part& part : parts) {
            while (part.count < rule_.least && givers > 0) {
                give(parts[givers - 1], part);
                if (part.count < rule_.least) --givers;
            }
            if (part.count < rule_.least) return std::nullopt;
        }
        plan.clear();
        for (const Part& part : parts)
            plan.insert(plan.end(), static_cast<std::size_t>(part.count), part.domain);
        return plan;
    }

    // As many as one leaf can spare, and the other lacks.
    void give(Part& from, Part& to) const {
        const std::int64_t spare = std::max<std::int64_t>(0, from.count - rule_.least);
        const std::int64_t given = std::min(spare, std::max<std::int64_t>(0, rule_.least - to.count));
        from.count -= given;
        to.count += given;
    }

    static std::vector<Part> runs_of(const Plan& plan) {
        std::vector<Part> runs;
        for (const Index leaf : plan) {
            if (runs.empty() || runs.back().domain != leaf) runs.push_back({leaf, 0});
            ++runs.back().count;
        }
        return runs;
    }

    const Problem& problem_;
    Rule rule_;
    std::vector<Index> depth_of_;
    std::vector<std::int64_t> takes_;
    std::vector<std::int64_t> rooms_;  // of each domain, whether or not the items need it
    bool is_limited_ = false;
};

// Each rule, and the same with idle uplinks first.
std::vector<Rule> with_idle_first(const std::vector<Rule>& rules) {
    std::vector<Rule> all;
    for (Rule rule : rules) {
        all.push_back(rule);
        rule.idle_first = true;
        if (!rule.largest_first) all.push_back(rule);
    }
    return all;
}

// What leaves and domains take at once, for one limit.
void add_steps(Index limit, Index on_leaf, std::vector<Rule>& rules) {
    for (const Index step : {1, 2, 4, 8, 16}) {
        if (step <= limit) rules.push_back({.leaf_step = on_leaf, .step = step, .limit = limit});
    }
}

std::vector<Rule> rules_of(const Problem& problem) {
    const Index most = std::clamp(*std::ranges::max_element(problem.room), Index{1}, kMostOnLeaves);
    std::vector<Rule> rules{{}, {.largest_first = true}};
    for (Index on_leaf = 1; on_leaf <= most; ++on_leaf) {
        add_steps(kNoLimit, on_leaf, rules);
        rules.push_back({.least = on_leaf});
        rules.push_back({.least = on_leaf, .most = on_leaf});
    }
    for (const Index limit : {8, 16, 4, 2}) {
        for (Index on_leaf = 1; on_leaf <= most; ++on_leaf) add_steps(limit, on_leaf, rules);
    }
    if (problem.others.empty()) return rules;
    return with_idle_first(rules);
}

class PlanCollector {
  public:
    PlanCollector(const Problem& problem, std::size_t most, WorkMeter& meter)
        : problem_(problem), most_(most), meter_(meter) {}

    void add(const Rule& rule) {
        Filler filler(problem_, rule);
        if (rule.limit != kNoLimit && !filler.is_limited()) return;  // known without a limit
        const std::vector<Index> tops = filler.tops();
        for (const Index top : tops) keep([&] { return filler.inside(top); });
        if (tops.empty() || !is_plain(rule)) return;
        for (Index depth = 2; depth <= problem_.depth; ++depth) keep([&] { return filler.across(depth); });
    }

    bool is_full() { return found_.size() >= most_ || (!found_.empty() && spend()); }
    std::vector<Plan> take() { return std::move(found_); }

  private:
    bool spend() { return meter_.spend(kStepsPerDomain * problem_.parent.size()); }
    static bool is_plain(const Rule& rule) {
        return rule.leaf_step == 1 && rule.step == 1 && rule.limit == kNoLimit;
    }
    template <class Make>
    void keep(const Make& make) {
        if (is_full()) return;
        std::optional<Plan> plan = make();
        if (plan && known_.insert(*plan).second) found_.push_back(std::move(*plan));
    }

    const Problem& problem_;
    std::size_t most_;
    WorkMeter& meter_;
    std::set<Plan> known_;
    std::vector<Plan> found_;
};

}  // namespace

std::vector<Plan> plans_of(const Problem& problem, std::size_t most, WorkMeter& meter) {
    PlanCollector found(problem, most, meter);
    for (const Rule& rule : rules_of(problem)) {
        if (found.is_full()) break;
        found.add(rule);
    }
    return found.take();
}

Plan compacted(const Problem& problem, const std::vector<Index>& leaf_of) {
    const auto& domains = problem.above[at(std::max(0, problem.depth - 1))];
    std::vector<std::int64_t> counts(problem.parent.size(), 0);
    for (const Index leaf : leaf_of) ++counts[at(domains[at(leaf)])];
    Filler filler(problem, {});
    Plan plan;
    for (Index one = 0; one < static_cast<Index>(counts.size()); ++one) {
        if (counts[at(one)] > 0) filler.fill({one, counts[at(one)]}, plan);
    }
    return plan;
}

}  // namespace topoplace::tree_mapping
