// Group repacking by branch and bound. Without the rule that a group is inside one domain, the fewest moves
// are a minimum-cost flow: each group sends its tasks to the leaves, at no cost where they are, at the cost
// of a move elsewhere. Where the flow puts a group into several domains, the search tries the domains of the
// group's depth one by one, first the one in which most of its tasks are; its flow bounds each branch.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "groups/domains.hpp"
#include "groups/group_kinds.hpp"
#include "groups/refusal.hpp"
#include "topoplace/flow.hpp"
#include "topoplace/group_repacking.hpp"

namespace topoplace::groups {
namespace {

using Counts64 = std::vector<std::int64_t>;

// The tasks of one group on one domain.
struct Portion64 {
    std::int32_t group = 0;
    std::int64_t tasks = 0;
};

// What a flow says: the least cost, and the tasks on each leaf.
struct Relaxed {
    std::int64_t cost = 0;
    std::vector<Share> shares{};
};

class Repacking {
  public:
    Repacking(const RepackParams& params, const Domains& domains, const GroupKinds& kinds, WorkMeter& meter)
        : params_(params.problem),
          kept_(params.kept.begin(), params.kept.end()),
          domains_(domains),
          kinds_(kinds),
          meter_(meter),
          home_(params_.group_parent.size(), kAbsent),
          used_(params_.parent.size(), 0),
          num_tasks_(kinds_[kinds_.of(0)].size),
          move_cost_(num_tasks_ + 1) {
        home_[0] = 0;
        for (const Share& share : kept_) note(share.leaf, 1);
        std::sort(kept_.begin(), kept_.end(), [](const Share& a, const Share& b) {
            return std::pair(a.group, a.leaf) < std::pair(b.group, b.leaf);
        });
    }

    RepackResult run() {
        RepackResult result;
        const auto root = relaxed();
        if (root) {
            result.bound = root->cost / move_cost_;
            search(*root);
        }
        result.found = best_.has_value();
        result.complete = !meter_.stopped() && !is_stopped_;
        result.nodes = meter_.nodes();
        if (best_) {
            result.shares = best_->shares;
            result.moved = best_->cost / move_cost_;
            if (result.complete) result.bound = result.moved;
        } else if (result.complete) {
            result.bound = 0;
        }
        return result;
    }

  private:
    std::int32_t num_domains() const { return domains_.size(); }
    std::int32_t size() const { return static_cast<std::int32_t>(home_.size()); }
    std::int32_t depth(std::int32_t group) const { return params_.group_depth[index(group)]; }
    std::int64_t tasks_of(std::int32_t group) const { return kinds_[kinds_.of(group)].size; }
    bool is_inside(std::int32_t domain, std::int32_t around) const {
        return at_depth(domain, domains_.depth(around)) == around;
    }
    std::int32_t at_depth(std::int32_t domain, std::int32_t depth) const {
        while (domains_.depth(domain) > depth) domain = domains_.parent(domain);
        return domain;
    }
    // The group, or the innermost one around it, whose domain is decided.
    std::int32_t decided(std::int32_t group) const {
        while (home_[index(group)] == kAbsent) group = params_.group_parent[index(group)];
        return group;
    }
    // The group, or the outermost one around it, whose domain is not decided; kAbsent if all are.
    std::int32_t undecided(std::int32_t group) const {
        std::int32_t found = kAbsent;
        for (; home_[index(group)] == kAbsent; group = params_.group_parent[index(group)]) found = group;
        return found;
    }
    // True for the group `around` and those inside it.
    bool is_part(std::int32_t group, std::int32_t around) const {
        while (group > around) group = params_.group_parent[index(group)];
        return group == around;
    }
    // Counts what is in a domain and those around it: kept tasks of the job, and decisions.
    void note(std::int32_t domain, std::int32_t sign) {
        for (; domain != kAbsent; domain = domains_.parent(domain)) used_[index(domain)] += sign;
    }

