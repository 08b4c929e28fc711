// Starts from orders of the items laid along plans of filling the tree: plans for rings, for each speed of
// adapters and number of channels, then those of `map_to_tree`. The best starts are improved by steps: items
// to other leaves, two items for each other, and tasks to other places of their leaf. Worse steps are
// accepted less and less. Few items on few leaves start from random leaves, too. All this is done in passes,
// each of twice the work, until one finds nothing faster. A start that is given is improved alone.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>

#include "gang_mapping/all_assignments.hpp"
#include "gang_mapping/gang_loads.hpp"
#include "gang_mapping/layout.hpp"
#include "gang_mapping/ring_plans.hpp"
#include "graph/index.hpp"
#include "topoplace/random.hpp"
#include "tree_mapping/orders.hpp"
#include "tree_mapping/plans.hpp"
#include "tree_mapping/use.hpp"

namespace topoplace::gang_mapping {
namespace {

using tree_mapping::Problem;

constexpr double kEqual = 1 + 1e-9;
constexpr double kEnough = 1 + 1e-8;  // bounds are rounded down
constexpr double kFaster = 1.001;     // less is not worth another pass
constexpr std::size_t kMostOrders = 48, kMostPlans = 64, kMostSpeeds = 4;
constexpr std::array<Index, 15> kChannels{64, 48, 36, 32, 24, 16, 12, 8, 7, 6, 5, 4, 3, 2, 1};
// Of the work: on starts once one is as fast as can be, and on steps before more is spent on port-seconds.
constexpr std::uint64_t kStartShare = 8, kFirstShare = 16;
constexpr std::size_t kImproved = 2;            // starts
constexpr std::size_t kMostCompared = 256;      // for fuller domains
constexpr double kHot = 0.003, kCold = 0.0002;  // how much worse steps may be, as parts of the time
// Factors of that in further rounds: of short passes, and for few items, which have few good steps.
constexpr std::array kHeats{10.0, 100.0};
constexpr Index kFewItems = 16;
// Of still fewer items on few leaves: there, good mappings may be far from all that plans lead to.
constexpr std::size_t kRandomStarts = 12;
constexpr Index kFewForRandom = 8, kFewLeaves = 16;
constexpr double kPortShare = 0.02,
                 kLeafShare = 0.002;  // of the time, for the port-seconds and leaves of a start
constexpr double kReach = 2.5;        // `smooth` is at most so many times the seconds
constexpr std::uint64_t kStepsPerHop = GangLoads::kStepsPerHop;
constexpr std::uint64_t kStepsPerMove = 200, kStepsPerEdge = 50, kStepsPerPlace = 20;
constexpr std::size_t kMostAssignments = 12000;  // to compare all
constexpr double kUnknown = std::numeric_limits<double>::infinity();

struct Mapping {
    double seconds = 0.0, port_seconds = 0.0, port_gigabytes = 0.0;
    Index leaves = 0;
    std::vector<std::int32_t> vertex_of{};
    std::vector<Index> leaf_of{};  // of each item; empty where items may be divided
    bool has_drifted = false;      // sums of floats, after steps

    bool is_better_than(const Mapping& other) const {
        if (seconds * kEqual < other.seconds) return true;
        if (other.seconds * kEqual < seconds) return false;
        if (port_seconds * kEqual < other.port_seconds) return true;
        return port_seconds <= other.port_seconds * kEqual && leaves < other.leaves;
    }

    bool takes_no_more_than(const Mapping& other) const {
        return seconds <= other.seconds * kEqual && port_gigabytes <= other.port_gigabytes * kEqual &&
               leaves <= other.leaves;
    }
};

class Search {
  public:
    Search(const GangParams& params, const Problem& problem, WorkMeter& meter)
        : params_(params),
          problem_(problem),
          loads_(params),
          layout_(params, problem),
          random_(params.items.seed),
          meter_(meter) {
        for (Index leaf = 0; leaf < problem.leaves; ++leaf) {
            if (layout_.room(leaf, 0.0) > 0) leaves_.push_back(leaf);
        }
    }

    GangResult run() {
        std::vector<Mapping> starts = first_mappings();
        std::ranges::stable_sort(starts, [](const auto& a, const auto& b) { return a.is_better_than(b); });
        best_ = starts.front();
        if (!is_done() && !compare_all() && is_worth_more(starts.front())) improve_first(starts);
        choose_fullest(starts);
        const TrueTimes times = true_times();
        return {.found = true,
                .vertex_of = best_.vertex_of,
                .seconds = times.seconds,
                .port_seconds = times.port_seconds,
                .complete = !meter_.stopped(),
                .work = loads_.work()};
    }

