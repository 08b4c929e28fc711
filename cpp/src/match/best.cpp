// The best embedding and its proof: branch and bound on the score, bisection over the distinct weights for a
// bottleneck, then ties broken vertex by vertex, so that every machine returns the same answer.
#include "match/sparse/best.hpp"

#include <algorithm>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "graph/index.hpp"
#include "match/branch_and_bound.hpp"
#include "match/graphs/used_weights.hpp"
#include "match/link_counts.hpp"
#include "match/packing/first_mapping.hpp"
#include "match/start_ladder.hpp"

namespace topoplace::match {
namespace {

template <int W>
Bits<W> to_bits(std::span<const std::int32_t> vertices) {
    Bits<W> bits;
    for (const std::int32_t v : vertices) bits.set(v);
    return bits;
}

// One canonical best embedding, in three steps: the best score; the lexicographically smallest vertex set
// that reaches it, vertex by vertex; the lexicographically smallest mapping onto that set.
template <int W, Score S>
class Canonical {
  public:
    Canonical(const Pattern::Impl& pattern, const Target::Impl& target, const BitRows& adjacency, S score,
              const BestParams& params, const Bits<W>& usable, const Bits<W>& required, WorkMeter& meter)
        : pattern_(pattern),
          target_(target),
          meter_(meter),
          adjacency_(adjacency),
          params_(params),
          score_(score),
          search_(pattern, adjacency, score, params, meter),
          usable_(usable),
          required_(required),
          ladder_(pattern, target, adjacency, score_, params, usable_, required_, meter) {}

    // False where none was found.
    bool best() {
        try {
            return find();
        } catch (const Stopped&) {  // by a preparation
            return false;
        }
    }

    // After best(): breaks ties. False where the search was stopped first.
    bool settle() {
        try {
            return break_ties();
        } catch (const Stopped&) {
            return false;
        }
    }

    // Each search of best() visits no more nodes.
    void limit(std::uint64_t nodes) { max_nodes_ = nodes; }
    // Whether that kept one from its end.
    bool is_limited() const { return is_limited_; }

    Fixed score() const { return best_score_; }
    Fixed bound() const { return bound_; }
    std::vector<std::int32_t>&& take_vertices() { return std::move(vertices_); }

  private:
    bool find() {
        if (usable_.count() < pattern_.size() || required_.count() > pattern_.size()) return false;
        if ((required_ - usable_).any()) return false;
        bound_ = search_.root_bound(pattern_.plan(meter_), usable_, kNoScore + 1);
        if (bound_ == kNoScore) return false;
        const SearchResult best =
            required_.any() ? anchored(Goal::best, required_.lowest(), usable_, required_, kNoScore + 1)
                            : anywhere();
        if (!best.found) return false;
        best_score_ = best.score;
        TOPOPLACE_ASSERT(best_score_ <= bound_);
        bound_ = std::min(bound_, best.bound);
        vertices_.assign(best.vertices.begin(), best.vertices.end());
        TOPOPLACE_ASSERT(!(required_ - to_bits<W>(vertices_)).any());
        return true;
    }

    bool break_ties() {
        Bits<W> set = to_bits<W>(vertices_);
        Bits<W> usable = usable_;
        Bits<W> taken = required_;
        Bits<W> undecided = usable - required_;
        const std::uint64_t hard_after = meter_.nodes() + params_.polish_after;
        bool knows_homes = false;
        while (taken.count() < pattern_.size() && !meter_.stopped()) {
            if (!knows_homes && meter_.nodes() >= hard_after) {
                homes_ = ladder_.homes(best_score_);
                knows_homes = true;
            }
            TOPOPLACE_ASSERT(!(taken - set).any() && !(set - usable).any());
            const std::int32_t v = undecided.lowest();
            undecided.reset(v);
            Bits<W> with = taken;
            with.set(v);
            if (!set.test(v)) {
                const SearchResult other = anchored(Goal::any, v, usable, with, best_score_);
                if (other.found) set = to_bits<W>(other.vertices);
            }
            if (set.test(v)) {
                taken = with;
            } else {
                usable.reset(v);
            }
        }
        if (meter_.stopped()) return false;
        TOPOPLACE_ASSERT(taken == set);
        const SearchResult first = search_.run({.plan = pattern_.natural(meter_),
                                                .goal = Goal::first,
                                                .usable = set,
                                                .required = set,
                                                .roots = set,
                                                .floor = best_score_,
                                                .max_nodes = max_nodes_});
        if (!first.found) return false;
        TOPOPLACE_ASSERT(first.score == best_score_);
        vertices_.assign(first.vertices.begin(), first.vertices.end());
        return true;
    }

