// Group packing: from the root down, each domain divides the groups and the free tasks that it gets among its
// children: exactly as the fewest domains in all need it (fewest_domains.hpp), or, where that takes too much
// work, among the fewest children of its own (fit.hpp). Even shares are found by lowering the room of domains
// of that depth as far as the same number of them still suffices.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "groups/domains.hpp"
#include "groups/fewest_domains.hpp"
#include "groups/fit.hpp"
#include "groups/group_kinds.hpp"
#include "groups/wrong.hpp"

namespace topoplace::groups {
namespace {

constexpr std::uint64_t kMostPairs = 20'000'000;  // of states, for the fewest domains: some 50 ms

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
    // `work`: the most that may be spent on the fewest domains; what is used is taken from it.
    Packing(const PackParams& params, const Domains& domains, const GroupKinds& kinds, WorkMeter& meter,
            std::uint64_t& work)
        : params_(params),
          domains_(domains),
          kinds_(kinds),
          fit_(domains, kinds, meter),
          fewest_(domains, kinds, meter, work) {}

    std::optional<std::vector<Share>> run() {
        Load job{0, {0}, {}};
        open(job);
        is_fewest_ = fewest_.solve(counts_of(job), free_tasks_of(job));
        if (!place(job)) return std::nullopt;
        std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
            return std::pair(a.group, a.leaf) < std::pair(b.group, b.leaf);
        });
        return std::move(shares_);
    }

    // True if a packing may exist although none was found.
    bool is_unsure() const { return fit_.is_unsure(); }
    // True if no packing uses fewer domains, from the top down.
    bool is_fewest() const { return is_fewest_; }

  private:
    Counts counts_of(const Load& load) const {
        Counts counts(kinds_.size(), 0);
        for (const std::int32_t group : load.groups) ++counts[index(kinds_.of(group))];
        return counts;
    }

    static std::int64_t free_tasks_of(const Load& load) {
        std::int64_t tasks = 0;
        for (const FreeTasks& free : load.free) tasks += free.tasks;
        return tasks;
    }

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
        const Counts counts = counts_of(load);
        const std::int64_t free_tasks = free_tasks_of(load);
        auto division = is_fewest_ ? fewest_.division(load.domain, counts, free_tasks)
                                   : fit_.fewest(load.domain, counts, kinds_.tasks(counts) + free_tasks);
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
            std::int64_t room = portion.free_tasks;
            if (room == kAsManyAsFit) room = domains_.capacity(portion.child) - kinds_.tasks(portion.groups);
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
    FewestDomains fewest_;
    bool is_fewest_ = false;
    std::vector<Share> shares_;
};

// Evens out how many tasks the domains of one depth have, on no more of them than before: the greatest load
// is lowered as far as a packing is found, then as few domains as possible keep it, then the same among the
// others.
class Balancing {
  public:
    Balancing(const PackParams& params, const Domains& domains, const GroupKinds& kinds, WorkMeter& meter,
              std::uint64_t& work, std::vector<Share> shares)
        : params_(params),
          domains_(domains),
          kinds_(kinds),
          meter_(meter),
          work_(work),
          first_node_(meter.nodes()),
          limit_(params.parent.size(), kOpen) {
        keep(std::move(shares));
        used_ = count_used(loads_);
        total_ = std::accumulate(loads_.begin(), loads_.end(), std::int64_t{0});
    }

    // True if a limit ended the search before the shares were as even as it can make them.
    bool is_stopped() const { return meter_.stopped() || meter_.nodes() - first_node_ > kMostNodes; }

    std::vector<Share> run() {
        while (!is_stopped() && !is_even()) {
            lower_greatest();
            fix_greatest();
        }
        return std::move(shares_);
    }

  private:
    static constexpr std::uint64_t kMostNodes = 1U << 18;       // less than a second
    static constexpr std::uint64_t kStepsPerDomain = 1U << 10;  // of `WorkMeter`: some 200 ns
    static constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
    using Numbers = std::vector<std::int64_t>;

    static std::int64_t count_used(const Numbers& loads) {
        return std::ssize(loads) - std::count(loads.begin(), loads.end(), 0);
    }

    bool is_open(std::size_t domain) const { return limit_[domain] == kOpen; }

    Numbers open_loads() const {
        Numbers found;
        for (std::size_t i = 0; i < loads_.size(); ++i) {
            if (loads_[i] > 0 && is_open(i)) found.push_back(loads_[i]);
        }
        return found;
    }

    bool is_even() const {
        const Numbers loads = open_loads();
        if (loads.empty() || fixed_ >= used_) return true;
        const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
        return *most - *least <= 1;
    }

    // The tasks that the open domains have to take at least.
    std::int64_t left() const { return std::max<std::int64_t>(total_ - fixed_tasks_, 0); }

    void lower_greatest() {
        const std::int64_t open = used_ - fixed_;
        std::int64_t low = (left() + open - 1) / open;
        std::int64_t high = greatest();
        while (low < high && !meter_.stopped()) {
            const std::int64_t middle = (low + high) / 2;
            if (repack(middle)) {
                high = greatest();
            } else {
                low = middle + 1;
            }
        }
    }

    std::int64_t greatest() const {
        const Numbers loads = open_loads();
        return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
    }

    // Keeps the greatest load on as few open domains as possible, and fixes it there.
    void fix_greatest() {
        const std::int64_t most = greatest();
        const std::vector<std::size_t> loaded = open_with(most);
        const std::int64_t at_least = left() - (used_ - fixed_) * (most - 1);
        const auto few = static_cast<std::size_t>(std::clamp<std::int64_t>(at_least, 1, std::ssize(loaded)));
        fix(loaded, few, most);
        if (few < loaded.size() && !repack(most - 1)) fix_fewest(loaded, most);
        for (const std::size_t domain : loaded) {
            if (is_open(domain)) continue;
            ++fixed_;
            fixed_tasks_ += most;
        }
    }