  private:
    std::uint64_t left() const { return params_.work > loads_.work() ? params_.work - loads_.work() : 0; }
    // In this pass.
    std::uint64_t hops_left() const { return pass_end_ > loads_.hops() ? pass_end_ - loads_.hops() : 0; }
    void begin_pass(std::uint64_t hops) { pass_end_ = loads_.hops() + std::min(hops, left()); }

    bool is_fastest(const Mapping& one) const { return one.seconds <= params_.least_seconds * kEnough; }
    bool is_enough_at(const Mapping& one) const { return is_fastest(one) && one.port_seconds <= 0.0; }
    bool is_done() const { return is_enough_at(best_) || left() == 0 || meter_.stopped(); }

    // Spends what the loads of hops took since the last call.
    bool spend() {
        const std::uint64_t hops = loads_.work() - spent_;
        spent_ = loads_.work();
        return meter_.spend(kStepsPerHop * hops + kStepsPerMove);
    }

    // Infinite times where the search has to stop before they are known.
    Mapping measured(const std::vector<Index>& leaf_of) {
        layout_.set(leaf_of);
        Mapping found{kUnknown, kUnknown, 0.0, layout_.leaves_in_use(), layout_.vertices(), leaf_of};
        if (loads_.set(found.vertex_of, meter_)) {
            found.seconds = loads_.seconds();
            found.port_seconds = loads_.port_seconds();
            found.port_gigabytes = loads_.port_gigabytes();
        }
        return found;
    }

    struct TrueTimes {
        double seconds = 0.0, port_seconds = 0.0;
    };

    // Of the best mapping, by the definition where a flow has no path or takes very long: else summed again
    // after steps, as sums of floats drift.
    TrueTimes true_times() {
        TrueTimes times{best_.seconds, best_.port_seconds};
        if (best_.has_drifted && best_.seconds < GangLoads::kNever) {
            WorkMeter endless{StopCondition{}};
            loads_.set(best_.vertex_of, endless);
            times = {loads_.seconds(), loads_.port_seconds()};
        }
        if (best_.seconds < GangLoads::kNever || best_.seconds == kUnknown) return times;
        const traffic::JobFlows flows = traffic::flows_of(*params_.network, params_.job, best_.vertex_of);
        const auto phases =
            ports::phase_times(params_.network->ports(), flows.phase_ends, flows.flows(), params_.others);
        times = {};
        for (std::size_t i = 0; i < phases.size(); ++i) {
            times.seconds += std::max(phases[i].seconds, flows.rings[i].seconds);
            times.port_seconds += phases[i].port_seconds;
        }
        return times;
    }

    // Compares all assignments of a small gang; false if there are too many.
    bool compare_all() {
        const std::vector<Assignment> all = all_assignments(params_, problem_, kMostAssignments);
        for (const Assignment& one : all) {
            if (is_done() || !loads_.set(one.vertex_of, meter_)) break;
            const Mapping found{loads_.seconds(), loads_.port_seconds(), loads_.port_gigabytes(),
                                one.leaves,       one.vertex_of,         {}};
            if (found.is_better_than(best_)) best_ = found;
            if (spend()) break;
        }
        return !all.empty();
    }

    // True unless a short search finds nothing better than a mapping that is as fast as can be.
    bool is_worth_more(const Mapping& start) {
        if (!is_fastest(best_)) return true;
        const double before = best_.port_seconds;
        begin_pass(params_.first_hops);
        improve(start, kFirstShare);
        return best_.port_seconds * kEqual < before;
    }

    void improve_first(const std::vector<Mapping>& starts) {
        for (std::uint64_t hops = params_.first_hops; !is_done(); hops *= 2) {
            const double before = best_.seconds;
            const bool is_last = hops >= left();
            begin_pass(hops);
            improve_all(starts);
            if (is_last || best_.seconds * kFaster >= before) return;
        }
    }