    // The nodes of the flow: each domain twice, on the way down to leaves and on the way up, where its room
    // counts; then the groups, and the sink.
    struct Arcs {
        std::vector<std::int32_t> tail{}, head{};
        Counts64 capacity{}, cost{};

        void add(std::int32_t from, std::int32_t to, std::int64_t most, std::int64_t price) {
            tail.push_back(from);
            head.push_back(to);
            capacity.push_back(most);
            cost.push_back(price);
        }
    };
    std::int32_t up(std::int32_t domain) const { return domain; }
    std::int32_t down(std::int32_t domain) const { return num_domains() + domain; }
    std::int32_t node_of(std::int32_t group) const { return 2 * num_domains() + group; }
    std::int32_t sink() const { return 2 * num_domains() + size(); }

    Arcs arcs_of_domains() const {
        Arcs arcs;
        for (std::int32_t domain = 0; domain < num_domains(); ++domain) {
            const bool is_root = domain == 0;
            arcs.add(up(domain), is_root ? sink() : up(domains_.parent(domain)), domains_.capacity(domain),
                     0);
            // Arc 2 * domain + 1 leads down into the domain; that of the root leads nowhere.
            arcs.add(is_root ? down(0) : down(domains_.parent(domain)), down(domain),
                     is_root ? 0 : num_tasks_, 0);
        }
        for (std::int32_t domain = 0; domain < num_domains(); ++domain) {
            if (domains_.is_leaf(domain)) {
                arcs.add(down(domain), up(domain), num_tasks_, domain_cost(domain));
            }
        }
        return arcs;
    }
    std::int64_t domain_cost(std::int32_t leaf) const { return used_[index(leaf)] > 0 ? 0 : 1; }

    // False if the domains that are decided, or too small for a group, make the tasks move.
    bool may_stay(const Share& share) const {
        for (std::int32_t group = share.group; group != kAbsent; group = params_.group_parent[index(group)]) {
            const std::int32_t here = at_depth(share.leaf, depth(group));
            if (!may_be_in(group, here)) return false;
        }
        return true;
    }

    bool may_be_in(std::int32_t group, std::int32_t domain) const {
        const std::int32_t home = home_[index(group)];
        return home == kAbsent ? domains_.capacity(domain) >= tasks_of(group) : home == domain;
    }

    // The flow under the decisions so far; nothing if there is none, or the search was stopped.
    std::optional<Relaxed> relaxed() {
        if (meter_.visit()) return std::nullopt;
        Arcs arcs = arcs_of_domains();
        const std::size_t first_entry = arcs.tail.size();
        for (std::int32_t group = 0; group < size(); ++group) {
            const std::int32_t entry = home_[index(decided(group))];
            const std::int32_t own = params_.own_tasks[index(group)];
            arcs.add(node_of(group), down(entry), own, move_cost_);
        }
        const std::size_t first_kept = arcs.tail.size();
        for (const Share& share : kept_) {
            arcs.add(node_of(share.group), up(share.leaf), may_stay(share) ? share.tasks : 0, 0);
        }
        Counts64 supply(index(sink()) + 1, 0);
        for (std::int32_t group = 0; group < size(); ++group) {
            supply[index(node_of(group))] = params_.own_tasks[index(group)];
        }
        supply.back() = -num_tasks_;
        const flow::Network network{.num_nodes = sink() + 1,
                                    .tail = arcs.tail,
                                    .head = arcs.head,
                                    .capacity = arcs.capacity,
                                    .cost = arcs.cost,
                                    .supply = supply};
        const flow::FlowResult found = flow::min_cost_flow(network, {.stop = meter_.deadline()});
        if (found.status == flow::Status::timeout) {
            meter_.look_at_clock();
            is_stopped_ = true;
        }
        if (found.status != flow::Status::optimal) return std::nullopt;
        Relaxed relaxed{.cost = static_cast<std::int64_t>(found.cost)};
        for (std::size_t i = 0; i < kept_.size(); ++i) {
            const std::int64_t tasks = found.flow[first_kept + i];
            if (tasks > 0) relaxed.shares.push_back({kept_[i].group, kept_[i].leaf, std::int32_t(tasks)});
        }
        send_down(std::span(found.flow).first(first_entry), std::span(found.flow).subspan(first_entry),
                  relaxed.shares);
        return relaxed;
    }

