// The best embedding by any objective, in either layout of the target: sums by branch and bound, bottlenecks
// by bisection over the distinct weights.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "match/bracket.hpp"
#include "match/graphs/pattern.hpp"
#include "match/graphs/used_weights.hpp"
#include "match/link_counts.hpp"

namespace topoplace::match {

// The searches of a layout. What is not prepared where the meter stops is empty, or not found.
template <class Searches>
concept BestSearches = requires(Searches& searches, Fixed weight, Bracket& bracket) {
    { searches.target().graph() } -> std::convertible_to<const Graph&>;
    { searches.to_double(weight) } -> std::same_as<double>;
    // Lighter edges do not exist.
    { searches.min_weight() } -> std::same_as<Fixed>;
    // Those of the target, heaviest first.
    { searches.distinct_weights() } -> std::same_as<std::span<const Fixed>>;
    // Narrows the bracket until it is decided or the search is stopped.
    { searches.decide(bracket) } -> std::same_as<void>;
};
// Besides, over edges of at least this weight: with_sums(weight, visit) and with_existence(weight, visit)
// return what `visit` makes of a Canonical for the sum of weights or for any embedding.

template <BestSearches Searches>
class Best {
  public:
    // args: what Searches takes besides.
    template <class... Args>
    Best(const Pattern::Impl& pattern, const BestParams& params, const Args&... args)
        : pattern_(pattern),
          params_(params),
          meter_(params.stop),
          searches_(pattern, params, meter_, args...) {}

    BestResult solve(Objective objective) {
        if (objective == Objective::sum || pattern_.num_edges() == 0)
            return largest_sum(searches_.min_weight());
        return bottleneck(objective);
    }

    BestResult solve(const LinkCountScore::Impl& score) {
        return searches_.with_counts(score, [&](auto& canonical) {
            return settled(canonical, [&](Fixed rank) { return score.score_of_rank(rank); });
        });
    }

  private:
    BestResult nothing() const { return {.optimal = !meter_.stopped(), .nodes = meter_.nodes()}; }

    // The bound of an optimal score is that score, to the last bit.
    static double bound_of(double score, bool optimal, double bound) {
        return optimal ? score : std::max(score, bound);
    }

    // to_double: what a fixed-point score or rank means; rounded, where it is a sum.
    template <class Canonical, std::invocable<Fixed> ToDouble>
    BestResult settled(Canonical& canonical, ToDouble&& to_double) {
        if (!canonical.best()) return nothing();
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

    BestResult largest_sum(Fixed weight) {
        BestResult result = searches_.with_sums(weight, [&](auto& canonical) {
            return settled(canonical, [&](Fixed sum) { return searches_.to_double(sum); });
        });
        if (!result.found) return result;
        result.score = sum_of(result.vertices);
        result.bound = bound_of(result.score, result.optimal, result.bound);
        return result;
    }

    // The canonical one over edges of at least this weight, rated 0.
    BestResult any(Fixed weight) {
        return searches_.with_existence(
            weight, [&](auto& canonical) { return settled(canonical, [](Fixed) { return 0.0; }); });
    }

    BestResult bottleneck(Objective objective) {
        const bool by_sum = objective == Objective::bottleneck_sum;
        Bracket bracket(searches_.distinct_weights(), searches_.min_weight(), by_sum ? 0 : params_.tolerance);
        searches_.decide(bracket);
        TOPOPLACE_ASSERT(bracket.is_decided() || meter_.stopped());
        if (!bracket.is_found()) return nothing();
        return by_sum ? sum_above(bracket) : at_bottleneck(bracket);
    }

    // Of the embeddings with the best bottleneck the one of largest sum; the witness where time does not
    // allow it.
    BestResult sum_above(Bracket& bracket) {
        if (!meter_.stopped()) {
            BestResult result = largest_sum(bracket.weight(bracket.open()));
            if (result.found) return result;
        }
        TOPOPLACE_ASSERT(meter_.stopped());
        std::vector<std::int32_t> witness = bracket.take_witness();
        const double score = sum_of(witness);
        const double most = searches_.to_double(pattern_.num_edges() * bracket.weight(0));
        return {.found = true,
                .vertices = std::move(witness),
                .score = score,
                .bound = bound_of(score, false, most),
                .nodes = meter_.nodes()};
    }

    // The canonical embedding with the best bottleneck; the witness where time does not allow it.
    BestResult at_bottleneck(Bracket& bracket) {
        const bool keeps_witness = params_.tolerance > 0 || meter_.stopped();
        const BestResult tied = keeps_witness ? BestResult{} : any(bracket.weight(bracket.open()));
        auto vertices = tied.found ? tied.vertices : bracket.take_witness();
        const double score = lightest_used_weight(pattern_, searches_.target(), vertices);
        const double bound = bound_of(score, bracket.is_proven(), searches_.to_double(bracket.bound()));
        return {.found = true,
                .vertices = std::move(vertices),
                .score = score,
                .bound = bound,
                .optimal = bracket.is_proven() || score == bound,
                .complete = tied.complete,
                .nodes = meter_.nodes()};
    }

    double sum_of(const std::vector<std::int32_t>& vertices) const {
        return sum_of_used_weights(pattern_, searches_.target(), vertices);
    }

    const Pattern::Impl& pattern_;
    const BestParams& params_;
    WorkMeter meter_;
    Searches searches_;
};

}  // namespace topoplace::match
