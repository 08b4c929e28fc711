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
#include "match/packing/densest_sets.hpp"
#include "match/packing/first_mapping.hpp"
#include "match/packing/machine_pieces.hpp"
#include "match/packing/nested_bound.hpp"

namespace topoplace::match {
namespace {

template <int W>
Bits<W> to_bits(std::span<const std::int32_t> vertices) {
    Bits<W> bits;
    for (const std::int32_t v : vertices) bits.set(v);
    return bits;
}

std::vector<std::int32_t> all_of(const auto& bits) {
    std::vector<std::int32_t> vertices;
    bits.for_each([&](std::int32_t v) { vertices.push_back(v); });
    return vertices;
}

// One canonical best embedding, in three steps: the best score; the lexicographically smallest vertex set
// that reaches it, vertex by vertex; the lexicographically smallest mapping onto that set.
template <int W, Score S>
class Canonical {
  public:
    using Search = BranchAndBound<W, S>;

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
          required_(required) {}

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
    void limit(std::uint64_t nodes) { search_.limit(nodes); }
    // Whether that kept one from its end.
    bool is_limited() const { return is_limited_; }

    Fixed score() const { return best_score_; }
    Fixed bound() const { return bound_; }
    std::vector<std::int32_t>&& take_vertices() { return std::move(vertices_); }

  private:
    static constexpr std::int32_t kPackedPattern = 128;  // larger ones need too many machines
    static constexpr std::size_t kPackedSets = 1024;
    static constexpr std::uint64_t kStepsPerRow = 4;
    static constexpr std::uint64_t kStepsPerVertex = 256;  // of the bound by nested components
    static constexpr std::size_t kSparseDegree = 8;        // mean number of neighbours
    static constexpr std::uint64_t kNodesPerSet = 1U << 13;
    static constexpr std::uint64_t kNodesOfSets = 1U << 15;
    static constexpr std::uint64_t kFewNodesOfSets = 1U << 12;  // where better starts may come
    static constexpr std::uint64_t kNodesBeforeAnnealing = 1U << 14;
    static constexpr std::uint64_t kNodesBetweenAnnealing = 1U << 15;  // each time twice as many
    static constexpr std::uint64_t kMostAnnealed = 8;
    static constexpr std::uint64_t kMostMapped = 8;  // the last of the mapping kernel's starts

    bool find() {
        if (usable_.count() < pattern_.size() || required_.count() > pattern_.size()) return false;
        if ((required_ - usable_).any()) return false;
        bound_ = search_.root_bound(pattern_.plan(meter_), usable_, kNoScore + 1);
        if (bound_ == kNoScore) return false;
        const bool found = required_.any() ? anchored(Search::Goal::best, required_.lowest(), usable_,
                                                      required_, kNoScore + 1)
                                           : anywhere();
        if (!found) return false;
        best_score_ = search_.score();
        TOPOPLACE_ASSERT(best_score_ <= bound_);
        if (!meter_.stopped()) bound_ = std::min(bound_, search_.need() - 1);
        vertices_.assign(search_.found().begin(), search_.found().end());
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
                find_homes();
                knows_homes = true;
            }
            TOPOPLACE_ASSERT(!(taken - set).any() && !(set - usable).any());
            const std::int32_t v = undecided.lowest();
            undecided.reset(v);
            Bits<W> with = taken;
            with.set(v);
            if (!set.test(v) && anchored(Search::Goal::any, v, usable, with, best_score_))
                set = to_bits<W>(search_.found());
            if (set.test(v)) {
                taken = with;
            } else {
                usable.reset(v);
            }
        }
        if (meter_.stopped()) return false;
        TOPOPLACE_ASSERT(taken == set);
        if (!search_.run(pattern_.natural(meter_), Search::Goal::first, set, set, best_score_, set))
            return false;
        TOPOPLACE_ASSERT(search_.score() == best_score_);
        vertices_.assign(search_.found().begin(), search_.found().end());
        return true;
    }

    bool anywhere() {
        typename Search::OrbitMates mates;
        if constexpr (S::kFollowsWeights) mates = [this] { return orbit_mates(); };
        typename Search::AskStarts ask;
        if constexpr (!std::same_as<S, Existence>) ask = [this](Fixed need) { return starts(need); };
        const bool found = search_.run(pattern_.plan(meter_), Search::Goal::best, usable_, required_,
                                       kNoScore + 1, usable_, bound_, std::move(mates), std::move(ask));
        is_limited_ = search_.is_limited();
        return found;
    }

    // Good mappings for a search that has proved hard.
    typename Search::Starts starts(Fixed need) {
        try {
            const std::uint64_t asked = num_asked_++;
            if (asked == 0) return nested_starts();
            if (asked == 1) return piece_starts(need);
            if (asked == 2) return packed_starts(need, kFewNodesOfSets);
            if (asked <= kMostMapped) return mapped_starts(asked);
            if (asked == kMostMapped + 1) return {.pause = kNodesBeforeAnnealing};
            if (asked == kMostMapped + 2) return {.annealing = {{0.3, 1}, {0.1, 1}, {0.05, 1}}};
            if (asked == kMostMapped + 3) return packed_starts(need, kNodesOfSets);
            const std::uint64_t again = asked - (kMostMapped + 4);
            return {.annealing = {{0.7, 4}},
                    .last = again == kMostAnnealed,
                    .pause = kNodesBetweenAnnealing << again};
        } catch (const Stopped&) {
            return {.last = true};
        }
    }