    SearchResult anywhere() {
        SearchTask<W> task{.plan = pattern_.plan(meter_),
                           .usable = usable_,
                           .required = required_,
                           .roots = usable_,
                           .enough = bound_,
                           .max_nodes = max_nodes_};
        ladder_.lower_bound_to(bound_);
        if constexpr (S::kFollowsWeights) task.orbit_mates = [this] { return orbit_mates(); };
        if constexpr (!std::same_as<S, Existence>)
            task.ask_starts = [this](Fixed need) { return ladder_.next(need); };
        const SearchResult result = search_.run(std::move(task));
        is_limited_ = result.is_limited;
        return result;
    }

    // Every vertex alone where there is no time to tell.
    std::vector<std::int32_t> orbits(const std::vector<bool>& free) const {
        try {
            return target_.orbits(free, meter_);
        } catch (const Stopped&) {
            return orbits_of(target_.size(), {});
        }
    }

    std::vector<Bits<W>> orbit_mates() const {
        std::vector<bool> free(index(target_.size()));
        usable_.for_each([&](std::int32_t v) { free[index(v)] = true; });
        const std::vector<std::int32_t> orbit = orbits(free);
        std::vector<Bits<W>> members(index(target_.size()));
        for (std::int32_t v = 0; v < target_.size(); ++v) members[index(orbit[index(v)])].set(v);
        std::vector<Bits<W>> mates(index(target_.size()));
        for (std::int32_t v = 0; v < target_.size(); ++v) mates[index(v)] = members[index(orbit[index(v)])];
        return mates;
    }

    // Embeddings that contain v.
    SearchResult anchored(Goal goal, std::int32_t v, const Bits<W>& usable, const Bits<W>& required,
                          Fixed floor) {
        if (homes_.empty()) return anchored_in(usable, goal, v, required, floor);
        for (const Bits<W>& home : homes_) {
            const Bits<W> here = home & usable;
            if (here.count() < pattern_.size() || (required - here).any() || meter_.stopped()) continue;
            if (ladder_.bound_within(here, floor) < floor) continue;
            const SearchResult result = anchored_in(here, goal, v, required, floor);
            if (result.found) return result;
        }
        return {};
    }

    // One search for each kind of pattern vertex that v may serve as.
    SearchResult anchored_in(const Bits<W>& usable, Goal goal, std::int32_t v, const Bits<W>& required,
                             Fixed floor) {
        TOPOPLACE_ASSERT(required.test(v) && usable.test(v));
        SearchResult best;
        for (const std::int32_t u : pattern_.representatives(meter_)) {
            const SearchResult result = search_.run({.plan = pattern_.rooted(u, meter_),
                                                     .goal = goal,
                                                     .usable = usable,
                                                     .required = required,
                                                     .roots = Bits<W>::single(v),
                                                     .floor = floor,
                                                     .enough = bound_,
                                                     .max_nodes = max_nodes_});
            is_limited_ = is_limited_ || result.is_limited;
            if (result.found) best = result;
            best.bound = result.bound;
            if (best.found && goal == Goal::best) floor = best.need;
            if ((best.found && goal == Goal::any) || floor > bound_ || meter_.stopped()) break;
        }
        return best;
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    WorkMeter& meter_;
    const BitRows& adjacency_;
    const BestParams& params_;
    const S score_;
    BranchAndBound<W, S> search_;
    const Bits<W> usable_;
    const Bits<W> required_;
    StartLadder<W, S> ladder_;
    std::vector<Bits<W>> homes_;
    std::vector<std::int32_t> vertices_;
    std::uint64_t max_nodes_ = kEndless;
    bool is_limited_ = false;
    Fixed best_score_ = kNoScore;
    Fixed bound_ = kNoScore;
};

// What decides between embeddings of the same bottleneck.
enum class Secondary {
    none,  // the canonical order alone
    sum,   // the larger sum of weights
};

// The bound of an optimal score is that score, to the last bit.
double bound_of(double score, bool optimal, double bound) { return optimal ? score : std::max(score, bound); }

// One call of best_subgraph at a compiled width.
template <int W>
class Best {
  public:
    Best(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
         const BestParams& params)
        : pattern_(pattern.impl()),
          target_(target.impl()),
          params_(params),
          usable_(to_bits<W>(free)),
          required_(to_bits<W>(params.required)),
          min_weight_(target_.to_fixed(params.min_weight)),
          meter_(params.stop) {
        target_.check_comparable();
    }

