// One canonical best embedding, in either layout of the target and in three steps: the best score; the
// lexicographically smallest vertex set that reaches it, vertex by vertex; the lexicographically smallest
// mapping onto that set.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "match/goal.hpp"
#include "match/graphs/pattern.hpp"

namespace topoplace::match {

// What is still usable and what is required, and the searches there. Where the meter stops in a preparation,
// nothing is found.
template <class Space>
concept CanonicalSpace = requires(Space& space, const Plan& plan, Goal goal, std::int32_t v, Fixed score,
                                  std::size_t part, std::span<const std::int32_t> vertices) {
    // Enough vertices are usable, and those required are among them.
    { space.is_possible() } -> std::same_as<bool>;
    // No embedding scores more; kNoScore if there is none.
    { space.bound() } -> std::same_as<Fixed>;
    { space.num_required() } -> std::same_as<std::int32_t>;
    // kAbsent if none is.
    { space.lowest_required() } -> std::same_as<std::int32_t>;
    // The best embedding; `score`: what cannot be beaten.
    { space.search_anywhere(score) } -> std::same_as<SearchResult>;
    // Parts of the target that hold all embeddings of the best score; whether one may hold any of at least
    // `score`, and is worth entering.
    { space.num_parts() } -> std::same_as<std::size_t>;
    { space.enter_part(part, score) } -> std::same_as<bool>;
    // Within the part, the first vertex of the plan going to v; `score`: the floor, and what cannot be
    // beaten.
    { space.search_at(v, plan, goal, score, score) } -> std::same_as<SearchResult>;
    // The smallest mapping onto the required vertices, which are as many as the pattern's.
    { space.search_in_order(score) } -> std::same_as<SearchResult>;
    { Space::set_of(vertices).test(v) } -> std::same_as<bool>;
    // Ties between embeddings of the best score: the smallest vertex for which it is open whether one uses
    // it, until there is none; kAbsent where the meter stops.
    { space.start_ties() } -> std::same_as<void>;
    { space.next_open(score) } -> std::same_as<std::int32_t>;
    { space.require(v) } -> std::same_as<void>;
    // Takes back the last require(): its vertex is not usable from now on.
    { space.exclude(v) } -> std::same_as<void>;
};

template <CanonicalSpace Space>
class Canonical {
  public:
    // args: what Space takes besides.
    template <class... Args>
    Canonical(const Pattern::Impl& pattern, WorkMeter& meter, Args&&... args)
        : pattern_(pattern), meter_(meter), space_(pattern, meter, std::forward<Args>(args)...) {}

    // False where none was found. Above a tolerance of 0 it may be one that is proven to be within it.
    bool best() {
        if (!space_.is_possible()) return false;
        bound_ = space_.bound();
        if (bound_ == kNoScore) return false;
        const std::int32_t anchor = space_.lowest_required();
        const SearchResult best = anchor == kAbsent ? noted(space_.search_anywhere(bound_))
                                                    : anchored(Goal::best, anchor, kNoScore + 1);
        if (!best.found) return false;
        TOPOPLACE_ASSERT(best.score <= bound_);
        score_ = best.score;
        bound_ = std::min(bound_, best.bound);
        vertices_.assign(best.vertices.begin(), best.vertices.end());
        return true;
    }

    // After best(): breaks ties. False where the search was stopped first.
    bool settle() {
        auto set = Space::set_of(vertices_);
        space_.start_ties();
        while (space_.num_required() < pattern_.size() && !meter_.stopped()) {
            const std::int32_t v = space_.next_open(score_);
            if (v == kAbsent) return false;
            space_.require(v);
            if (set.test(v)) continue;
            const SearchResult other = anchored(Goal::any, v, score_);
            if (other.found) {
                set = Space::set_of(other.vertices);
                TOPOPLACE_ASSERT(set.test(v));
            } else {
                space_.exclude(v);
            }
        }
        if (meter_.stopped()) return false;
        const SearchResult first = space_.search_in_order(score_);
        if (!first.found) return false;
        TOPOPLACE_ASSERT(first.score == score_);
        vertices_.assign(first.vertices.begin(), first.vertices.end());
        return true;
    }

    // Whether a limit on nodes ended a search of best().
    bool is_limited() const { return is_limited_; }

    Fixed score() const { return score_; }
    Fixed bound() const { return bound_; }
    std::vector<std::int32_t>&& take_vertices() { return std::move(vertices_); }

  private:
    // Embeddings that contain v, which is required.
    SearchResult anchored(Goal goal, std::int32_t v, Fixed floor) {
        for (std::size_t part = 0; part < space_.num_parts(); ++part) {
            if (!space_.enter_part(part, floor)) continue;
            const SearchResult best = anchored_in_part(goal, v, floor);
            if (best.found) return best;
        }
        return {};
    }

    // One search for each kind of pattern vertex that v may serve as.
    SearchResult anchored_in_part(Goal goal, std::int32_t v, Fixed floor) {
        SearchResult best;
        for (const std::int32_t u : pattern_.representatives(meter_)) {
            const Plan* plan = pattern_.rooted(u, meter_);
            if (plan == nullptr) return {};
            const SearchResult result = noted(space_.search_at(v, *plan, goal, floor, bound_));
            if (result.found) best = result;
            best.bound = result.bound;
            if (best.found && goal == Goal::best) floor = best.need;
            if ((best.found && goal == Goal::any) || floor > bound_ || meter_.stopped()) break;
        }
        return best;
    }

    SearchResult noted(const SearchResult& result) {
        is_limited_ = is_limited_ || result.is_limited;
        return result;
    }

    const Pattern::Impl& pattern_;
    WorkMeter& meter_;
    Space space_;
    bool is_limited_ = false;
    std::vector<std::int32_t> vertices_;
    Fixed score_ = kNoScore;
    Fixed bound_ = kNoScore;
};

}  // namespace topoplace::match