    void improve_all(const std::vector<Mapping>& starts) {
        const bool are_few = problem_.items <= kFewItems || params_.first_hops < params_.work;
        const bool are_fewer = problem_.items <= kFewForRandom && problem_.leaves <= kFewLeaves;
        const std::size_t random = are_fewer && problem_.start.empty() ? kRandomStarts : 0;
        std::size_t rounds = (are_few ? kHeats.size() : 0) + random;
        const std::size_t improved = std::min(starts.size(), kImproved);
        heat_ = 1.0;
        for (std::size_t i = 0; i < improved && !is_done(); ++i) improve(starts[i], improved + rounds - i);
        for (std::size_t i = 0; i < random && !is_done() && !is_fastest(best_); ++i, --rounds) {
            improve(measured(random_leaves()), rounds);
        }
        for (; rounds > 0 && !is_done() && !is_fastest(best_); --rounds) {
            heat_ = kHeats[kHeats.size() - rounds];
            improve(Mapping(best_), rounds);
        }
    }

    // Of each item, a leaf with room.
    std::vector<Index> random_leaves() {
        std::vector<Index> free, found;
        for (Index leaf = 0; leaf < problem_.leaves; ++leaf)
            free.insert(free.end(), index(problem_.room[index(leaf)]), leaf);
        for (Index item = 0; item < problem_.items; ++item) {
            const std::size_t chosen = index(random_.below(static_cast<Index>(free.size())));
            found.push_back(free[chosen]);
            free[chosen] = free.back();
            free.pop_back();
        }
        return found;
    }

    // Of the starts that take no more time, leaves and GB over uplinks than the best mapping, that in the
    // fewest and fullest domains, if it is in fewer or fuller ones. Port-seconds alone would favour domains
    // with more ports.
    void choose_fullest(const std::vector<Mapping>& starts) {
        if (best_.leaf_of.empty()) return;
        tree_mapping::Use use(problem_, best_.leaf_of);
        std::size_t compared = 0;
        for (const Mapping& one : starts) {
            if (!one.takes_no_more_than(best_)) continue;
            if (++compared > kMostCompared || meter_.stopped()) return;
            const tree_mapping::Use own(problem_, one.leaf_of);
            if (!own.is_fuller_than(use)) continue;
            best_ = one;
            use = own;
        }
    }

    std::vector<Mapping> first_mappings() {
        if (!problem_.start.empty()) return {measured(problem_.start)};
        std::vector<Mapping> found = laid_along_plans();
        const bool is_enough =
            std::ranges::any_of(found, [this](const Mapping& one) { return is_fastest(one); });
        if (!is_enough && has_pairs() && !meter_.stopped()) {
            tree_mapping::TreeMapParams params = params_.items;
            params.stop = meter_.deadline();
            const tree_mapping::TreeMapResult mapped = tree_mapping::map_to_tree(params);
            meter_.look_at_clock();
            if (mapped.found) found.push_back(measured(mapped.leaf_of));
        }
        return found;
    }

    // Whether some tasks exchange in pairs, for which the tree of ports is nearly the whole truth.
    bool has_pairs() const {
        return std::ranges::any_of(params_.job.kinds, [](std::uint8_t kind) {
            return kind == static_cast<std::uint8_t>(traffic::Kind::kPairs) ||
                   kind == static_cast<std::uint8_t>(traffic::Kind::kSends);
        });
    }

    // The first plan is laid before the others and the orders are made: often no start is better.
    std::vector<Mapping> laid_along_plans() {
        std::vector<Mapping> found;
        std::set<std::vector<Index>> known;
        bool has_fastest = false;
        const auto is_last_of = [&](const tree_mapping::Order& order, const Plan& plan) {
            std::vector<Index> leaf_of(index(problem_.items));
            for (std::size_t i = 0; i < order.size(); ++i) leaf_of[index(order[i])] = plan[i];
            if (!known.insert(leaf_of).second) return false;
            found.push_back(measured(leaf_of));
            has_fastest = has_fastest || is_fastest(found.back());
            return spend() || is_last(found.back()) || (has_fastest && has_shared());
        };
        tree_mapping::Order by_number(index(problem_.items));
        std::iota(by_number.begin(), by_number.end(), 0);
        if (const Plan first = first_ring_plan(); !first.empty() && is_last_of(by_number, first))
            return found;
        const std::vector<tree_mapping::Order> orders =
            tree_mapping::orders_of(problem_, kMostOrders, meter_);
        const std::vector<Plan> plans = all_plans();
        for (const tree_mapping::Order& order : orders) {
            for (const Plan& plan : plans) {
                if (is_last_of(order, plan)) return found;
            }
        }
        return found;
    }