    // Divides what flows down the tree into groups: as far as it can, an undecided group stays together.
    void send_down(std::span<const std::int64_t> of_domains, std::span<const std::int64_t> of_groups,
                   std::vector<Share>& shares) const {
        std::vector<std::vector<Portion64>> pool(index(num_domains()));
        for (std::int32_t group = 0; group < size(); ++group) {
            if (of_groups[index(group)] > 0) {
                pool[index(home_[index(decided(group))])].push_back({group, of_groups[index(group)]});
            }
        }
        std::vector<Counts64> here(shares_by_domain(shares));
        for (std::int32_t domain = 0; domain < num_domains(); ++domain) {
            auto& moved = pool[index(domain)];
            if (domains_.is_leaf(domain)) {
                for (const Portion64& one : moved) {
                    shares.push_back({one.group, domain, static_cast<std::int32_t>(one.tasks)});
                }
                continue;
            }
            if (moved.empty()) continue;
            Counts64 left;
            const auto children = domains_.children(domain);
            for (const std::int32_t child : children) left.push_back(of_domains[index(2 * child + 1)]);
            deal(moved, children, left, here, pool);
        }
        merge(shares);
    }

    // For each domain, the undecided groups that have tasks there, by number, ascending.
    std::vector<Counts64> shares_by_domain(std::span<const Share> shares) const {
        std::vector<Counts64> here(index(num_domains()));
        for (const Share& share : shares) {
            const std::int32_t outer = undecided(share.group);
            if (outer == kAbsent) continue;
            for (std::int32_t at = share.leaf; at != kAbsent; at = domains_.parent(at)) {
                auto& known = here[index(at)];
                if (known.empty() || known.back() != outer) known.push_back(outer);
            }
        }
        for (auto& known : here) std::sort(known.begin(), known.end());
        return here;
    }

    // First to the children in which the rest of the group is, then the largest groups to the child that they
    // fill best.
    void deal(std::vector<Portion64>& moved, std::span<const std::int32_t> children, Counts64& left,
              const std::vector<Counts64>& here, std::vector<std::vector<Portion64>>& pool) const {
        std::map<std::int32_t, std::vector<Portion64>>
            units;  // by the undecided group; others after all of them
        for (const Portion64& one : moved) {
            const std::int32_t outer = undecided(one.group);
            units[outer == kAbsent ? std::numeric_limits<std::int32_t>::max() : outer].push_back(one);
        }
        std::vector<std::pair<std::int64_t, std::int32_t>> order;  // (tasks, unit)
        for (const auto& [unit, portions] : units) {
            std::int64_t tasks = 0;
            for (const Portion64& one : portions) tasks += one.tasks;
            const bool is_free = unit == std::numeric_limits<std::int32_t>::max();
            order.push_back({is_free ? 0 : -tasks, unit});
        }
        std::sort(order.begin(), order.end());
        for (const bool beside : {true, false}) {
            for (const auto& [tasks, unit] : order) {
                for (Portion64& one : units[unit]) {
                    give(one, unit, beside, children, left, here, pool);
                }
            }
        }
    }