    typename Search::Starts nested_starts() {
        if constexpr (requires { score_.levels(); }) {
            if (index(usable_.count()) > NestedBound::kMostVertices) return {};
            auto ceilings = short_search().root(pattern_.plan(meter_), usable_).high;
            lower(ceilings);
            nested_.emplace(pattern_, target_, score_.levels(), all_of(usable_), ceilings, meter_);
            bound_ = std::min(bound_, target_.sum_below(nested_->most(), pattern_.num_edges()));
            return {.mappings = mapped_to(nested_->chosen(), 0), .bound = bound_};
        } else {
            return {};
        }
    }

    // Of such parts, the bound by nested components looks at every set.
    static bool all_small(const std::vector<Bits<W>>& parts) {
        return std::all_of(parts.begin(), parts.end(), [](const Bits<W>& part) {
            return part.count() <= static_cast<std::int32_t>(NestedBound::kSmall);
        });
    }
    // By what as many vertices as the pattern's can have among them, on levels that join few pairs.
    void lower(std::span<std::int32_t> ceilings) {
        const std::vector<std::int32_t> free = all_of(usable_);
        std::vector<std::int32_t> position(index(target_.size()));
        for (std::size_t i = 0; i < free.size(); ++i) position[index(free[i])] = static_cast<std::int32_t>(i);
        for (std::size_t level = 0; level < levels().count(); ++level) {
            const std::size_t base = level * index(target_.size());
            if (all_small(components(levels().at_least, base, usable_))) continue;
            Ragged<std::int32_t> neighbors;
            std::size_t ends = 0;
            for (const std::int32_t v : free) {
                const Bits<W> its = levels().at_least.template get<W>(base + index(v)) & usable_;
                its.for_each([&](std::int32_t u) { neighbors.push(position[index(u)]); });
                neighbors.close_row();
                ends += index(its.count());
            }
            if (ends > kSparseDegree * free.size()) return;
            const auto most = densest_sets(neighbors, usable_.count(), pattern_.size(), meter_).back();
            ceilings[level] = std::min(ceilings[level], most);
        }
    }

    typename Search::Starts mapped_starts(std::uint64_t asked) {
        if (asked == kMostMapped) return {.mappings = mapped_to(all_of(usable_), 0)};
        if (!nested_) return {};
        return {.mappings = mapped_to(asked % 2 == 0 ? nested_->chosen() : nested_->machines(), asked)};
    }

    // No mapping, but a bound, for patterns that fall into few different pieces.
    typename Search::Starts piece_starts(Fixed need) {
        if constexpr (requires { score_.levels(); }) {
            pieces_.emplace(pattern_, target_, score_.levels(), usable_, meter_);
            if (pieces_->empty()) {
                pieces_.reset();
                return {};
            }
            pieces_->improve(need, meter_);
            bound_ = std::min(bound_, target_.sum_below(pieces_->most(), pattern_.num_edges()));
            return {.bound = bound_};
        } else {
            return {};
        }
    }

    // The mapping kernel's.
    std::vector<std::vector<std::int32_t>> mapped_to(std::span<const std::int32_t> free, std::uint64_t seed) {
        std::vector<std::int32_t> mapping = first_mapping(pattern_, target_, free, seed, meter_);
        if (mapping.empty()) return {};
        return {std::move(mapping)};
    }

    // The best embedding that short searches find in a few components each, and whether that settles the
    // matter: all that could hold a better one were searched to the end.
    typename Search::Starts packed_starts(Fixed need, std::uint64_t most_nodes) {
        typename Search::Starts starts;
        if (pattern_.size() > kPackedPattern) return starts;
        const Plan& plan = pattern_.plan(meter_);
        const PackedSets<W> packed(levels(), target_.size(), usable_, pattern_.size(), kPackedSets);
        starts.settled = packed.is_exhaustive();
        const std::uint64_t last = meter_.nodes() + most_nodes;
        for (const auto& [bound, set] : ranked(packed.sets(), plan)) {
            if (bound < need) break;
            if (meter_.nodes() >= last) {
                starts.settled = false;
                break;
            }
            short_search().limit(std::min(kNodesPerSet, last - meter_.nodes()));
            if (short_search().run(plan, Search::Goal::best, set, required_, need, set, bound)) {
                need = short_search().need();
                starts.mappings.assign(1, {short_search().found().begin(), short_search().found().end()});
            }
            if (short_search().is_limited()) starts.settled = false;
            if (need > bound_) break;
        }
        starts.settled = starts.settled && (need > bound_ || bound_beyond(packed, plan) < need);
        starts.settled = starts.settled && !meter_.stopped();
        return starts;
    }

    // For searches while the main one waits.
    Search& short_search() {
        if (!short_search_) short_search_.emplace(pattern_, adjacency_, score_, params_, meter_);
        return *short_search_;
    }

