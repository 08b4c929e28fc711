// Group repacking by branch and bound. Without the rule that a group is inside one
// domain, the fewest moves are a minimum-cost flow (moves_flow.hpp). Where the flow puts a group into several
// domains, the search tries the domains of the group's depth one by one; the flow that keeps to the decision
// bounds each branch.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "groups/domains.hpp"
#include "groups/group_kinds.hpp"
#include "groups/homes.hpp"
#include "groups/moves_flow.hpp"
#include "groups/wrong.hpp"
#include "topoplace/group_repacking.hpp"

namespace topoplace::groups {
namespace {

class Repacking {
  public:
    Repacking(const RepackParams& params, const Domains& domains, const GroupKinds& kinds)
        : problem_(params.problem),
          kept_(sorted(params.kept)),
          domains_(domains),
          meter_(params.problem.stop),
          homes_(params.problem, domains, kinds),
          flow_(params.problem, kept_, domains, homes_),
          kept_in_(params.problem.parent.size(), 0) {
        for (const Share& share : kept_) {
            for (std::int32_t at = share.leaf; at != kAbsent; at = domains_.parent(at)) {
                kept_in_[index(at)] += share.tasks;
            }
        }
    }

    RepackResult run() {
        RepackResult result;
        const auto root = flow_.solve(meter_);
        PackResult any;
        if (root ? divided(root->shares) != kAbsent : is_stopped()) {
            any = any_packing();
            if (!any.found && any.complete) return result;
        }
        if (root) search(*root);
        if (!best_ && any.found) best_ = {flow_.cost_of(any.shares), any.shares};
        result.complete = !is_stopped();
        result.nodes = meter_.nodes();
        result.found = best_.has_value();
        if (best_) {
            result.shares = best_->shares;
            result.moved = flow_.moves(best_->cost);
        }
        result.bound = result.complete ? result.moved : root ? flow_.moves(root->cost) : 0;
        return result;
    }

  private:
    static constexpr std::uint64_t kNodesForAny = 1U << 14;
    static constexpr std::chrono::milliseconds kForAny{20};
    static constexpr std::uint64_t kStepsPerGroup = 8;  // of `WorkMeter`, each a fifth of a nanosecond

    PackResult any_packing() const {
        PackParams params = problem_;
        params.stop.max_nodes = std::min(params.stop.max_nodes, kNodesForAny);
        // Late by so much rather than without any repair.
        params.stop.when = std::max(params.stop.when, std::chrono::steady_clock::now() + kForAny);
        return pack_groups(params);
    }

    static std::vector<Share> sorted(std::span<const Share> kept) {
        std::vector<Share> shares(kept.begin(), kept.end());
        std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
            return std::pair(a.group, a.leaf) < std::pair(b.group, b.leaf);
        });
        return shares;
    }

    bool is_stopped() const { return meter_.stopped() || flow_.was_stopped(); }

    bool moves_less(const Relaxed& node) const {
        return !best_ || flow_.moves(node.cost) < flow_.moves(best_->cost);
    }

    void search(const Relaxed& node) {
        const std::int32_t group = divided(node.shares);
        if (group == kAbsent) {
            best_ = node;
            return;
        }
        for (const std::int32_t domain : candidates(group, node)) {
            if (best_) meter_.look_at_clock();  // a small flow ends before it reads the clock
            if (is_stopped()) return;
            homes_.decide(group, domain);
            const auto below = flow_.solve(meter_);
            if (below && moves_less(*below)) search(*below);
            homes_.undo(group);
            if (!moves_less(node)) return;
        }
    }

    // The outermost group that is in several domains, of those the one with the most tasks; kAbsent for none.
    std::int32_t divided(std::span<const Share> shares) const {
        std::vector<std::int32_t> seen(index(homes_.num_groups()), kAbsent);
        std::int32_t found = kAbsent;
        const auto rank = [&](std::int32_t group) {
            return std::tuple(homes_.depth(group), -homes_.tasks_of(group), group);
        };
        for (const Share& share : shares) {
            for (std::int32_t group = share.group; group != kAbsent; group = homes_.around(group)) {
                const std::int32_t here = domains_.at_depth(share.leaf, homes_.depth(group));
                if (seen[index(group)] == kAbsent) seen[index(group)] = here;
                const bool is_divided = seen[index(group)] != here;
                if (is_divided && (found == kAbsent || rank(group) < rank(found))) found = group;
            }
        }
        return found;
    }

