// The searches of a call: sums by branch and bound, bottlenecks by tests that raise what is open as far as
// their embedding allows.
#include "match/sparse/best.hpp"

#include <algorithm>
#include <utility>

#include "match/best.hpp"
#include "match/canonical.hpp"
#include "match/graphs/used_weights.hpp"
#include "match/sparse/search_space.hpp"

namespace topoplace::match::sparse {
namespace {

using Vertices = std::vector<std::int32_t>;

Vertices ascending(std::span<const std::int32_t> vertices) {
    Vertices sorted(vertices.begin(), vertices.end());
    if (!std::is_sorted(sorted.begin(), sorted.end())) std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    return sorted;
}

class Searches {
  public:
    Searches(const Pattern::Impl& pattern, const BestParams& params, WorkMeter& meter,
             const Target::Sparse& target, std::span<const std::int32_t> free)
        : pattern_(pattern),
          params_(params),
          meter_(meter),
          target_(target),
          free_(ascending(free)),
          required_(ascending(params.required)) {}

    const Target::Sparse& target() const { return target_; }
    double to_double(Fixed weight) const { return target_.points().to_double(weight); }
    Fixed min_weight() const { return target_.points().limit(params_.min_weight); }
    std::span<const Fixed> distinct_weights() const { return target_.distinct_weights(meter_); }

    template <class Visit>
    BestResult with_sums(Fixed weight, Visit&& visit) {
        return visited(weight, Worth::weights, visit);
    }
    template <class Visit>
    BestResult with_existence(Fixed weight, Visit&& visit) {
        return visited(weight, Worth::nothing, visit);
    }

    // Whether there is any embedding comes first: where there is none, every question is a hard one.
    void decide(Bracket& bracket) {
        std::ptrdiff_t middle = bracket.open() - 1;
        for (; !bracket.is_decided() && !meter_.stopped();
             middle = (bracket.refuted() + bracket.open()) / 2) {
            Vertices witness = embedding_above(bracket.weight(middle));
            if (!witness.empty()) {
                const double lightest = lightest_used_weight(pattern_, target_, witness);
                bracket.find(bracket.rank(target_.points().of(lightest)), std::move(witness));
            } else if (!meter_.stopped()) {
                bracket.refute(middle);
            }
        }
    }

  private:
    template <class Visit>
    auto visited(Fixed weight, Worth worth, Visit&& visit) {
        const double least = std::max(params_.min_weight, target_.points().least(weight));
        Canonical<SearchSpace> canonical(pattern_, meter_, target_, least, worth, free_, required_,
                                         params_.tolerance);
        return visit(canonical);
    }

    // Empty where there is none, or no time.
    Vertices embedding_above(Fixed weight) {
        return visited(weight, Worth::nothing, [](Canonical<SearchSpace>& canonical) {
            return canonical.best() ? canonical.take_vertices() : Vertices{};
        });
    }

    const Pattern::Impl& pattern_;
    const BestParams& params_;
    WorkMeter& meter_;
    const Target::Sparse& target_;
    const Vertices free_;
    const Vertices required_;
};

}  // namespace

BestResult best_subgraph(const Pattern::Impl& pattern, const Target::Sparse& target,
                         std::span<const std::int32_t> free, Objective objective, const BestParams& params) {
    return Best<Searches>(pattern, params, target, free).solve(objective);
}

}  // namespace topoplace::match::sparse
