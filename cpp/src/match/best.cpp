// The best embedding and its proof, where the target has bit rows: branch and bound on the score, bisection
// over the distinct weights for a bottleneck, then ties broken vertex by vertex, so that every machine
// returns the same answer.
#include "match/best.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "graph/index.hpp"
#include "match/canonical.hpp"
#include "match/link_counts.hpp"
#include "match/packing/first_mapping.hpp"
#include "match/search_space.hpp"
#include "match/sparse/best.hpp"

namespace topoplace::match {
namespace {

// The searches of one call of best_subgraph, at a compiled width.
template <int W>
class Searches {
  public:
    Searches(const Pattern::Impl& pattern, const BestParams& params, WorkMeter& meter,
             const Target::Impl& target, std::span<const std::int32_t> free)
        : pattern_(pattern),
          params_(params),
          meter_(meter),
          target_(target),
          usable_(to_bits<W>(free)),
          required_(to_bits<W>(params.required)) {}

    const Target::Impl& target() const { return target_; }
    double to_double(Fixed weight) const { return target_.to_double(weight); }
    Fixed min_weight() const { return target_.to_fixed(params_.min_weight); }
    std::span<const Fixed> distinct_weights() const { return target_.distinct_weights(); }

    template <class Visit>
    BestResult with_sums(Fixed weight, Visit&& visit) {
        const bool everything = target_.everything(weight);
        const auto levels = everything ? Levels{} : target_.levels_from(weight, meter_);
        if (!levels) return stopped();
        const auto adjacency = target_.adjacency(weight, params_.min_weight, meter_);
        if (!adjacency) return stopped();
        return visited(*adjacency, WeightSum(target_, everything ? target_.levels() : *levels), visit);
    }
    template <class Visit>
    BestResult with_existence(Fixed weight, Visit&& visit) {
        const auto adjacency = target_.adjacency(weight, params_.min_weight, meter_);
        return adjacency ? visited(*adjacency, Existence(*adjacency), visit) : stopped();
    }
    template <class Visit>
    BestResult with_counts(const LinkCountScore::Impl& score, Visit&& visit) {
        const auto adjacency = target_.adjacency(params_.min_weight, meter_);
        return adjacency ? visited(*adjacency, LinkCounts(target_, score), visit) : stopped();
    }

    void decide(Bracket& bracket) {
        if (bracket.weights().size() > kMaxLevels) {
            start(bracket);
            narrow(bracket, 1, false);
        }
        for (std::uint64_t most = kNodesPerTest; !bracket.is_decided() && !meter_.stopped(); most *= 8) {
            narrow(bracket, most, true);
            narrow(bracket, most, false);
        }
    }

  private:
    static constexpr std::uint64_t kNodesPerTest = 1U << 12;

    // While a search was prepared.
    BestResult stopped() const { return {.nodes = meter_.nodes()}; }

    template <Score S, class Visit>
    BestResult visited(const BitRows& adjacency, const S& score, Visit& visit) {
        Canonical<SearchSpace<W, S>> canonical(pattern_, meter_, target_, adjacency, score, params_, usable_,
                                               required_);
        return visit(canonical);
    }

    // Bisection with tests of at most `max_nodes` nodes. `up`: what a test does not decide counts as refuted,
    // so that the best embedding to be had is found; otherwise as open, so that as much as can be is refuted.
    void narrow(Bracket& bracket, std::uint64_t max_nodes, bool up) {
        std::ptrdiff_t low = bracket.refuted();
        std::ptrdiff_t high = bracket.open();
        while (high - low > 1 && !bracket.is_decided() && !meter_.stopped()) {
            const std::ptrdiff_t middle = (low + high) / 2;
            Test test = embedding_above(bracket.weight(middle), max_nodes);
            if (test.is_found) {
                high = middle;
                bracket.find(middle, std::move(test.witness));
            } else if (test.is_refuted) {
                low = middle;
                bracket.refute(middle);
            } else {
                (up ? low : high) = middle;
            }
        }
    }

    // Among many weights, as measured ones are, a good first embedding saves the tests of most of them.
    void start(Bracket& bracket) {
        std::vector<std::int32_t> mapping = first_mapping(pattern_, target_, all_of(usable_), 0, meter_);
        Fixed lightest = std::numeric_limits<Fixed>::max();
        for (std::int32_t u = 0; u < std::ssize(mapping); ++u) {
            for (const std::int32_t v : pattern_.neighbors(u))
                lightest = std::min(lightest, target_.weight(mapping[index(u)], mapping[index(v)]));
        }
        const std::ptrdiff_t rank = bracket.rank(lightest);
        const bool is_embedding = !mapping.empty() && rank < bracket.open() &&
                                  lightest_used_weight(pattern_, target_, mapping) >= params_.min_weight;
        if (!is_embedding || (required_ - to_bits<W>(mapping)).any()) return;
        bracket.find(rank, std::move(mapping));
    }

    struct Test {
        bool is_found = false;
        bool is_refuted = false;
        std::vector<std::int32_t> witness{};
    };

    // Is there some embedding over edges of at least this weight?
    Test embedding_above(Fixed weight, std::uint64_t max_nodes) {
        const auto adjacency = target_.adjacency(weight, params_.min_weight, meter_);
        if (!adjacency) return {};
        const Bits<W> usable = core(*adjacency, usable_, pattern_.min_degree());
        Canonical<SearchSpace<W, Existence>> canonical(pattern_, meter_, target_, *adjacency,
                                                       Existence(*adjacency), params_, usable, required_,
                                                       max_nodes);
        const bool found = canonical.best();
        return {.is_found = found,
                .is_refuted = !found && !meter_.stopped() && !canonical.is_limited(),
                .witness = canonical.take_vertices()};
    }

    const Pattern::Impl& pattern_;
    const BestParams& params_;
    WorkMeter& meter_;
    const Target::Impl& target_;
    const Bits<W> usable_;
    const Bits<W> required_;
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
    const Target::Impl* dense = target.impl(params.stop);
    if (dense == nullptr) return {};
    return with_width(target.num_vertices(), [&](auto width) {
        return Best<Searches<width()>>(pattern.impl(), params, *dense, free).solve(goal_of(goal));
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

Fault check(const Pattern& pattern, const Target& target, Objective) {
    return pattern.num_vertices() == 0 ? std::nullopt : target.check_comparable();
}

Fault check(const Pattern& pattern, const Target& target, const LinkCountScore& score) {
    if (score.impl().num_edges() == pattern.num_edges()) return check(pattern, target, Objective::sum);
    return "the score is for patterns of " + std::to_string(score.impl().num_edges()) +
           " edges; this one has " + std::to_string(pattern.num_edges());
}

BestResult best_subgraph(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                         Objective objective, const BestParams& params) {
    TOPOPLACE_ASSERT(!check(pattern, target, objective));
    return solve(pattern, target, free, objective, params);
}

BestResult best_subgraph(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                         const LinkCountScore& score, const BestParams& params) {
    TOPOPLACE_ASSERT(!check(pattern, target, score));
    return solve(pattern, target, free, score, params);
}

}  // namespace topoplace::match