    // Enough of the work is done for starts once one is as fast as can be.
    bool has_shared() const { return loads_.work() > params_.work / kStartShare; }

    // Beside others, a later plan may be as good on idle uplinks.
    bool is_last(const Mapping& start) const {
        return left() < params_.work / 2 || (is_enough_at(start) && problem_.others.empty());
    }

    // Plans of both kinds in turn.
    std::vector<Plan> all_plans() {
        std::vector<Plan> others = tree_mapping::plans_of(problem_, kMostPlans, meter_);
        std::vector<Plan> rings = ring_plans(), plans;
        std::set<Plan> known{{}};
        for (std::vector<Plan>* kind : {&rings, &others}) {
            std::erase_if(*kind, [&](const Plan& one) { return !known.insert(one).second; });
        }
        for (std::size_t i = 0; i < std::max(rings.size(), others.size()); ++i) {
            if (i < rings.size()) plans.push_back(std::move(rings[i]));
            if (i < others.size()) plans.push_back(std::move(others[i]));
        }
        return plans;
    }

    std::vector<Plan> ring_plans() {
        std::vector<Plan> plans;
        each_ring_plan([&](Plan plan) {
            plans.push_back(std::move(plan));
            return true;
        });
        return plans;
    }

    // Empty where there is none.
    Plan first_ring_plan() {
        Plan first;
        each_ring_plan([&](Plan plan) {
            first = std::move(plan);
            return false;
        });
        return first;
    }

    // Makes one plan after the other, as long as `take` returns true.
    template <class Take>
    void each_ring_plan(const Take& take) {
        const std::vector<double>& speeds = layout_.speeds();
        const auto all_of = [&](Index block) {
            for (std::size_t i = 0; i < std::min(speeds.size(), kMostSpeeds); ++i) {
                if (!each_on_adapters(block, i + 1 == speeds.size() ? 0.0 : speeds[i], take)) return false;
            }
            return true;
        };
        if (!all_of(problem_.items)) return;
        for (const Index block : group_sizes()) {
            if (!all_of(block)) return;
        }
    }

    // On adapters of at least this speed; false where no more plans are wanted.
    template <class Take>
    bool each_on_adapters(Index block, double speed, const Take& take) {
        const Index depth = ring_depth();
        std::vector<Index> room;
        for (Index leaf = 0; leaf < problem_.leaves; ++leaf) room.push_back(layout_.room(leaf, speed));
        const std::vector<Index> adapters = adapters_around(depth, speed);
        const Index widest = std::max(1, *std::ranges::max_element(adapters));
        for (const Index channels : kChannels) {
            if (channels > block) continue;
            const std::size_t blocks = index(1 + (problem_.items - 1) / block);
            if (meter_.spend(kStepsPerPlace * (blocks * problem_.parent.size() + index(problem_.items))))
                return false;
            if (channels > widest) continue;
            std::vector<Index> own(room);
            for (std::size_t i = 0; i < own.size(); ++i) {
                if (channels > 1 && adapters[i] < channels) own[i] = 0;
            }
            for (const Choice choice : {Choice::kNear, Choice::kLargest, Choice::kTightest}) {
                Plan plan = ring_plan(problem_, own, depth, channels, block, choice);
                if (!plan.empty() && !take(std::move(plan))) return false;
            }
        }
        return true;
    }

    // Of the groups that phases join, but for all items.
    std::vector<Index> group_sizes() {
        std::vector<Index> found;
        for (Index phase = 0; phase < problem_.phases; ++phase) {
            const Index size = group_size(phase);
            const bool is_known = size == problem_.items || std::ranges::find(found, size) != found.end();
            if (size > 1 && !is_known) found.push_back(size);
        }
        return found;
    }

    // Of the groups that a phase joins, if all are equally large; else 0.
    Index group_size(Index phase) {
        std::vector<Index> size(index(problem_.items), 0);
        for (const Index group : group_of(phase)) ++size[index(group)];
        Index common = 0;
        for (const Index one : size) {
            if (one > 0 && common > 0 && one != common) return 0;
            common = std::max(common, one);
        }
        return common;
    }

