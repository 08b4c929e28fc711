#include <algorithm>
#include <stdexcept>
#include <string>

#include "match/branch_and_bound.hpp"
#include "match/link_counts.hpp"
#include "match/used_weights.hpp"

namespace topoplace::match {
namespace {

std::size_t at(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }

template <int W>
Bits<W> to_bits(std::span<const std::int32_t> vertices) {
    Bits<W> bits;
    for (const std::int32_t v : vertices) bits.set(v);
    return bits;
}

// One canonical best embedding, in three steps: the best score; the lexicographically smallest vertex set
// that reaches it, vertex by vertex; the lexicographically smallest mapping onto that set.
template <int W, class Score>
class Canonical {
  public:
    using Search = BranchAndBound<W, Score>;

    Canonical(const Pattern::Impl& pattern, const Target::Impl& target, const BitRows& adjacency, Score score,
              const BestParams& params, NodeCounter& counter)
        : pattern_(pattern),
          target_(target),
          counter_(counter),
          search_(pattern, adjacency, score, params, counter) {}

    bool best(const Bits<W>& usable, const Bits<W>& required) {
        usable_ = usable;
        required_ = required;
        if (usable.count() < pattern_.size() || required.count() > pattern_.size()) return false;
        bound_ = search_.root_bound(pattern_.plan(), usable, kNone + 1);
        if (bound_ == kNone) return false;
        const bool found = required.any()
                               ? anchored(Search::Goal::best, required.lowest(), usable, required, kNone + 1)
                               : anywhere();
        if (!found) return false;
        score_ = search_.score();
        vertices_.assign(search_.found().begin(), search_.found().end());
        if (!counter_.stopped()) bound_ = score_;
        return true;
    }

    // After best(): breaks ties. False where the deadline came first.
    bool settle() {
        Bits<W> set = to_bits<W>(vertices_);
        Bits<W> usable = usable_;
        Bits<W> taken = required_;
        Bits<W> undecided = usable - required_;
        while (taken.count() < pattern_.size() && !counter_.stopped()) {
            const std::int32_t v = undecided.lowest();
            undecided.reset(v);
            Bits<W> with = taken;
            with.set(v);
            if (!set.test(v) && anchored(Search::Goal::any, v, usable, with, score_))
                set = to_bits<W>(search_.found());
            (set.test(v) ? taken : usable) = set.test(v) ? with : usable - Bits<W>::single(v);
        }
        if (counter_.stopped()) return false;
        if (!search_.run(pattern_.natural(), Search::Goal::first, set, set, score_, set)) return false;
        vertices_.assign(search_.found().begin(), search_.found().end());
        return true;
    }

    Fixed score() const { return score_; }
    Fixed bound() const { return bound_; }
    std::vector<std::int32_t>&& take_vertices() { return std::move(vertices_); }

  private:
    bool anywhere() {
        typename Search::OrbitMates mates;
        if constexpr (Score::kFollowsWeights) mates = [this] { return orbit_mates(); };
        return search_.run(pattern_.plan(), Search::Goal::best, usable_, required_, kNone + 1, usable_,
                           bound_, std::move(mates));
    }

    std::vector<Bits<W>> orbit_mates() const {
        std::vector<bool> free(at(target_.size()));
        usable_.for_each([&](std::int32_t v) { free[at(v)] = true; });
        const std::vector<std::int32_t> orbit = target_.orbits(free);
        std::vector<Bits<W>> members(at(target_.size()));
        for (std::int32_t v = 0; v < target_.size(); ++v) members[at(orbit[at(v)])].set(v);
        std::vector<Bits<W>> mates(at(target_.size()));
        for (std::int32_t v = 0; v < target_.size(); ++v) mates[at(v)] = members[at(orbit[at(v)])];
        return mates;
    }

    // Embeddings that contain v: one search for each kind of pattern vertex that v may serve as.
    bool anchored(typename Search::Goal goal, std::int32_t v, const Bits<W>& usable, const Bits<W>& required,
                  Fixed floor) {
        bool found = false;
        for (const std::int32_t u : pattern_.representatives()) {
            const bool better =
                search_.run(pattern_.rooted(u), goal, usable, required, floor, Bits<W>::single(v), bound_);
            found = found || better;
            if (better && goal == Search::Goal::best) floor = search_.score() + 1;
            if ((better && goal == Search::Goal::any) || floor > bound_ || counter_.stopped()) break;
        }
        return found;
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    NodeCounter& counter_;
    Search search_;
    Bits<W> usable_;
    Bits<W> required_;
    std::vector<std::int32_t> vertices_;
    Fixed score_ = kNone;
    Fixed bound_ = kNone;
};

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
          counter_(params.deadline) {
        target_.check_comparable();
    }

    BestResult solve(Objective objective) {
        switch (objective) {
            case Objective::sum:
                return sum(min_weight_);
            case Objective::bottleneck:
                return bottleneck(false);
            case Objective::bottleneck_sum:
                return bottleneck(true);
        }
        return {};
    }