    // Of these domains, the first ones keep this load, and the others may get less.
    void fix(std::span<const std::size_t> domains, std::size_t number, std::int64_t load) {
        for (std::size_t i = 0; i < domains.size(); ++i) limit_[domains[i]] = i < number ? load : kOpen;
    }

    // Of alike domains, as few as possible keep this load.
    void fix_fewest(std::span<const std::size_t> loaded, std::int64_t load) {
        fix(loaded, loaded.size(), load);
        for (std::size_t first = 0, last = 0; first < loaded.size(); first = last) {
            while (last < loaded.size() && is_alike(loaded[first], loaded[last])) ++last;
            const auto alike = loaded.subspan(first, last - first);
            std::size_t low = 0;
            std::size_t high = alike.size();
            while (low < high && !is_stopped()) {
                const std::size_t middle = (low + high) / 2;
                fix(alike, middle, load);
                if (repack(load - 1)) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            fix(alike, high, load);
        }
    }

    // Open domains with this load, alike ones together, those with most room first.
    std::vector<std::size_t> open_with(std::int64_t load) const {
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < loads_.size(); ++i) {
            if (loads_[i] == load && is_open(i)) found.push_back(i);
        }
        std::sort(found.begin(), found.end(),
                  [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
        return found;
    }

    std::tuple<std::int64_t, std::int32_t, std::int32_t, std::size_t> place(std::size_t domain) const {
        const auto number = static_cast<std::int32_t>(domain);
        return {-std::int64_t{domains_.capacity(number)}, domains_.parent(number), domains_.kind(number),
                domain};
    }

    bool is_alike(std::size_t a, std::size_t b) const {
        const auto first = static_cast<std::int32_t>(a), second = static_cast<std::int32_t>(b);
        return domains_.parent(first) == domains_.parent(second) &&
               domains_.kind(first) == domains_.kind(second);
    }

    // Packs with at most this load on open domains; false, and nothing changes, if that needs more domains,
    // or the time is up.
    bool repack(std::int64_t most) {
        if (meter_.is_late_after(params_.room.size() * kStepsPerDomain)) return false;
        std::vector<std::int32_t> room(params_.room.begin(), params_.room.end());
        for (std::size_t i = 0; i < room.size(); ++i) {
            if (domains_.depth(static_cast<std::int32_t>(i)) != params_.balanced) continue;
            room[i] =
                static_cast<std::int32_t>(std::min<std::int64_t>(room[i], is_open(i) ? most : limit_[i]));
        }
        const Domains lowered(params_.parent, room);
        auto found = Packing(params_, lowered, kinds_, meter_, work_).run();
        if (!found || count_used(loads_of(*found)) > used_) return false;
        keep(std::move(*found));
        return true;
    }

    void keep(std::vector<Share> shares) {
        loads_ = loads_of(shares);
        shares_ = std::move(shares);
    }

    // The tasks on each domain of the depth; 0 for others.
    Numbers loads_of(const std::vector<Share>& shares) const {
        Numbers tasks(index(domains_.size()), 0);
        for (const Share& share : shares) {
            std::int32_t domain = share.leaf;
            while (domains_.depth(domain) > params_.balanced) domain = domains_.parent(domain);
            tasks[index(domain)] += share.tasks;
        }
        return tasks;
    }

    const PackParams& params_;
    const Domains& domains_;
    const GroupKinds& kinds_;
    WorkMeter& meter_;
    std::uint64_t& work_;
    const std::uint64_t first_node_;
    Numbers limit_;  // of each domain; kOpen while it may become smaller
    std::vector<Share> shares_{};
    Numbers loads_{};
    std::int64_t used_ = 0;
    std::int64_t total_ = 0;
    std::int64_t fixed_ = 0;        // domains
    std::int64_t fixed_tasks_ = 0;  // that they take
};

// The depth of the leaves.
std::int32_t leaf_depth_of(std::span<const std::int32_t> parent) {
    std::int32_t depth = 0;
    for (std::size_t i = parent.size() - 1; i > 0; i = index(parent[i])) ++depth;
    return depth;
}

}  // namespace

Fault check(const PackParams& params) {
    if (auto fault = Domains::check(params.parent, params.room)) return fault;
    const std::int32_t leaf_depth = leaf_depth_of(params.parent);
    if (auto fault = GroupKinds::check(params, leaf_depth)) return fault;
    if (params.balanced >= -1 && params.balanced <= leaf_depth) return std::nullopt;
    return "balanced = " + std::to_string(params.balanced) + ": must be the depth of domains";
}

PackResult pack_groups(const PackParams& params) {
    TOPOPLACE_ASSERT(!check(params));
    const Domains domains(params.parent, params.room);
    const GroupKinds kinds(params);
    WorkMeter meter(params.stop);
    PackResult result;
    std::uint64_t work = kMostPairs;
    Packing packing(params, domains, kinds, meter, work);
    auto shares = packing.run();
    result.fewest = shares && packing.is_fewest() && params.balanced < 0;
    result.complete = shares || !packing.is_unsure();
    if (shares && params.balanced >= 0) {
        Balancing balancing(params, domains, kinds, meter, work, std::move(*shares));
        shares = balancing.run();
        result.complete = !balancing.is_stopped();
    }
    result.found = shares.has_value();
    result.complete = result.complete && !meter.stopped();
    if (shares) result.shares = std::move(*shares);
    result.nodes = meter.nodes();
    return result;
}

}  // namespace topoplace::groups
