// Each region is mapped with a share of the work that depends on what the gang consists of.
#include "topoplace/gang_search.hpp"

#include <algorithm>

#include "decide/batches.hpp"
#include "decide/gang_regions.hpp"
#include "decide/joined_units.hpp"
#include "decide/part_gpus.hpp"
#include "decide/region_tree.hpp"
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

constexpr double kRounding = 1e-6;
// Of moves in the tree alone: moves x edges of an item for up to 128 items, and moves of an item.
constexpr double kMoveWork = 200'000, kManyItems = 128, kMostMoves = 4'000;
// Of hops that are loaded: 0.1 s of work. Beside other jobs, the bound is seldom reached, so that a search
// seldom ends early; on idle machines of equal size, the first mappings are seldom improved; and few items
// have few good steps, so that so much work seldom misses the best mapping.
constexpr std::size_t kWorkOfAnItem = 80'000, kMostWork = 2'500'000, kMostBesideOthers = 1'500'000,
                      kMostIfAlike = 160'000, kFewItems = 8, kWorkOfFewItems = 1U << 20;

// Of the work: for the machines with the most room, and from units that exchange the most.
constexpr double kShareOfLargest = 0.25, kShareOfJoined = 0.1;
constexpr std::size_t kItemsOfAll = 6;  // which are searched for from everywhere
// Where GPUs are alike, all steps but the first find nothing for most gangs: a part of the work, and hops.
constexpr std::uint64_t kFirstPart = 6, kFewestHops = 60'000;

StopCondition half_of(StopCondition stop) {
    if (stop.when == std::chrono::steady_clock::time_point::max()) return stop;
    const auto now = std::chrono::steady_clock::now();
    if (stop.when > now) stop.when = now + (stop.when - now) / 2;
    return stop;
}

std::int32_t divided_up(std::int32_t count, std::int32_t by) { return (count + by - 1) / by; }

class Search {
  public:
    explicit Search(const GangSearchParams& params)
        : params_(params), exchanges_(exchanges_of(params.job, params.units, true)) {
        const GangRoom room = room_of(params.offers);
        has_room_ = room.tasks.front().front() >= static_cast<std::int64_t>(params.units.tasks.size());
        if (has_room_) least_ = least_in(room);
    }

    GangFound run() const {
        if (!has_room_) return {};
        GangFound best = among(first_regions(params_));
        return best.found ? best : among(other_regions(params_));
    }

  private:
    GangRoom room_of(const MachineOffers& offers) const {
        return gang_room(params_.topology->machines, offers, params_.levels->codes(), params_.most);
    }

    Least least_in(const GangRoom& room) const {
        WorkMeter meter(params_.stop);
        return least_seconds(params_.topology->limits, room, params_.levels->bound_class(), params_.job,
                             params_.units, params_.machine_groups, meter);
    }

    // A region as a tree, and what is found there from units that exchange the most.
    struct Place {
        Region region{};
        RegionTree tree;
        GangFound joined{};
    };

    // Often some region has a mapping from such units that nothing is faster than by more than the slack.
    GangFound among(const std::vector<Region>& regions) const {
        std::vector<Place> places;
        for (const Region& region : regions) {
            RegionTree tree(params_, region);
            if (tree.total_room() < static_cast<std::int64_t>(items())) continue;
            GangFound joined = from_joined(tree);
            if (is_enough(joined, least_.of_all)) return by_the_rule(std::move(joined));
            places.push_back({region, std::move(tree), std::move(joined)});
        }
        GangFound best;
        for (Place& place : places) {
            const Region& region = place.region;
            const bool is_all = region.machines.size() == params_.offers.machines.size();
            const Least least = is_all ? least_ : least_in(room_of(region.offers(params_.offers)));
            const bool may_be_faster = least.of_all * (1 + params_.slack) < best.seconds;
            if (best.found && !may_be_faster) continue;
            const double share = best.found && params_.whole.empty() ? kShareOfLargest : 1.0;
            best = faster(std::move(best), over(place, least.of_whole, share), params_.slack);
            if (best.found && (best.is_proven() || params_.stop.time_is_up())) break;
        }
        return best;
    }

    std::size_t items() const { return index(params_.units.count()); }