    void give(Portion64& one, std::int32_t unit, bool beside, std::span<const std::int32_t> children,
              Counts64& left, const std::vector<Counts64>& here,
              std::vector<std::vector<Portion64>>& pool) const {
        while (one.tasks > 0) {
            std::optional<std::size_t> chosen;
            for (std::size_t i = 0; i < children.size(); ++i) {
                if (left[i] == 0) continue;
                const auto& known = here[index(children[i])];
                const auto& given = pool[index(children[i])];
                const bool has_some = std::binary_search(known.begin(), known.end(), unit) ||
                                      (!given.empty() && undecided(given.back().group) == unit);
                if (beside && !has_some) continue;
                // The least that suffices, else the most; those with a part of the group first.
                const auto rank = [&](std::size_t at, bool some) {
                    const bool fits = left[at] >= one.tasks;
                    return std::tuple(!some, !fits, fits ? left[at] : -left[at]);
                };
                if (!chosen || rank(i, has_some) < rank(*chosen, false)) chosen = i;
            }
            if (!chosen) return;
            const std::int64_t tasks = std::min(one.tasks, left[*chosen]);
            left[*chosen] -= tasks;
            one.tasks -= tasks;
            pool[index(children[*chosen])].push_back({one.group, tasks});
        }
    }

    static void merge(std::vector<Share>& shares) {
        std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
            return std::pair(a.group, a.leaf) < std::pair(b.group, b.leaf);
        });
        std::vector<Share> merged;
        for (const Share& share : shares) {
            if (!merged.empty() && merged.back().group == share.group && merged.back().leaf == share.leaf) {
                merged.back().tasks += share.tasks;
            } else {
                merged.push_back(share);
            }
        }
        shares = std::move(merged);
    }

    // The tasks of the groups, inner ones included, in each domain of their depth, by (group, domain).
    using Spread = std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>;
    Spread spread(std::span<const Share> shares) const {
        Spread found;
        for (const Share& share : shares) {
            for (std::int32_t group = share.group; group != kAbsent;
                 group = params_.group_parent[index(group)]) {
                if (home_[index(group)] == kAbsent) {
                    found[{group, at_depth(share.leaf, depth(group))}] += share.tasks;
                }
            }
        }
        return found;
    }

    // Tries the domains of the outermost group that is in several, of those the one with most tasks.
    void search(const Relaxed& node) {
        const Spread found = spread(node.shares);
        std::map<std::int32_t, std::int32_t> domains_used;
        for (const auto& [where, tasks] : found) ++domains_used[where.first];
        std::optional<std::int32_t> divided;
        const auto rank = [&](std::int32_t group) {
            return std::tuple(depth(group), -tasks_of(group), group);
        };
        for (const auto& [group, count] : domains_used) {
            if (count > 1 && (!divided || rank(group) < rank(*divided))) divided = group;
        }
        if (!divided) {
            if (!best_ || node.cost < best_->cost) best_ = node;
            return;
        }
        for (const std::int32_t domain : candidates(*divided, node)) {
            if (meter_.stopped() || is_stopped_) return;
            home_[index(*divided)] = domain;
            note(domain, 1);
            const auto below = relaxed();
            if (below && (!best_ || below->cost < best_->cost)) search(*below);
            note(domain, -1);
            home_[index(*divided)] = kAbsent;
            if (best_ && best_->cost <= node.cost) return;
        }
    }

