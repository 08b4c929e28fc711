// The objectives: sums by branch and bound, bottlenecks by bisection over the distinct weights.
#include "match/sparse/best.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "match/graphs/used_weights.hpp"
#include "match/sparse/canonical.hpp"

namespace topoplace::match::sparse {
namespace {

using Vertices = std::vector<std::int32_t>;

Vertices ascending(std::span<const std::int32_t> vertices) {
    Vertices sorted(vertices.begin(), vertices.end());
    if (!std::is_sorted(sorted.begin(), sorted.end())) std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    return sorted;
}

class Best {
  public:
    Best(const Pattern::Impl& pattern, const Target::Sparse& target, std::span<const std::int32_t> free,
         const BestParams& params)
        : pattern_(pattern),
          target_(target),
          free_(ascending(free)),
          required_(ascending(params.required)),
          min_weight_(params.min_weight),
          tolerance_(params.tolerance),
          meter_(params.stop) {
        target_.points().check_comparable();
    }

    // Without an answer where a preparation is stopped.
    BestResult solve(Objective objective) {
        try {
            if (objective == Objective::sum || pattern_.num_edges() == 0) return largest_sum(1);
            return bottleneck(objective);
        } catch (const Stopped&) {
            return {.nodes = meter_.nodes()};
        }
    }

  private:
    // Over edges of at least this weight.
    Canonical search(Fixed weight, Worth worth) {
        const double least = std::max(min_weight_, target_.points().least(weight));
        return {pattern_, target_, least, worth, free_, required_, meter_, tolerance_};
    }

    BestResult largest_sum(Fixed weight) {
        Canonical canonical = search(weight, Worth::weights);
        const bool found = canonical.best();
        if (!found) return {.optimal = !meter_.stopped(), .nodes = meter_.nodes()};
        const bool proven = canonical.score() == canonical.bound();
        const bool complete = proven && tolerance_ == 0 && !meter_.stopped() && canonical.settle();
        const double bound = target_.points().to_double(canonical.bound());
        return answer(canonical.take_vertices(), bound,
                      {.sum = true, .proven = proven, .complete = complete});
    }

    // What bisection over the distinct weights knows: no embedding over edges of weights[refuted] or more,
    // and one (the witness) over those of weights[open], unless that is the end.
    struct Bracket {
        std::ptrdiff_t refuted;
        std::ptrdiff_t open;
        Vertices witness;
    };

    BestResult bottleneck(Objective objective) {
        const auto weights = target_.distinct_weights(meter_);
        const Bracket bracket = bisect(weights, objective == Objective::bottleneck ? tolerance_ : 0);
        if (bracket.witness.empty()) return {.optimal = !meter_.stopped(), .nodes = meter_.nodes()};
        if (objective == Objective::bottleneck) return at_bottleneck(weights, bracket);
        if (!meter_.stopped()) {
            BestResult result = sum_from(weights[static_cast<std::size_t>(bracket.open)]);
            if (result.found) return result;
        }
        const double most =
            target_.points().to_double(weights.front()) * static_cast<double>(pattern_.num_edges());
        return answer(bracket.witness, most, {.sum = true});
    }

    BestResult sum_from(Fixed weight) {
        try {
            return largest_sum(weight);
        } catch (const Stopped&) {
            return {};
        }
    }

    // Relative, `tolerance` is how much heavier than weights[open] what is not refuted may be in the end.
    Bracket bisect(std::span<const Fixed> weights, double tolerance) {
        const auto end = std::upper_bound(weights.begin(), weights.end(), target_.points().limit(min_weight_),
                                          std::greater<>());
        Bracket bracket{.refuted = -1, .open = end - weights.begin(), .witness = {}};
        // Whether there is any embedding comes first: where there is none, every question is a hard one.
        std::ptrdiff_t middle = bracket.open - 1;
        const auto is_near = [&] {
            return !bracket.witness.empty() &&
                   weights[static_cast<std::size_t>(bracket.refuted + 1)] <=
                       raised(weights[static_cast<std::size_t>(bracket.open)], tolerance);
        };
        for (; bracket.open - bracket.refuted > 1 && !is_near() && !meter_.stopped();
             middle = (bracket.refuted + bracket.open) / 2) {
            Vertices witness = embedding_above(weights[static_cast<std::size_t>(middle)]);
            if (!witness.empty()) {
                const Fixed lightest = target_.points().of(lightest_of(witness));
                bracket.open = std::lower_bound(weights.begin(), weights.end(), lightest, std::greater<>()) -
                               weights.begin();
                bracket.witness = std::move(witness);
            } else if (!meter_.stopped()) {
                bracket.refuted = middle;
            }
        }
        return bracket;
    }

    // Empty where there is none, or no time.
    Vertices embedding_above(Fixed weight) {
        try {
            Canonical canonical = search(weight, Worth::nothing);
            return canonical.best() ? canonical.take_vertices() : Vertices{};
        } catch (const Stopped&) {
            return {};
        }
    }

    // The canonical embedding with the best bottleneck; the witness where time does not allow it.
    BestResult at_bottleneck(std::span<const Fixed> weights, const Bracket& bracket) {
        Vertices vertices = bracket.witness;
        bool complete = false;
        try {
            if (!meter_.stopped() && tolerance_ == 0) {
                Canonical canonical = search(weights[static_cast<std::size_t>(bracket.open)], Worth::nothing);
                if (canonical.best()) {
                    complete = !meter_.stopped() && canonical.settle();
                    vertices = canonical.take_vertices();
                }
            }
        } catch (const Stopped&) {  // the witness is kept
        }
        const Fixed above = weights[static_cast<std::size_t>(bracket.refuted + 1)];
        return answer(std::move(vertices), target_.points().to_double(above),
                      {.sum = false, .proven = bracket.open - bracket.refuted == 1, .complete = complete});
    }

    struct Claim {
        bool sum;  // of the weights; else the lightest
        bool proven = false;
        bool complete = false;
    };

    // A proven bound is the score itself, to the last bit.
    BestResult answer(Vertices vertices, double bound, const Claim& claim) const {
        const double score =
            claim.sum ? sum_of_used_weights(pattern_, target_, vertices) : lightest_of(vertices);
        return {.found = true,
                .vertices = std::move(vertices),
                .score = score,
                .bound = claim.proven ? score : std::max(score, bound),
                .optimal = claim.proven,
                .complete = claim.complete,
                .nodes = meter_.nodes()};
    }

    double lightest_of(const Vertices& vertices) const {
        double lightest = std::numeric_limits<double>::infinity();
        for_each_used_weight(pattern_, target_, vertices,
                             [&](double weight) { lightest = std::min(lightest, weight); });
        return lightest;
    }

    const Pattern::Impl& pattern_;
    const Target::Sparse& target_;
    const Vertices free_;
    const Vertices required_;
    const double min_weight_;
    const double tolerance_;
    WorkMeter meter_;
};

}  // namespace

BestResult best_subgraph(const Pattern::Impl& pattern, const Target::Sparse& target,
                         std::span<const std::int32_t> free, Objective objective, const BestParams& params) {
    return Best(pattern, target, free, params).solve(objective);
}

}  // namespace topoplace::match::sparse