    bool is_enough(const GangFound& found, double least) const {
        return found.found && (found.seconds <= least * (1 + params_.slack) || params_.stop.time_is_up());
    }

    // The fastest mapping in a region, in which none takes less, by a share of the work.
    GangFound over(Place& place, double least, double share) const {
        GangFound best = std::move(place.joined);
        if (!is_enough(best, least))
            best = faster(std::move(best), found_by(mapped(place.tree, {}, least, share)), params_.slack);
        return best.found ? by_the_rule(std::move(best)) : best;
    }

    GangFound by_the_rule(GangFound best) const {
        std::vector<std::int32_t> gpus = by_the_rule_for_machines(params_, best.gpus);
        if (!gpus.empty() && gpus != best.gpus) take_if_as_good(std::move(gpus), best);
        return best;
    }

    GangFound found_by(gang_mapping::GangResult found) const {
        if (!found.found) return {};
        return {true, std::move(found.vertex_of), found.seconds, least_.of_all};
    }

    bool has_rings() const {
        const auto has_some = [](const Phase& phase) { return std::ranges::any_of(phase, &Batch::is_ring); };
        return std::ranges::any_of(phases_of(params_.job), has_some);
    }

    // From units that are together where they exchange the most.
    GangFound from_joined(const RegionTree& tree) const {
        const bool is_bound = !params_.start.empty() && params_.whole.empty();
        if (is_bound || items() <= kItemsOfAll || has_rings()) return {};
        const GangFound best = from_joined(tree, tree.room());
        // Then even shares of the fewest machines.
        const std::int32_t most = std::ranges::max(tree.room()), count = params_.units.count();
        const std::int32_t machines = most > 0 ? divided_up(count, most) : count;
        const std::int32_t even = divided_up(count, machines);
        if (even >= most || is_enough(best, least_.of_all)) return best;
        std::vector<std::int32_t> room = tree.room();
        for (std::int32_t& one : room) one = std::min(one, even);
        return faster(best, from_joined(tree, room), params_.slack);
    }

    // room: of each leaf, at most.
    GangFound from_joined(const RegionTree& tree, std::span<const std::int32_t> room) const {
        const std::vector<std::int32_t> start =
            joined_on_leaves(exchanges_, params_.units.count(), room, tree.first_leaves());
        if (start.empty()) return {};
        return found_by(mapped(tree, start, least_.of_whole, kShareOfJoined));
    }

    // start: the leaf of each item, which it may leave; or none.
    gang_mapping::GangResult mapped(const RegionTree& tree, std::vector<std::int32_t> start, double least,
                                    double share) const {
        const bool is_in_one = !params_.whole.empty();  // such a region decides about nothing else
        const bool has_start = start.empty() && !params_.start.empty() && !is_in_one;
        if (has_start) start = tree.start();
        if (has_start && start.empty()) return {};
        const bool is_free = !has_start || params_.may_leave;
        std::vector<std::int32_t> room = tree.room(), confined;
        if (!is_free && params_.is_balanced) {
            std::ranges::fill(room, 0);
            for (const std::int32_t leaf : start) ++room[index(leaf)];
        }
        if (!is_free) confined = tree.confined(start);
        const std::vector<double> others = tree.others();
        gang_mapping::GangParams params;
        params.network = &params_.topology->network;
        params.job = params_.job;
        params.items = {.tree = tree.params(room),
                        .items = {params_.units.count(), exchanges_.phase_ends, exchanges_.from,
                                  exchanges_.to, exchanges_.gigabytes, start, confined, others},
                        .moves = static_cast<std::uint64_t>(share * moves())};
        params.items.stop = half_of(params_.stop);
        params.tasks = params_.units.tasks;
        params.leaf_ends = tree.place_ends();
        params.places = tree.places();
        params.others = params_.others;
        params.least_seconds = least;
        params.work = work(tree, share);
        if (params_.topology->limits.are_alike())
            params.first_hops = std::max(kFewestHops, params.work / kFirstPart);
        return gang_mapping::map_gang(params);
    }