    BestResult solve(Objective objective) {
        switch (objective) {
            case Objective::sum:
                return sum(min_weight_);
            case Objective::bottleneck:
                return bottleneck(Secondary::none);
            case Objective::bottleneck_sum:
                return bottleneck(Secondary::sum);
        }
        return {};
    }

    BestResult solve(const LinkCountScore::Impl& score) {
        return unless_stopped([&] {
            const BitRows adjacency = target_.adjacency(params_.min_weight, meter_);
            return search(adjacency, LinkCounts(target_, score),
                          [&](Fixed rank) { return score.score_of_rank(rank); });
        });
    }

  private:
    static constexpr std::uint64_t kNodesPerTest = 1U << 12;

    // to_double: what a fixed-point score or rank means; rounded, where it is a sum.
    template <Score S, std::invocable<Fixed> ToDouble>
    BestResult search(const BitRows& adjacency, S score, ToDouble&& to_double) {
        Canonical<W, S> canonical(pattern_, target_, adjacency, score, params_, usable_, required_, meter_);
        const bool found = canonical.best();
        if (!found) return {.optimal = !meter_.stopped(), .nodes = meter_.nodes()};
        const bool optimal = canonical.score() == canonical.bound();
        const bool complete = optimal && params_.tolerance == 0 && !meter_.stopped() && canonical.settle();
        const double reached = to_double(canonical.score());
        return {.found = true,
                .vertices = canonical.take_vertices(),
                .score = reached,
                .bound = bound_of(reached, optimal, to_double(canonical.bound())),
                .optimal = optimal,
                .complete = complete,
                .nodes = meter_.nodes()};
    }

    // Without an answer where a preparation is stopped.
    template <std::invocable Search>
    BestResult unless_stopped(Search&& search) const {
        try {
            return search();
        } catch (const Stopped&) {
            return {.nodes = meter_.nodes()};
        }
    }

    BestResult sum(Fixed min_weight) {
        return unless_stopped([&] { return largest_sum(min_weight); });
    }

    BestResult largest_sum(Fixed min_weight) {
        const bool everything = target_.everything(min_weight);
        const Levels levels = everything ? Levels{} : target_.levels_from(min_weight, meter_);
        const BitRows adjacency = target_.adjacency(min_weight, params_.min_weight, meter_);
        BestResult result = search(adjacency, WeightSum(target_, everything ? target_.levels() : levels),
                                   [&](Fixed sum) { return target_.to_double(sum); });
        if (!result.found) return result;
        result.score = sum_of(result.vertices);
        result.bound = bound_of(result.score, result.optimal, result.bound);
        return result;
    }

    // What bisection over the distinct weights knows: no embedding over edges of weights[refuted] or more,
    // and one (the witness) over those of weights[open], unless that is the end.
    struct Bracket {
        std::ptrdiff_t refuted;
        std::ptrdiff_t open;
        std::vector<std::int32_t> witness;
        double tolerance;  // how much heavier than weights[open] what is not refuted may be
    };

    BestResult bottleneck(Secondary secondary) {
        if (pattern_.num_edges() == 0) return sum(min_weight_);
        Bracket bracket = bisect(secondary == Secondary::none ? params_.tolerance : 0);
        if (bracket.witness.empty()) return {.optimal = !meter_.stopped(), .nodes = meter_.nodes()};
        return secondary == Secondary::sum ? sum_above(std::move(bracket))
                                           : at_bottleneck(std::move(bracket));
    }