    // Of each item: an item of the group to which a phase joins it.
    const std::vector<Index>& group_of(Index phase) {
        groups_.resize(index(problem_.phases));
        std::vector<Index>& root = groups_[index(phase)];
        if (!root.empty()) return root;
        root.resize(index(problem_.items));
        std::iota(root.begin(), root.end(), 0);
        const auto find = [&](Index item) {
            while (root[index(item)] != item) item = root[index(item)] = root[index(root[index(item)])];
            return item;
        };
        const std::int64_t begin = phase == 0 ? 0 : problem_.phase_ends[index(phase - 1)];
        for (std::int64_t i = begin; i < problem_.phase_ends[index(phase)]; ++i) {
            if (meter_.pass_time(kStepsPerEdge)) break;
            const auto edge = static_cast<std::size_t>(i);
            root[index(find(problem_.from[edge]))] = find(problem_.to[edge]);
        }
        for (Index item = 0; item < problem_.items; ++item) root[index(item)] = find(item);
        return root;
    }

    // Of each leaf: distinct adapters of at least this speed in its domain, counted up to the most channels.
    std::vector<Index> adapters_around(Index depth, double speed) const {
        const auto& domains = problem_.above[index(depth)];
        std::vector<Index> found(index(problem_.leaves));
        std::vector<std::int32_t> adapters;
        Index begin = 0;
        for (Index leaf = 0; leaf < problem_.leaves; ++leaf) {
            if (static_cast<Index>(adapters.size()) < kChannels[0])
                layout_.add_adapters(leaf, speed, adapters);
            if (leaf + 1 < problem_.leaves && domains[index(leaf + 1)] == domains[index(leaf)]) continue;
            for (; begin <= leaf; ++begin) found[index(begin)] = static_cast<Index>(adapters.size());
            adapters.clear();
        }
        return found;
    }

    // The depth of the domains that join their vertices by rings of their own.
    Index ring_depth() const {
        for (Index depth = 1; depth < problem_.depth; ++depth) {
            if (problem_.own_class[index(depth)] == 1) return depth;
        }
        return problem_.depth;
    }

    double energy() const {
        double sum = loads_.smooth() + kLeafShare * scale_ * layout_.leaves_in_use();
        if (port_scale_ > 0.0) sum += kPortShare * scale_ * loads_.port_seconds() / port_scale_;
        return sum;
    }

    // Spends one of `parts` equal parts of the work that is left.
    void improve(const Mapping& start, std::size_t parts) {
        if (measured(start.leaf_of).seconds == kUnknown) return;
        scale_ = start.seconds > 0.0 ? start.seconds : 1.0;
        port_scale_ = start.port_seconds;
        double now = energy();
        const std::uint64_t first = loads_.work(), first_hop = loads_.hops();
        const auto most = static_cast<double>(left() / parts),
                   most_hops = static_cast<double>(hops_left() / parts);
        const auto done = [&] {
            return std::max(static_cast<double>(loads_.work() - first) / most,
                            static_cast<double>(loads_.hops() - first_hop) / most_hops);
        };
        if (is_done() || most < 1.0 || most_hops < 1.0) return;
        for (std::uint64_t idle = 0; done() < 1.0 && idle < 10000 && !is_done();) {
            const double cooled = 1.0 - done();
            const std::uint64_t before = loads_.work();
            try_step(now, heat_ * scale_ * (kCold + (kHot - kCold) * cooled * cooled));
            idle = loads_.work() == before ? idle + 1 : 0;
            if (spend()) return;
        }
    }

    void try_step(double& now, double warmth) {
        moves_.clear();
        layout_.begin();
        if (!make_step()) return;
        loads_.move(moves_);
        const double then = energy();
        if (then > now + warmth * likely()) {
            loads_.undo();
            layout_.undo();
            return;
        }
        now = then;
        if (loads_.smooth() <= best_.seconds * kReach) note_if_better();
    }

    void note_if_better() {
        Mapping found{loads_.seconds(), loads_.port_seconds()};
        found.leaves = layout_.leaves_in_use();
        if (!found.is_better_than(best_)) return;
        best_ = found;
        best_.has_drifted = true;
        best_.port_gigabytes = loads_.port_gigabytes();
        best_.vertex_of = loads_.vertex_of();
        for (Index item = 0; item < problem_.items; ++item) best_.leaf_of.push_back(layout_.leaf_of(item));
    }