    struct Ranked {
        Fixed bound;
        Bits<W> set;
    };
    // Sets by descending bound, without those that lack a required vertex.
    std::vector<Ranked> ranked(const std::vector<Bits<W>>& sets, const Plan& plan) {
        std::vector<Ranked> found;
        for (const Bits<W>& set : sets) {
            if (meter_.spend(kStepsPerRow * W * index(set.count()) * levels().count())) break;
            if ((required_ - set).any()) continue;
            Fixed bound = short_search().root_bound(plan, set, kNoScore + 1);
            if (nested_) {
                meter_.spend(kStepsPerVertex * index(usable_.count()));
                bound = std::min(bound, nested_->most_within(all_of(set)));
            }
            if (pieces_) bound = std::min(bound, pieces_->most_within(set, meter_));
            found.push_back({bound, set});
        }
        std::stable_sort(found.begin(), found.end(),
                         [](const Ranked& a, const Ranked& b) { return a.bound > b.bound; });
        return found;
    }

    // No embedding over more components than make up a set scores more.
    Fixed bound_beyond(const PackedSets<W>& packed, const Plan& plan) {
        const Fixed most = most_inside_beyond(packed, plan);
        if (!pieces_ || pieces_->first_crossing() != packed.level()) return most;
        return std::min(most, pieces_->most_over(packed.fewest() + 1, meter_));
    }
    Fixed most_inside_beyond(const PackedSets<W>& packed, const Plan& plan) {
        if constexpr (requires(typename S::State& state) { score_.limit(state, 0, 0); }) {
            std::vector<Spread::Part> parts;
            const std::size_t base = (packed.level() - 1) * index(target_.size());
            for (const Bits<W>& part : packed.parts())
                parts.push_back(part_of(pattern_, levels().at_least, base, part));
            const std::size_t most_ways = index(pattern_.size()) * index(packed.fewest() + 1);
            if (meter_.spend(most_ways * index(usable_.count()))) return bound_;
            const std::int32_t most = pattern_.spread().most_inside(parts, packed.fewest() + 1);
            if (most < 0) return kNoScore;
            return short_search().root_bound(plan, usable_, kNoScore + 1, [&](typename S::State& state) {
                score_.limit(state, packed.level() - 1, most);
            });
        } else {
            return bound_;
        }
    }

    const Levels& levels() const {
        if constexpr (requires { score_.levels(); }) {
            return score_.levels();
        } else {
            return target_.levels();
        }
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

    // The sets that hold all embeddings of the best score; none where that is not known.
    void find_homes() {
        if (pattern_.size() > kPackedPattern) return;
        const Plan& plan = pattern_.plan(meter_);
        const PackedSets<W> packed(levels(), target_.size(), usable_, pattern_.size(), kPackedSets);
        if (!packed.is_exhaustive() || bound_beyond(packed, plan) >= best_score_) return;
        for (const auto& [bound, set] : ranked(packed.sets(), plan)) {
            if (bound >= best_score_) homes_.push_back(set);
        }
        if (meter_.stopped()) homes_.clear();  // some sets may not have been looked at
    }

    // Embeddings that contain v.
    bool anchored(typename Search::Goal goal, std::int32_t v, const Bits<W>& usable, const Bits<W>& required,
                  Fixed floor) {
        if (homes_.empty()) return anchored_in(usable, goal, v, required, floor);
        return std::any_of(homes_.begin(), homes_.end(), [&](const Bits<W>& home) {
            const Bits<W> here = home & usable;
            if (here.count() < pattern_.size() || (required - here).any() || meter_.stopped()) return false;
            return short_search().root_bound(pattern_.plan(meter_), here, floor) >= floor &&
                   anchored_in(here, goal, v, required, floor);
        });
    }

    // One search for each kind of pattern vertex that v may serve as.
    bool anchored_in(const Bits<W>& usable, typename Search::Goal goal, std::int32_t v,
                     const Bits<W>& required, Fixed floor) {
        TOPOPLACE_ASSERT(required.test(v) && usable.test(v));
        bool found = false;
        for (const std::int32_t u : pattern_.representatives(meter_)) {
            const bool better = search_.run(pattern_.rooted(u, meter_), goal, usable, required, floor,
                                            Bits<W>::single(v), bound_);
            is_limited_ = is_limited_ || search_.is_limited();
            found = found || better;
            if (better && goal == Search::Goal::best) floor = search_.need();
            if ((better && goal == Search::Goal::any) || floor > bound_ || meter_.stopped()) break;
        }
        return found;
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    WorkMeter& meter_;
    const BitRows& adjacency_;
    const BestParams& params_;
    const S score_;
    Search search_;
    std::optional<Search> short_search_;  // made where the search proves hard
    const Bits<W> usable_;
    const Bits<W> required_;
    std::vector<Bits<W>> homes_;
    std::vector<std::int32_t> vertices_;
    std::uint64_t num_asked_ = 0;             // for starts
    std::optional<NestedBound> nested_;       // made where the search proves hard
    std::optional<MachinePieces<W>> pieces_;  // the same
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