    Bracket bisect(double tolerance) {
        const auto weights = target_.distinct_weights();
        const auto end = std::upper_bound(weights.begin(), weights.end(), min_weight_, std::greater<>());
        Bracket bracket{.refuted = -1, .open = end - weights.begin(), .witness = {}, .tolerance = tolerance};
        if (weights.size() > kMaxLevels) {
            start(bracket);
            narrow(bracket, 1, false);
        }
        for (std::uint64_t most = kNodesPerTest; !is_decided(bracket) && !meter_.stopped(); most *= 8) {
            narrow(bracket, most, true);
            narrow(bracket, most, false);
        }
        TOPOPLACE_ASSERT(bracket.refuted < bracket.open);
        TOPOPLACE_ASSERT(bracket.witness.empty() == (bracket.open == end - weights.begin()));
        return bracket;
    }

    bool is_decided(const Bracket& bracket) const {
        if (bracket.open - bracket.refuted <= 1) return true;
        return bracket.tolerance > 0 && !bracket.witness.empty() &&
               weight_of(bracket.refuted + 1) <= raised(weight_of(bracket.open), bracket.tolerance);
    }

    // Bisection with tests of at most `most_nodes` nodes. `up`: what a test does not decide counts as
    // refuted, so that the best embedding to be had is found; otherwise as open, so that as much as can be is
    // refuted.
    void narrow(Bracket& bracket, std::uint64_t most_nodes, bool up) {
        std::ptrdiff_t low = bracket.refuted;
        std::ptrdiff_t high = bracket.open;
        while (high - low > 1 && !is_decided(bracket) && !meter_.stopped()) {
            const std::ptrdiff_t middle = (low + high) / 2;
            Test test = embedding_above(weight_of(middle), most_nodes);
            if (test.is_found) {
                bracket.open = high = middle;
                bracket.witness = std::move(test.witness);
            } else if (test.is_refuted) {
                bracket.refuted = low = middle;
            } else {
                (up ? low : high) = middle;
            }
        }
    }

    // Among many weights, as measured ones are, a good first embedding saves the tests of most of them.
    void start(Bracket& bracket) {
        std::vector<std::int32_t> mapping;
        try {
            mapping = first_mapping(pattern_, target_, all_of(usable_), 0, meter_);
        } catch (const Stopped&) {
            return;
        }
        Fixed lightest = std::numeric_limits<Fixed>::max();
        for (std::int32_t u = 0; u < std::ssize(mapping); ++u) {
            for (const std::int32_t v : pattern_.neighbors(u))
                lightest = std::min(lightest, target_.weight(mapping[index(u)], mapping[index(v)]));
        }
        const auto weights = target_.distinct_weights();
        const auto rank = std::lower_bound(weights.begin(), weights.end(), lightest, std::greater<>());
        const bool is_embedding = !mapping.empty() && rank - weights.begin() < bracket.open &&
                                  lightest_of(mapping) >= params_.min_weight;
        if (!is_embedding || (required_ - to_bits<W>(mapping)).any()) return;
        bracket.open = rank - weights.begin();
        bracket.witness = std::move(mapping);
    }

    // Of the embeddings with the best bottleneck the one of largest sum; the witness where time does not
    // allow it.
    BestResult sum_above(Bracket bracket) {
        if (!meter_.stopped()) {
            BestResult result = sum(weight_of(bracket.open));
            if (result.found) return result;
        }
        const Fixed most = pattern_.num_edges() * target_.distinct_weights()[0];
        return witnessed(std::move(bracket.witness), most);
    }

    BestResult witnessed(std::vector<std::int32_t>&& witness, Fixed most) const {
        TOPOPLACE_ASSERT(meter_.stopped());
        const double score = sum_of(witness);
        return {.found = true,
                .vertices = std::move(witness),
                .score = score,
                .bound = bound_of(score, false, target_.to_double(most)),
                .nodes = meter_.nodes()};
    }

