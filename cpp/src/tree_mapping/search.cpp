// Starts from every order of the items laid along every plan of filling the tree. If there are few mappings,
// all are compared, and the best is proven to be. Else, unless a start is as fast as can be, the items are
// also divided along the tree so that little is exchanged between domains. The best starts are improved by
// moves and swaps: first until no port takes longer than the bound of its phase, then for fewer port-seconds
// at no more time. Worse steps are accepted less and less. At the end the items are laid along the plans once
// more in the order that was found, for fewer leaves.
#include <algorithm>
#include <cmath>

#include "topoplace/random.hpp"
#include "tree_mapping/bound.hpp"
#include "tree_mapping/starts.hpp"

namespace topoplace::tree_mapping {
namespace {

constexpr std::size_t kImproved = 4;           // starts that are improved for port-seconds
constexpr std::size_t kImprovedForTime = 2;    // the same for time
constexpr std::uint64_t kMostCompared = 4096;  // mappings that are all compared
constexpr std::uint64_t kFirstMoves = 48;      // for each item, before more are made
constexpr double kHot = 1.5, kCold = 0.03;     // in mean steps of an edge, for port-seconds
constexpr double kHotForTime = 3.0;            // the same for time
constexpr double kExcess = 8.0, kTime = 200.0;

class Search {
  public:
    Search(const TreeMapParams& params, Problem& problem)
        : problem_(problem),
          loads_(problem),
          random_(params.seed),
          meter_(params.stop),
          left_(params.moves),
          starts_(problem, loads_, meter_, params.moves) {
        list_leaves();
        problem.list_neighbours(meter_);
        const Least least = least_times(problem, meter_);
        bound_ = least.seconds;
        loads_.aim_at(aims(least.phases));
    }

    TreeMapResult run(std::uint64_t seed) {
        const std::uint64_t all = left_;
        std::vector<Found> starts = first_mappings(seed);
        if (best_.seconds > bound_ * kEqual && !starts.empty()) improve_time(starts);
        improve_ports(std::move(starts));
        if (problem_.start.empty() && !meter_.stopped()) starts_.refill(best_);
        if (all > left_) measure_best();
        return {.found = true,
                .leaf_of = best_.leaf_of,
                .seconds = best_.seconds,
                .port_seconds = best_.port_seconds,
                .bound = bound_,
                .complete = !meter_.stopped(),
                .moves = all - left_};
    }

  private:
    void list_leaves() {
        group_of_.assign(at(problem_.leaves), 0);
        leaves_in_.resize(problem_.parent.size());
        for (Index leaf = 0; leaf < problem_.leaves; ++leaf) {
            const Index group = problem_.above[at(std::max(0, problem_.depth - 1))][at(leaf)];
            group_of_[at(leaf)] = group;
            if (problem_.room[at(leaf)] == 0) continue;
            leaves_.push_back(leaf);
            leaves_in_[at(group)].push_back(leaf);
        }
    }

    // Compares all mappings; false if there are too many, or a start from which to search.
    bool compare_all() {
        std::uint64_t count = 1;
        for (Index i = 0; i < problem_.items; ++i) {
            count *= leaves_.size();
            if (count > kMostCompared) return false;
        }
        if (!problem_.start.empty() || left_ < count || leaves_.empty()) return false;
        left_ -= count;
        std::vector<Index> free(problem_.room), leaf_of(at(problem_.items));
        return compare_from(0, free, leaf_of);
    }

    // Tries each leaf for this item and those after it; false if the search has to stop.
    bool compare_from(Index item, std::vector<Index>& free, std::vector<Index>& leaf_of) {
        if (item == problem_.items) {
            loads_.set(leaf_of);
            keep_if_better();
            return !meter_.spend(kStepsPerPort * loads_.size() + kStepsPerEdge * problem_.from.size());
        }
        for (const Index leaf : leaves_) {
            if (free[at(leaf)] == 0) continue;
            --free[at(leaf)];
            leaf_of[at(item)] = leaf;
            if (!compare_from(item + 1, free, leaf_of)) return false;
            ++free[at(leaf)];
        }
        return true;
    }

    // True unless a short search finds nothing better than a mapping that is as fast as can be.
    bool is_worth_more() {
        if (best_.seconds > bound_ * kEqual) return true;
        const double before = best_.port_seconds;
        improve(Found(best_), kFirstMoves * static_cast<std::uint64_t>(problem_.items), false);
        return best_.port_seconds * kEqual < before;
    }

    bool is_done() const { return best_.seconds <= bound_ * kEqual && best_.port_seconds <= 0.0; }

    // What the loads are now becomes the best mapping; false unless it is better.
    bool keep_if_better() {
        Found found = found_in(loads_);
        if (!found.is_better_than(best_)) return false;
        found.leaf_of = loads_.leaf_of();
        best_ = std::move(found);
        return true;
    }

    // Sums of floats drift in the search.
    void measure_best() {
        loads_.set(best_.leaf_of);
        best_.seconds = loads_.seconds();
        best_.port_seconds = loads_.port_seconds();
    }

    // Finds the first best mapping; none to improve if all were compared.
    std::vector<Found> first_mappings(std::uint64_t seed) {
        if (!problem_.start.empty()) {
            loads_.set(problem_.start);
            best_ = found_in(loads_);
            best_.leaf_of = problem_.start;
            return {best_};
        }
        const auto better = [](const Found& one, const Found& other) { return one.is_better_than(other); };
        starts_.lay_orders();
        best_ = *std::ranges::min_element(starts_.found(), better);
        if (!is_done() && compare_all()) {
            bound_ = best_.seconds;
            return {};
        }
        if (best_.seconds > bound_ * kEqual) {
            left_ -= starts_.lay_divisions(seed);
            best_ = *std::ranges::min_element(starts_.found(), better);
        }
        return std::move(starts_.found());
    }

