// Group packing: from the root down, each domain divides the groups and the free tasks that it gets among the
// fewest of its children (fit.hpp). Equal shares are found by lowering the room of each domain of that depth
// as far as the same number of them still suffices.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "groups/domains.hpp"
#include "groups/fit.hpp"
#include "groups/group_kinds.hpp"
#include "groups/refusal.hpp"

namespace topoplace::groups {
namespace {

// Tasks of one group that may be anywhere in the domain at hand.
struct FreeTasks {
    std::int32_t group = 0;
    std::int32_t tasks = 0;
};

// What one domain has to place: groups of greater depth, and free tasks, both by number of the group.
struct Load {
    std::int32_t domain = 0;
    std::vector<std::int32_t> groups{};
    std::vector<FreeTasks> free{};
};

class Packing {
  public:
    Packing(const PackParams& params, const Domains& domains, const GroupKinds& kinds, WorkMeter& meter)
        : params_(params), domains_(domains), kinds_(kinds), fit_(domains, kinds, meter) {}

    std::optional<std::vector<Share>> run() {
        Load job{0, {0}, {}};
        open(job);
        if (!place(job)) return std::nullopt;
        std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
            return std::pair(a.group, a.leaf) < std::pair(b.group, b.leaf);
        });
        return std::move(shares_);
    }

    // True if a packing may exist although none was found.
    bool is_unsure() const { return fit_.is_unsure(); }

  private:
    // Groups of the domain's depth give way to their own tasks and to the groups inside them.
    void open(Load& load) const {
        std::vector<std::int32_t> kept;
        for (const std::int32_t group : load.groups) {
            if (params_.group_depth[index(group)] != domains_.depth(load.domain)) {
                kept.push_back(group);
                continue;
            }
            const auto inside = kinds_.children(group);
            kept.insert(kept.end(), inside.begin(), inside.end());
            const std::int32_t own = params_.own_tasks[index(group)];
            if (own > 0) load.free.push_back({group, own});
        }
        std::sort(kept.begin(), kept.end());
        std::sort(load.free.begin(), load.free.end(),
                  [](const FreeTasks& a, const FreeTasks& b) { return a.group < b.group; });
        load.groups = std::move(kept);
    }

    bool place(Load& load) {
        if (domains_.is_leaf(load.domain)) {
            for (const FreeTasks& free : load.free) shares_.push_back({free.group, load.domain, free.tasks});
            return true;
        }
        Counts counts(kinds_.size(), 0);
        for (const std::int32_t group : load.groups) ++counts[index(kinds_.of(group))];
        std::int64_t tasks = kinds_.tasks(counts);
        for (const FreeTasks& free : load.free) tasks += free.tasks;
        auto division = fit_.fewest(load.domain, counts, tasks);
        if (!division) return false;
        std::sort(division->begin(), division->end(),
                  [](const Portion& a, const Portion& b) { return a.child < b.child; });
        for (Load& portion : dealt(load, *division)) {
            open(portion);
            if (!place(portion)) return false;
        }
        return true;
    }

    // What each child gets: of each kind the groups of lowest number that are left, then free tasks while it
    // has room.
    std::vector<Load> dealt(const Load& load, const Division& division) const {
        std::vector<std::vector<std::int32_t>> of_kind(kinds_.size());
        for (const std::int32_t group : load.groups) of_kind[index(kinds_.of(group))].push_back(group);
        std::vector<std::size_t> next(kinds_.size(), 0);
        std::vector<Load> loads;
        std::size_t first = 0;
        std::vector<FreeTasks> free(load.free);
        for (const Portion& portion : division) {
            Load& mine = loads.emplace_back(Load{portion.child, {}, {}});
            for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
                for (std::int32_t i = 0; i < portion.groups[kind]; ++i) {
                    mine.groups.push_back(of_kind[kind][next[kind]++]);
                }
            }
            std::int64_t room = domains_.capacity(portion.child) - kinds_.tasks(portion.groups);
            while (first < free.size() && room > 0) {
                const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(room, free[first].tasks));
                mine.free.push_back({free[first].group, taken});
                room -= taken;
                free[first].tasks -= taken;
                if (free[first].tasks == 0) ++first;
            }
        }
        TOPOPLACE_ASSERT(first == free.size());
        return loads;
    }

    const PackParams& params_;
    const Domains& domains_;
    const GroupKinds& kinds_;
    Fit fit_;
    std::vector<Share> shares_;
};

// The tasks on each domain of this depth that has some.
std::vector<std::int64_t> loads_at(std::int32_t depth, const PackParams& params, const Domains& domains,
                                   const std::vector<Share>& shares) {
    std::vector<std::int64_t> tasks(index(domains.size()), 0);
    for (const Share& share : shares) {
        std::int32_t domain = share.leaf;
        while (domains.depth(domain) > depth) domain = params.parent[index(domain)];
        tasks[index(domain)] += share.tasks;
    }
    std::erase(tasks, 0);
    return tasks;
}

using Shares = std::optional<std::vector<Share>>;

// The packing with the smallest greatest load of the domains of this depth, on no more of them.
Shares balanced(std::vector<Share> shares, const PackParams& params, const Domains& domains,
                const GroupKinds& kinds, WorkMeter& meter) {
    auto loads = loads_at(params.balanced, params, domains, shares);
    const std::size_t used = loads.size();
    if (used < 2) return shares;
    std::int64_t sum = 0;
    for (const std::int64_t load : loads) sum += load;
    std::int64_t low = (sum + std::ssize(loads) - 1) / std::ssize(loads);
    std::int64_t high = *std::max_element(loads.begin(), loads.end());
    while (low < high && !meter.stopped()) {
        const std::int64_t middle = (low + high) / 2;
        std::vector<std::int32_t> room(params.room.begin(), params.room.end());
        for (std::int32_t i = 0; i < domains.size(); ++i) {
            if (domains.depth(i) != params.balanced) continue;
            room[index(i)] = std::min(room[index(i)], static_cast<std::int32_t>(middle));
        }
        const Domains lowered(params.parent, room);
        auto found = Packing(params, lowered, kinds, meter).run();
        if (found && loads_at(params.balanced, params, domains, *found).size() <= used) {
            shares = std::move(*found);
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return shares;
}

}  // namespace

PackResult pack_groups(const PackParams& params) {
    const Domains domains(params.parent, params.room);
    const GroupKinds kinds(params, domains.leaf_depth());
    if (params.balanced < -1 || params.balanced > domains.leaf_depth()) {
        throw std::invalid_argument("balanced = " + std::to_string(params.balanced) +
                                    ": must be the depth of domains");
    }
    WorkMeter meter(params.stop);
    PackResult result;
    Packing packing(params, domains, kinds, meter);
    Shares shares = packing.run();
    if (shares && params.balanced >= 0) {
        shares = balanced(std::move(*shares), params, domains, kinds, meter);
    }
    result.found = shares.has_value();
    result.complete = !meter.stopped() && (shares || !packing.is_unsure());
    if (shares) result.shares = std::move(*shares);
    result.nodes = meter.nodes();
    return result;
}

}  // namespace topoplace::groups
