// Builds the network of moves, solves it, and reads which group's tasks are on which leaf.
//
// The nodes are each domain twice, on the way down to leaves and on the way up, where its room counts, then
// the groups, and the sink. A group sends tasks to the leaves where they are at no cost, and down from its
// decided domain at the cost of a move.
#include "groups/moves_flow.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace topoplace::groups {
namespace {

constexpr std::uint64_t kStepsPerChild = 32;  // of `WorkMeter`, each a fifth of a nanosecond

}  // namespace

struct MovesFlow::Arcs {
    std::vector<std::int32_t> tail{}, head{};
    std::vector<std::int64_t> capacity{}, cost{};

    void add(std::int32_t from, std::int32_t to, std::int64_t most, std::int64_t price) {
        tail.push_back(from);
        head.push_back(to);
        capacity.push_back(most);
        cost.push_back(price);
    }
};

MovesFlow::MovesFlow(const PackParams& params, std::span<const Share> kept, const Domains& domains,
                     const Homes& homes)
    : params_(params),
      kept_(kept),
      domains_(domains),
      homes_(homes),
      is_used_(params.parent.size(), false),
      num_tasks_(homes.tasks_of(0)),
      move_cost_(num_tasks_ + 1) {
    for (const Share& share : kept) is_used_[index(share.leaf)] = true;
}

// In this order: the arcs of kept tasks, those of the groups' moves, those down into each domain but the
// root, and those on leaves and up, which nobody reads.
MovesFlow::Arcs MovesFlow::arcs() const {
    Arcs arcs;
    for (const Share& share : kept_) {
        const bool stays = homes_.may_have(share.leaf, share.group);
        arcs.add(node_of(share.group), up(share.leaf), stays ? share.tasks : 0, 0);
    }
    for (std::int32_t group = 0; group < homes_.num_groups(); ++group) {
        arcs.add(node_of(group), down(homes_.home(group)), params_.own_tasks[index(group)], move_cost_);
    }
    for (std::int32_t domain = 1; domain < domains_.size(); ++domain) {
        arcs.add(down(domains_.parent(domain)), down(domain), num_tasks_, 0);
    }
    for (std::int32_t domain = 0; domain < domains_.size(); ++domain) {
        arcs.add(up(domain), above(domain), domains_.capacity(domain), 0);
        if (domains_.is_leaf(domain)) {
            arcs.add(down(domain), up(domain), num_tasks_, is_used_[index(domain)] ? 0 : 1);
        }
    }
    return arcs;
}

flow::FlowResult MovesFlow::flow_through(const Arcs& arcs, const StopCondition& stop) const {
    std::vector<std::int64_t> supply(index(sink()) + 1, 0);
    for (std::int32_t group = 0; group < homes_.num_groups(); ++group) {
        supply[index(node_of(group))] = params_.own_tasks[index(group)];
    }
    supply.back() = -num_tasks_;
    const flow::Network network{.num_nodes = sink() + 1,
                                .tail = arcs.tail,
                                .head = arcs.head,
                                .capacity = arcs.capacity,
                                .cost = arcs.cost,
                                .supply = supply};
    return flow::min_cost_flow(network, {.stop = stop});
}

std::optional<Relaxed> MovesFlow::solve(WorkMeter& meter) {
    if (meter.visit()) return std::nullopt;
    const flow::FlowResult found = flow_through(arcs(), meter.deadline());
    if (found.status == flow::Status::timeout) was_stopped_ = true;
    if (found.status != flow::Status::optimal) return std::nullopt;
    Relaxed relaxed = read(found.flow, meter);
    if (meter.is_late_after(0)) return std::nullopt;
    relaxed.cost = static_cast<std::int64_t>(found.cost);
    return relaxed;
}

std::int64_t MovesFlow::cost_of(std::span<const Share> shares) const {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> here;
    for (const Share& share : kept_) here[{share.group, share.leaf}] = share.tasks;
    std::int64_t cost = 0;
    for (const Share& share : shares) {
        const auto kept = here.find({share.group, share.leaf});
        const std::int64_t moved =
            std::max<std::int64_t>(0, share.tasks - (kept == here.end() ? 0 : kept->second));
        cost += moved * (move_cost_ + (is_used_[index(share.leaf)] ? 0 : 1));
    }
    return cost;
}