    // The start of the least excess, and the fastest.
    void improve_time(const std::vector<Found>& starts) {
        const std::uint64_t moves = left_ / 8 * 3;
        const Found fastest = best_;
        const Found& least = *std::ranges::min_element(starts, {}, &Found::excess);
        improve(least, moves, true);
        improve(fastest, moves, true);
    }

    // The best of the starts, and the best mapping so far.
    void improve_ports(std::vector<Found> starts) {
        const auto better = [](const Found& one, const Found& other) { return one.is_better_than(other); };
        if (!starts.empty()) starts.insert(starts.begin(), best_);
        std::ranges::stable_sort(starts, better);
        if (starts.size() > kImproved) starts.resize(kImproved);
        if (!starts.empty() && !is_worth_more()) starts.clear();
        for (std::size_t i = 0; i < starts.size() && !is_done(); ++i) {
            improve(starts[i], left_ / (starts.size() - i), false);
        }
    }

    // Seconds of an edge of middling GB through an uplink, in which steps are measured.
    double step() const {
        double both = 0.0, per_gb = 0.0;
        for (const double one : problem_.gigabytes) both += one;
        for (const double one : problem_.per_gb) per_gb = std::max(per_gb, one);
        const double mean = both / 2 / static_cast<double>(std::max<std::size_t>(1, problem_.from.size()));
        return mean * per_gb > 0.0 ? 2 * mean * per_gb : 1.0;
    }

    double energy(bool for_time) const {
        if (for_time) return loads_.excess() * kExcess + loads_.port_seconds() / step_ * 0.1;
        const double over = std::max(0.0, loads_.seconds() - best_.seconds * kEqual);
        return loads_.port_seconds() / step_ + (best_.seconds > 0.0 ? over / best_.seconds : over) * kTime;
    }

    void improve(const Found& start, std::uint64_t moves, bool for_time) {
        if (problem_.items == 0 || leaves_.empty() || meter_.stopped()) return;
        loads_.set(start.leaf_of);
        step_ = step();
        const double hot = for_time ? kHotForTime : kHot;
        double now = energy(for_time);
        moves = std::min(moves, left_);
        for (std::uint64_t i = 0; i < moves; ++i) {
            --left_;
            if (meter_.spend(kStepsPerEdge + kStepsPerPort * loads_.take_ports_read())) return;
            const double cooled = 1.0 - static_cast<double>(i) / static_cast<double>(moves);
            try_step(now, kCold + (hot - kCold) * cooled * cooled, for_time);
            if (is_done() || (for_time && best_.seconds <= bound_ * kEqual)) return;
        }
    }

    static std::vector<double> aims(std::vector<double> aims) {
        for (std::size_t i = 0; i < aims.size(); ++i) {
            if (aims[i] <= 0.0) aims[i] = 1e-12;
        }
        return aims;
    }

    void try_step(double& now, double warmth, bool for_time) {
        const Index item = random_.below(problem_.items);
        const Index from = loads_.leaf_of()[at(item)], target = target_of(item);
        if (target == from || !problem_.may_go(item, from, target)) return;
        Index other = -1;
        const auto& there = loads_.items_on(target);
        if (!loads_.has_room(target) || (!there.empty() && random_.below(4) == 0)) {
            other = there[at(random_.below(static_cast<Index>(there.size())))];
            if (!problem_.may_go(other, target, from)) return;
        }
        step_to(item, other, target);
        meter_.spend(kStepsPerEdge * problem_.around(item).size());
        const double then = energy(for_time);
        if (then > now + warmth * likely()) {
            step_to(item, other, from);
            return;
        }
        now = then;
        if (keep_if_better()) now = energy(for_time);
    }

    void step_to(Index item, Index other, Index leaf) {
        if (other < 0) {
            loads_.move(item, leaf);
        } else {
            loads_.swap(item, other);
        }
    }

    // A random number of mean about .4, larger than 2 never: how much worse a step may be, in units of
    // warmth.
    double likely() {
        const double share = static_cast<double>(random_.next() >> 11) * 0x1p-53;
        return 2.0 * (1.0 - share) / (1.0 + share);
    }

    Index any_of(const std::vector<Index>& leaves) {
        return leaves[at(random_.below(static_cast<Index>(leaves.size())))];
    }

    // Mostly where a neighbour is, or near it.
    Index target_of(Index item) {
        const auto around = problem_.around(item);
        if (!around.empty() && random_.below(8) != 0) {
            const Index near = around[at(random_.below(static_cast<Index>(around.size())))].item;
            const Index leaf = loads_.leaf_of()[at(near)];
            return random_.below(3) == 0 ? leaf : any_of(leaves_in_[at(group_of_[at(leaf)])]);
        }
        if (random_.below(2) == 0) return loads_.leaf_of()[at(random_.below(problem_.items))];
        return any_of(leaves_);
    }

    const Problem& problem_;
    Loads loads_;
    Random random_;
    WorkMeter meter_;
    std::uint64_t left_;
    Starts starts_;
    double bound_ = 0.0;
    double step_ = 1.0;
    Found best_{};
    std::vector<Index> leaves_{};  // with room
    std::vector<Index> group_of_{};
    std::vector<std::vector<Index>> leaves_in_{};
};

}  // namespace

TreeMapResult map_to_tree(const TreeMapParams& params) {
    Problem problem(params);
    if (!problem.has_enough_room) return {};
    return Search(params, problem).run(params.seed);
}

}  // namespace topoplace::tree_mapping