    // The canonical embedding with the best bottleneck; the witness where time does not allow it.
    BestResult at_bottleneck(Bracket bracket) {
        const bool keeps_witness = params_.tolerance > 0 || meter_.stopped();
        const BestResult tied = keeps_witness ? BestResult{} : above(weight_of(bracket.open));
        const bool proven = bracket.open - bracket.refuted == 1;
        auto vertices = tied.found ? tied.vertices : std::move(bracket.witness);
        const double score = lightest_of(vertices);
        const double bound = bound_of(score, proven, target_.to_double(weight_of(bracket.refuted + 1)));
        return {.found = true,
                .vertices = std::move(vertices),
                .score = score,
                .bound = bound,
                .optimal = proven || score == bound,
                .complete = tied.complete,
                .nodes = meter_.nodes()};
    }

    Fixed weight_of(std::ptrdiff_t rank) const {
        return target_.distinct_weights()[static_cast<std::size_t>(rank)];
    }

    double sum_of(const std::vector<std::int32_t>& vertices) const {
        return sum_of_used_weights(pattern_, target_, vertices);
    }
    double lightest_of(const std::vector<std::int32_t>& vertices) const {
        double lightest = std::numeric_limits<double>::infinity();
        for_each_used_weight(pattern_, target_, vertices,
                             [&](double weight) { lightest = std::min(lightest, weight); });
        return lightest;
    }

    struct Test {
        bool is_found = false;
        bool is_refuted = false;
        std::vector<std::int32_t> witness{};
    };

    // Is there some embedding over edges of at least this weight?
    Test embedding_above(Fixed weight, std::uint64_t most_nodes) {
        try {
            const BitRows adjacency = target_.adjacency(weight, params_.min_weight, meter_);
            const Bits<W> usable = core(adjacency, usable_, pattern_.min_degree());
            Canonical<W, Existence> canonical(pattern_, target_, adjacency, Existence(adjacency), params_,
                                              usable, required_, meter_);
            canonical.limit(most_nodes);
            const bool found = canonical.best();
            return {.is_found = found,
                    .is_refuted = !found && !meter_.stopped() && !canonical.is_limited(),
                    .witness = canonical.take_vertices()};
        } catch (const Stopped&) {
            return {};
        }
    }

    // The canonical one of these, rated 0.
    BestResult above(Fixed weight) {
        return unless_stopped([&] {
            const BitRows adjacency = target_.adjacency(weight, params_.min_weight, meter_);
            return search(adjacency, Existence(adjacency), [](Fixed) { return 0.0; });
        });
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    const BestParams& params_;
    const Bits<W> usable_;
    const Bits<W> required_;
    const Fixed min_weight_;
    WorkMeter meter_;
};

Objective goal_of(Objective objective) { return objective; }
const LinkCountScore::Impl& goal_of(const LinkCountScore& score) { return score.impl(); }

template <class Goal>
BestResult searched(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                    const Goal& goal, const BestParams& params) {
    if constexpr (std::is_same_v<Goal, Objective>) {
        if (target.is_sparse())
            return sparse::best_subgraph(pattern.impl(), target.sparse(), free, goal, params);
    }
    target.impl(params.stop);
    return with_width(target.num_vertices(), [&](auto width) {
        return Best<width()>(pattern, target, free, params).solve(goal_of(goal));
    });
}

template <class Goal>
BestResult solve(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                 const Goal& goal, const BestParams& params) {
    if (pattern.num_vertices() == 0) return {.found = true, .optimal = true, .complete = true};
    const BestResult found = searched(pattern, target, free, goal, params);
    if (found.found || found.optimal) return found;
    BestResult plain = plain_subgraph(pattern.impl().graph(), target.graph(), free, goal, params);
    plain.nodes = found.nodes;
    return plain;
}

}  // namespace

BestResult best_subgraph(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                         Objective objective, const BestParams& params) {
    return solve(pattern, target, free, objective, params);
}

BestResult best_subgraph(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                         const LinkCountScore& score, const BestParams& params) {
    if (score.impl().num_edges() != pattern.num_edges()) {
        throw std::invalid_argument("the score is for patterns of " +
                                    std::to_string(score.impl().num_edges()) + " edges; this one has " +
                                    std::to_string(pattern.num_edges()));
    }
    return solve(pattern, target, free, score, params);
}

}  // namespace topoplace::match