// The groups that a flow does not tell apart on their way down are divided so that few are torn apart.
Relaxed MovesFlow::read(std::span<const std::int64_t> flow, WorkMeter& meter) const {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> tasks;  // by group and leaf
    std::vector<std::vector<std::int32_t>> units(params_.parent.size());
    for (std::size_t i = 0; i < kept_.size(); ++i) {
        if (flow[i] == 0) continue;
        tasks[{kept_[i].group, kept_[i].leaf}] = flow[i];
        note(kept_[i].leaf, kept_[i].group, units);
    }
    Portions portions(params_.parent.size());
    for (std::int32_t group = 0; group < homes_.num_groups(); ++group) {
        const std::int64_t moved = flow[kept_.size() + index(group)];
        if (moved > 0) portions[index(homes_.home(group))].push_back({group, moved});
    }
    const auto into = flow.subspan(kept_.size() + index(homes_.num_groups()) - 1);
    for (std::int32_t domain = 0; domain < domains_.size(); ++domain) {
        if (domains_.is_leaf(domain)) {
            for (const Portion& one : portions[index(domain)]) tasks[{one.group, domain}] += one.tasks;
        } else if (!portions[index(domain)].empty()) {
            deal(domain, into, portions, units, meter);
        }
    }
    Relaxed relaxed;
    for (const auto& [where, count] : tasks) {
        relaxed.shares.push_back({where.first, where.second, static_cast<std::int32_t>(count)});
    }
    return relaxed;
}

// What should stay together: the outermost group that is not decided; all others are one unit, after them.
std::int32_t MovesFlow::unit_of(std::int32_t group) const {
    const std::int32_t outer = homes_.undecided(group);
    return outer == kAbsent ? std::numeric_limits<std::int32_t>::max() : outer;
}

void MovesFlow::note(std::int32_t leaf, std::int32_t group,
                     std::vector<std::vector<std::int32_t>>& units) const {
    for (std::int32_t domain = leaf; domain != kAbsent; domain = domains_.parent(domain)) {
        auto& known = units[index(domain)];
        if (known.empty() || known.back() != unit_of(group)) known.push_back(unit_of(group));
    }
}

// Each portion goes to the children that the flow enters: to those that have tasks of its unit, then to the
// one that it fills best. Larger units come first. Ends early where the time is up.
void MovesFlow::deal(std::int32_t domain, std::span<const std::int64_t> flow, Portions& portions,
                     std::vector<std::vector<std::int32_t>>& units, WorkMeter& meter) const {
    std::map<std::int32_t, std::int64_t> size;
    for (const Portion& one : portions[index(domain)]) size[unit_of(one.group)] += one.tasks;
    auto& order = portions[index(domain)];
    std::stable_sort(order.begin(), order.end(), [&](const Portion& a, const Portion& b) {
        const std::int32_t of_a = unit_of(a.group), of_b = unit_of(b.group);
        return std::pair(-size[of_a], of_a) < std::pair(-size[of_b], of_b);
    });
    std::map<std::int32_t, std::int64_t> left;
    for (const std::int32_t child : domains_.children(domain)) {
        if (flow[index(child)] > 0) left[child] = flow[index(child)];
    }
    for (Portion& one : order) {
        const std::int32_t unit = unit_of(one.group);
        while (one.tasks > 0) {
            const auto rank = [&](const std::pair<const std::int32_t, std::int64_t>& child) {
                const auto& known = units[index(child.first)];
                meter.pass_time(kStepsPerChild + known.size());
                const bool has_some = std::find(known.begin(), known.end(), unit) != known.end();
                const bool fits = child.second >= one.tasks;
                return std::tuple(!has_some, !fits, fits ? child.second : -child.second);
            };
            if (meter.is_late_after(0)) return;
            const auto best = std::min_element(
                left.begin(), left.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
            const std::int64_t tasks = std::min(one.tasks, best->second);
            portions[index(best->first)].push_back({one.group, tasks});
            units[index(best->first)].push_back(unit);
            one.tasks -= tasks;
            if ((best->second -= tasks) == 0) left.erase(best);
        }
    }
}

}  // namespace topoplace::groups