    // The domains in which a group may be; first those with the fewest tasks of the group to move in, and of
    // others to move out. Of domains that are alike and not used, one.
    std::vector<std::int32_t> candidates(std::int32_t group, const Relaxed& node) const {
        std::vector<std::int64_t> others(params_.parent.size(), 0);
        std::map<std::int32_t, std::int64_t> kept;
        for (const Share& share : node.shares) {
            if (!is_part(share.group, group))
                others[index(at_depth(share.leaf, depth(group)))] += share.tasks;
        }
        for (const Share& share : kept_) {
            if (is_part(share.group, group)) kept[at_depth(share.leaf, depth(group))] += share.tasks;
        }
        const std::int32_t around = home_[index(decided(group))];
        std::map<std::tuple<std::int32_t, std::int32_t, std::vector<std::int32_t>>, std::int32_t> alike;
        std::vector<std::tuple<std::int64_t, std::int32_t, std::int32_t>> order;
        for (std::int32_t domain = 0; domain < num_domains(); ++domain) {
            if (domains_.depth(domain) != depth(group) || !is_inside(domain, around)) continue;
            if (domains_.capacity(domain) < tasks_of(group) || !holds_decided(domain, group)) continue;
            if (used_[index(domain)] == 0 && !alike.try_emplace(signature(domain, around), domain).second)
                continue;
            const auto known = kept.find(domain);
            const std::int64_t room = domains_.capacity(domain) - others[index(domain)];
            order.push_back({std::max<std::int64_t>(0, tasks_of(group) - room) -
                                 (known == kept.end() ? 0 : known->second),
                             domains_.capacity(domain), domain});
        }
        std::sort(order.begin(), order.end());
        std::vector<std::int32_t> found;
        for (const auto& one : order) found.push_back(std::get<2>(one));
        return found;
    }

    // True if all groups inside this one that are decided are in the domain.
    bool holds_decided(std::int32_t domain, std::int32_t group) const {
        for (std::int32_t inner = group + 1; inner < size(); ++inner) {
            const std::int32_t home = home_[index(inner)];
            if (home != kAbsent && is_part(inner, group) && !is_inside(home, domain)) return false;
        }
        return true;
    }

    // Equal for unused domains between which no decision below `around` can tell a difference.
    std::tuple<std::int32_t, std::int32_t, std::vector<std::int32_t>> signature(std::int32_t domain,
                                                                                std::int32_t around) const {
        std::vector<std::int32_t> kinds{domains_.kind(domain)};
        while (domain != around && used_[index(domains_.parent(domain))] == 0) {
            domain = domains_.parent(domain);
            kinds.push_back(domains_.kind(domain));
        }
        return {domains_.parent(domain), domains_.depth(domain), std::move(kinds)};
    }

    const PackParams& params_;
    std::vector<Share> kept_;
    const Domains& domains_;
    const GroupKinds& kinds_;
    WorkMeter& meter_;
    std::vector<std::int32_t> home_;  // of each group the domain that is decided, or kAbsent
    std::vector<std::int32_t> used_;  // of each domain: kept shares and decisions inside
    std::int64_t num_tasks_;
    std::int64_t move_cost_;
    std::optional<Relaxed> best_{};
    bool is_stopped_ = false;
};

void check_kept(const RepackParams& params, const Domains& domains) {
    if (params.problem.balanced != -1) {
        throw std::invalid_argument("balanced = " + std::to_string(params.problem.balanced) + ": must be -1");
    }
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> known;
    Counts64 sum(params.problem.own_tasks.size(), 0);
    for (std::size_t i = 0; i < params.kept.size(); ++i) {
        const Share& share = params.kept[i];
        if (share.group < 0 || index(share.group) >= sum.size())
            refuse("kept", i, share.group, "must be a group");
        if (share.leaf < 0 || share.leaf >= domains.size() || !domains.is_leaf(share.leaf))
            refuse("kept", i, share.leaf, "must be a leaf");
        if (share.tasks <= 0) refuse("kept", i, share.tasks, "must be at least one task");
        if (!known.try_emplace({share.group, share.leaf}, i).second)
            refuse("kept", i, share.leaf, "the group has this leaf twice");
        sum[index(share.group)] += share.tasks;
        if (sum[index(share.group)] > params.problem.own_tasks[index(share.group)])
            refuse("kept", i, share.tasks, "more tasks than the group has");
    }
}

}  // namespace

RepackResult repack_groups(const RepackParams& params) {
    const Domains domains(params.problem.parent, params.problem.room);
    const GroupKinds kinds(params.problem, domains.leaf_depth());
    check_kept(params, domains);
    WorkMeter meter(params.problem.stop);
    return Repacking(params, domains, kinds, meter).run();
}

}  // namespace topoplace::groups