    BestResult solve(const LinkCountScore::Impl& score) {
        const BitRows adjacency = target_.adjacency(params_.min_weight);
        return search(adjacency, LinkCounts(target_, score),
                      [&](Fixed rank) { return score.score_of_rank(rank); });
    }

  private:
    // to_double: what a fixed-point score or rank means; rounded, where it is a sum.
    template <class Score, class ToDouble>
    BestResult search(const BitRows& adjacency, Score score, ToDouble&& to_double) {
        BestResult result;
        Canonical<W, Score> canonical(pattern_, target_, adjacency, score, params_, counter_);
        result.found = canonical.best(usable_, required_);
        result.optimal = !counter_.stopped();
        if (result.found) {
            result.complete = result.optimal && canonical.settle();
            result.vertices = canonical.take_vertices();
            rate(result, to_double(canonical.score()), to_double(canonical.bound()));
        }
        result.nodes = counter_.nodes();
        return result;
    }

    // A proven bound is the score itself, to the last bit.
    static void rate(BestResult& result, double score, double bound) {
        result.score = score;
        result.bound = result.optimal ? score : std::max(score, bound);
    }

    BestResult sum(Fixed min_weight) {
        const bool everything = target_.everything(min_weight);
        const Levels levels = everything ? Levels{} : target_.levels_from(min_weight);
        const BitRows adjacency = target_.adjacency(min_weight, params_.min_weight);
        BestResult result = search(adjacency, WeightSum(target_, everything ? target_.levels() : levels),
                                   [&](Fixed sum) { return target_.to_double(sum); });
        if (result.found) rate(result, sum_of(result.vertices), result.bound);
        return result;
    }

    // What bisection over the distinct weights knows: no embedding over edges of weights[refuted] or more,
    // and one (the witness) over those of weights[open], unless that is the end.
    struct Bracket {
        std::ptrdiff_t refuted;
        std::ptrdiff_t open;
        std::vector<std::int32_t> witness;
    };

    BestResult bottleneck(bool then_sum) {
        if (pattern_.num_edges() == 0) return sum(min_weight_);
        Bracket bracket = bisect();
        BestResult result;
        result.nodes = counter_.nodes();
        result.optimal = !counter_.stopped();
        if (bracket.witness.empty()) return result;
        const Fixed threshold = target_.distinct_weights()[at(bracket.open)];
        if (!counter_.stopped()) result = then_sum ? sum(threshold) : at_threshold(threshold);
        if (!result.found) result.vertices = std::move(bracket.witness);
        if (!result.found || !then_sum) describe(result, bracket, then_sum);
        return result;
    }

    Bracket bisect() {
        const auto weights = target_.distinct_weights();
        const auto end = std::upper_bound(weights.begin(), weights.end(), min_weight_, std::greater<>());
        Bracket bracket{-1, end - weights.begin(), {}};
        while (bracket.open - bracket.refuted > 1 && !counter_.stopped()) {
            const std::ptrdiff_t middle = (bracket.refuted + bracket.open) / 2;
            const bool found = exists(weights[at(middle)], bracket.witness);
            if (!found && counter_.stopped()) break;
            (found ? bracket.open : bracket.refuted) = middle;
        }
        return bracket;
    }

    // Score and bound of result.vertices: their bottleneck, or where the deadline left the sum open, their
    // sum.
    void describe(BestResult& result, const Bracket& bracket, bool as_sum) const {
        const auto weights = target_.distinct_weights();
        result.found = true;
        result.optimal = bracket.open - bracket.refuted == 1 && !as_sum;
        if (as_sum) {
            const Fixed most = pattern_.num_edges() * weights[0];
            rate(result, sum_of(result.vertices), target_.to_double(most));
        } else {
            rate(result, lightest_of(result.vertices), target_.to_double(weights[at(bracket.refuted + 1)]));
        }
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

    bool exists(Fixed weight, std::vector<std::int32_t>& witness) {
        const BitRows adjacency = target_.adjacency(weight, params_.min_weight);
        Canonical<W, Existence> canonical(pattern_, target_, adjacency, Existence(adjacency), params_,
                                          counter_);
        if (!canonical.best(usable_, required_)) return false;
        witness = canonical.take_vertices();
        return true;
    }

    BestResult at_threshold(Fixed weight) {
        const BitRows adjacency = target_.adjacency(weight, params_.min_weight);
        return search(adjacency, Existence(adjacency), [](Fixed) { return 0.0; });
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    const BestParams& params_;
    const Bits<W> usable_;
    const Bits<W> required_;
    const Fixed min_weight_;
    NodeCounter counter_;
};

template <class Goal>
BestResult solve(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                 const Goal& goal, const BestParams& params) {
    if (pattern.num_vertices() == 0)
        return {.found = true, .vertices = {}, .optimal = true, .complete = true};
    return with_width(target.num_vertices(),
                      [&](auto width) { return Best<width()>(pattern, target, free, params).solve(goal); });
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
    return solve(pattern, target, free, score.impl(), params);
}

}  // namespace topoplace::match