    // The domains in which a group may be; first those with the fewest tasks of the group to move in, and of
    // others to move out. Of domains that are alike and not used, one.
    std::vector<std::int32_t> candidates(std::int32_t group, const Relaxed& node) {
        const auto moves = moves_into(group, node);
        std::map<Signature, std::int32_t> alike;
        std::vector<std::tuple<std::int64_t, std::int32_t, std::int32_t>> order;
        for (std::int32_t domain = 0; domain < domains_.size(); ++domain) {
            if (domains_.depth(domain) != homes_.depth(group)) continue;
            if (meter_.is_late_after(index(homes_.num_groups()) * kStepsPerGroup)) return {};
            if (!homes_.may_decide(group, domain)) continue;
            if (!is_used(domain) && !alike.try_emplace(signature(domain, homes_.home(group)), domain).second)
                continue;
            order.push_back({moves[index(domain)], domains_.capacity(domain), domain});
        }
        std::sort(order.begin(), order.end());
        std::vector<std::int32_t> found;
        for (const auto& one : order) found.push_back(std::get<2>(one));
        return found;
    }

    // For each domain of the group's depth, about how many moves it takes to have the group there.
    std::vector<std::int64_t> moves_into(std::int32_t group, const Relaxed& node) const {
        std::vector<std::int64_t> others(kept_in_.size(), 0), stay(kept_in_.size(), 0);
        for (const Share& share : node.shares) {
            if (!homes_.is_part(share.group, group))
                others[index(domains_.at_depth(share.leaf, homes_.depth(group)))] += share.tasks;
        }
        for (const Share& share : kept_) {
            if (homes_.is_part(share.group, group))
                stay[index(domains_.at_depth(share.leaf, homes_.depth(group)))] += share.tasks;
        }
        std::vector<std::int64_t> moves(kept_in_.size(), 0);
        for (std::int32_t domain = 0; domain < domains_.size(); ++domain) {
            const std::int64_t room = domains_.capacity(domain) - others[index(domain)];
            moves[index(domain)] =
                std::max<std::int64_t>(0, homes_.tasks_of(group) - room) - stay[index(domain)];
        }
        return moves;
    }

    bool is_used(std::int32_t domain) const {
        return kept_in_[index(domain)] > 0 || homes_.decided_in(domain) > 0;
    }

    // Equal for domains between which nothing inside `around` can tell a difference: kinds from the domain up
    // to the last one around it that is not used either, and where that is.
    using Signature = std::tuple<std::int32_t, std::vector<std::int32_t>>;
    Signature signature(std::int32_t domain, std::int32_t around) const {
        std::vector<std::int32_t> kinds{domains_.kind(domain)};
        while (domain != around && !is_used(domains_.parent(domain))) {
            domain = domains_.parent(domain);
            kinds.push_back(domains_.kind(domain));
        }
        return {domains_.parent(domain), std::move(kinds)};
    }

    const PackParams& problem_;
    std::vector<Share> kept_;
    const Domains& domains_;
    WorkMeter meter_;
    Homes homes_;
    MovesFlow flow_;
    std::vector<std::int64_t> kept_in_;  // of each domain: the tasks that are there
    std::optional<Relaxed> best_{};
};

}  // namespace

Fault check(const RepackParams& params) {
    const PackParams& problem = params.problem;
    if (problem.balanced != -1) return "balanced = " + std::to_string(problem.balanced) + ": must be -1";
    if (auto fault = check(problem)) return fault;
    std::vector<bool> is_leaf(problem.parent.size(), true);
    for (const std::int32_t parent : problem.parent.subspan(1)) is_leaf[index(parent)] = false;
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> known;
    std::vector<std::int64_t> sum(problem.own_tasks.size(), 0);
    for (std::size_t i = 0; i < params.kept.size(); ++i) {
        const Share& share = params.kept[i];
        if (share.group < 0 || index(share.group) >= sum.size())
            return wrong("kept", i, share.group, "must be a group");
        if (share.leaf < 0 || index(share.leaf) >= is_leaf.size() || !is_leaf[index(share.leaf)])
            return wrong("kept", i, share.leaf, "must be a leaf");
        if (share.tasks <= 0) return wrong("kept", i, share.tasks, "must be at least one task");
        if (!known.try_emplace({share.group, share.leaf}, i).second)
            return wrong("kept", i, share.leaf, "the group has this leaf twice");
        sum[index(share.group)] += share.tasks;
        if (sum[index(share.group)] > problem.own_tasks[index(share.group)])
            return wrong("kept", i, share.tasks, "more tasks than the group has");
    }
    return std::nullopt;
}

RepackResult repack_groups(const RepackParams& params) {
    TOPOPLACE_ASSERT(!check(params));
    const Domains domains(params.problem.parent, params.problem.room);
    const GroupKinds kinds(params.problem);
    return Repacking(params, domains, kinds).run();
}

}  // namespace topoplace::groups