    std::uint64_t work(const RegionTree& tree, double share) const {
        const std::size_t most = params_.others == nullptr ? kMostWork : kMostBesideOthers;
        std::size_t work = std::min(most, kWorkOfAnItem * items());
        if (items() <= kFewItems) {
            work = kWorkOfFewItems;
        } else if (tree.have_equal_room()) {
            work = std::min(work, kMostIfAlike);
        }
        return static_cast<std::uint64_t>(share * params_.share * static_cast<double>(work));
    }

    double moves() const {
        const auto count = static_cast<double>(items());
        const double degree = std::max(1.0, 2.0 * static_cast<double>(exchanges_.from.size()) / count);
        return std::min(kMoveWork * std::max(1.0, count / kManyItems) / degree, kMostMoves * count);
    }

    void take_if_as_good(std::vector<std::int32_t> gpus, GangFound& best) const {
        const auto& network = params_.topology->network;
        const traffic::JobTime ours = traffic::time_of(network, params_.job, gpus, params_.others),
                               theirs = traffic::time_of(network, params_.job, best.gpus, params_.others);
        const bool is_as_good = ours.seconds <= theirs.seconds * (1 + kRounding) &&
                                ours.port_seconds <= theirs.port_seconds * (1 + kRounding);
        if (!is_as_good) return;
        best.gpus = std::move(gpus);
        if (ours.seconds * (1 + kRounding) < best.seconds) best.seconds = ours.seconds;
    }

    const GangSearchParams& params_;
    Exchanges exchanges_;
    bool has_room_ = false;
    Least least_{};
};

Fault check_tasks(const GangSearchParams& params) {
    if (params.most < 1) return traffic::wrong("most", 0, params.most, "below 1");
    if (auto fault = check(params.job, params.units)) return fault;
    const std::size_t tasks = params.units.tasks.size();
    if (auto fault = traffic::check_edges(params.edges, tasks)) return fault;
    const std::size_t start = params.start.empty() ? 0 : tasks;
    if (auto fault = traffic::check_size("start", params.start.size(), start)) return fault;
    return traffic::check_range("start", params.start, 0, index(params.topology->machines.size()));
}

Fault check_times(const GangSearchParams& params) {
    if (!(params.share >= 0.0 && params.share <= 1e9))
        return traffic::wrong("share", 0, params.share, "not in 0..1e9");
    return check_slack(params.slack);
}

Fault check_levels(const GangLevels& levels, const GangTopology& topology) {
    const bool are_its_own = levels.size() > 0 && levels[0].codes.size() == index(topology.machines.size()) &&
                             levels.num_ports() <= topology.network.ports().num_ports();
    if (are_its_own) return std::nullopt;
    return "levels are those of other machines";
}

Fault check_together(const GangSearchParams& params) {
    const std::size_t levels = params.levels->size();
    for (const Together& one : params.together) {
        if (one.level >= levels) return traffic::wrong("level", 0, one.level, "not a level");
        if (one.tasks.empty()) return "together has a group without tasks";
        if (auto fault = traffic::check_range("together", one.tasks, 0, params.units.tasks.size()))
            return fault;
    }
    for (std::size_t i = 0; i < params.whole.size(); ++i) {
        if (params.whole[i] >= levels) return traffic::wrong("whole", i, params.whole[i], "not a level");
    }
    return std::nullopt;
}

}  // namespace

Fault check(const GangSearchParams& params) {
    if (params.topology == nullptr || params.levels == nullptr) return "a topology is missing";
    const GangTopology& topology = *params.topology;
    if (auto fault = check(params.offers, topology.machines)) return fault;
    if (auto fault = check_levels(*params.levels, topology)) return fault;
    const std::size_t free = params.offers.machines.size() * params.free_bytes;
    if (auto fault = traffic::check_size("free", params.free.size(), free)) return fault;
    if (auto fault = check_tasks(params)) return fault;
    if (params.others != nullptr && &params.others->network() != &topology.network.ports())
        return "others are flows of another network";
    if (auto fault = check_times(params)) return fault;
    return check_together(params);
}

bool GangFound::is_proven() const { return found && seconds <= least * (1 + kRounding); }

GangFound faster(GangFound best, GangFound other, double slack) {
    if (!best.found || !other.found) return best.found ? best : other;
    return other.seconds * (1 + slack) < best.seconds ? other : best;
}

GangFound search_gang(const GangSearchParams& params) { return Search(params).run(); }

}  // namespace topoplace::decide