    // False where there is no step of the kind that was drawn.
    bool make_step() {
        const Index item = random_.below(problem_.items), from = layout_.leaf_of(item);
        if (random_.below(4) == 0) {
            const Index task = params_.tasks[index(item * layout_.size() + random_.below(layout_.size()))];
            layout_.exchange(task, random_.below(layout_.places_of(from)), moves_);
            return !moves_.empty();
        }
        const Index target = target_of(item);
        if (target != from && random_.below(8) == 0) return swap_leaves(from, target);
        if (random_.below(16) == 0) return leave(item, from);
        return target != from && problem_.may_go(item, from, target) && move_or_swap(item, from, target);
    }

    bool move_or_swap(Index item, Index from, Index target) {
        const auto& there = layout_.items_on(target);
        if (layout_.has_room(target) && (there.empty() || random_.below(4) != 0)) {
            layout_.move_item(item, target, random_.below(layout_.places_of(target)), moves_);
            return true;
        }
        if (there.empty()) return false;
        const Index other = there[index(random_.below(static_cast<Index>(there.size())))];
        if (!problem_.may_go(other, target, from)) return false;
        layout_.swap_items(item, other, moves_);
        return true;
    }

    // All items of two leaves for each other, if these have equally many.
    bool swap_leaves(Index from, Index target) {
        const std::vector<Index> ours = layout_.items_on(from), theirs = layout_.items_on(target);
        if (ours.size() != theirs.size() || ours.size() < 2) return false;
        for (std::size_t i = 0; i < ours.size(); ++i) {
            if (!problem_.may_go(ours[i], from, target) || !problem_.may_go(theirs[i], target, from))
                return false;
        }
        layout_.begin();
        for (std::size_t i = 0; i < ours.size(); ++i) layout_.swap_items(ours[i], theirs[i], moves_);
        return true;
    }

    // The items of a leaf that exchange something with one of them in a phase go to other leaves.
    bool leave(Index item, Index from) {
        const auto around = problem_.around(item);
        if (around.empty()) return false;
        const Index phase = around[index(random_.below(static_cast<Index>(around.size())))].phase;
        const std::vector<Index>& group = group_of(phase);
        const std::vector<Index> here = layout_.items_on(from);
        for (const Index one : here) {
            if (group[index(one)] != group[index(item)]) continue;
            Index target = from;
            for (Index tries = 0; tries < 8 && (target == from || !layout_.has_room(target)); ++tries) {
                target = target_of(one);
            }
            if (target == from || !layout_.has_room(target) || !problem_.may_go(one, from, target)) continue;
            layout_.move_item(one, target, random_.below(layout_.places_of(target)), moves_);
        }
        return !moves_.empty();
    }

    // Mostly a leaf that is in use, or one near it.
    Index target_of(Index item) {
        const auto around = problem_.around(item);
        const auto any_leaf = [&] {
            return leaves_[index(random_.below(static_cast<Index>(leaves_.size())))];
        };
        const Index kind = random_.below(8);
        if (kind < 2 || problem_.items == 1) return any_leaf();
        if (kind < 5 || around.empty()) return layout_.leaf_of(random_.below(problem_.items));
        const Index near = around[index(random_.below(static_cast<Index>(around.size())))].item;
        return layout_.leaf_of(near);
    }

    // A random number of mean about .4, never above 2: how much worse a step may be, in units of warmth.
    double likely() {
        const double share = static_cast<double>(random_.next() >> 11) * 0x1p-53;
        return 2.0 * (1.0 - share) / (1.0 + share);
    }

    const GangParams& params_;
    const Problem& problem_;
    GangLoads loads_;
    Layout layout_;
    Random random_;
    WorkMeter& meter_;
    std::vector<Index> leaves_{};               // with room
    std::vector<std::vector<Index>> groups_{};  // of each phase, once asked for
    std::vector<Moved> moves_{};
    Mapping best_{};
    double scale_ = 1.0, port_scale_ = 0.0, heat_ = 1.0;
    std::uint64_t spent_ = 0, pass_end_ = 0;
};

}  // namespace

GangResult map_gang(const GangParams& params) {
    TOPOPLACE_ASSERT(!check(params));
    Problem problem(params.items);
    if (!problem.has_enough_room) return {};
    if (problem.items == 0) return {.found = true};
    WorkMeter meter(params.items.stop);
    problem.list_neighbours(meter);  // if it stops, a first mapping needs none
    return Search(params, problem, meter).run();
}

}  // namespace topoplace::gang_mapping
