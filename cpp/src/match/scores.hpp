// What a branch and bound maximises. A score knows the state of a partial mapping, how one more vertex
// extends it, and an upper bound on what any completion can reach.
//
// All bounds rest on one count, `capacity`: how many of the pattern edges not covered yet can fall on a
// family of target edges. Such an edge is outer (it touches a placed vertex) or inner (it touches none). Each
// vertex has a limit on its family edges: the degree the pattern still asks of it, and its family edges to
// where they can lead. Vertices to be placed are matched to free target vertices as favourably as the degrees
// alone allow. Summed over its ends,
// - the outer edges are limited from the placed side and from the free side,
// - the inner edges by half of what the free vertices allow,
// - all of them by half of what both sides allow,
// and the capacity is the smallest of these that applies.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"
#include "match/graphs/target.hpp"
#include "match/packing/packed_sets.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {

// Of a mapping that is no embedding, and the bound where none exists.
inline constexpr Fixed kNoScore = std::numeric_limits<Fixed>::min();

// What one more vertex would lead to: the best score it leaves possible, and what it has in hand.
struct Outlook {
    Fixed promise;
    Fixed merit;

    friend auto operator<=>(const Outlook&, const Outlook&) = default;
};

// A partial mapping, as scores see it.
template <int W>
struct Partial {
    const Plan& plan;
    std::int32_t depth;                   // placed vertices
    std::span<const std::int32_t> image;  // by depth
    Bits<W> free;                         // where the vertices to be placed may go
    Bits<W> required;                     // those of them that have to be used

    std::int32_t rest() const { return plan.rest[index(depth)]; }
    std::int32_t inner_rest() const { return plan.inner_rest[index(depth)]; }
    // The largest degree of a vertex still to be placed.
    std::int32_t top() const { return static_cast<std::int32_t>(plan.at_least[depth].size()); }
    std::int32_t slots() const { return static_cast<std::int32_t>(plan.order.size()) - depth; }
};

// A score as the branch and bound asks it. `State` is what a partial mapping has and can still reach, `Tally`
// what a complete one has. The bounds must hold: no completion scores more than `outlook` or `bound` promise.
template <class S>
concept Score =
    std::copy_constructible<S> && std::default_initializable<typename S::State> &&
    std::copyable<typename S::State> && std::default_initializable<typename S::Tally> &&
    requires(const S score, const Pattern::Impl& pattern, const Bits<1>& set, const Partial<1>& partial,
             const typename S::State& seen, typename S::State& state, typename S::Tally& tally,
             const typename S::Tally& counted, std::span<const std::int32_t> row, std::int32_t v,
             std::size_t group, Fixed need, double tolerance) {
        // Does an automorphism of the target that keeps its weights keep every score?
        { S::kFollowsWeights } -> std::convertible_to<bool>;
        // Nothing placed yet, vertices going to `set` only.
        { score.root(pattern, set) } -> std::same_as<typename S::State>;
        // With vertex v next, joined to the earlier depths `row`; `rest` edges are left then.
        { score.outlook(seen, v, row, row, v) } -> std::same_as<Outlook>;
        { score.extend(state, v, row, row) } -> std::same_as<void>;
        // Images of a vertex joined to one placed vertex that have the same outlook; 0: unknown.
        { score.num_groups() } -> std::same_as<std::size_t>;
        { score.template group<1>(group, v) } -> std::same_as<Bits<1>>;
        { score.group_outlook(seen, group, v) } -> std::same_as<Outlook>;
        // The same number for vertices of which the next question may be true.
        { score.twin_key(v, set) } -> std::same_as<Fixed>;
        // Does exchanging two vertices keep every score of mappings to them and to `set`?
        { score.are_twins(v, v, set) } -> std::same_as<bool>;
        // Orders the images of the first vertex, the largest first.
        { score.potential(v, set, v) } -> std::same_as<Fixed>;
        // The score of a complete mapping, edge by edge.
        { score.tally(seen) } -> std::same_as<typename S::Tally>;
        { score.add(tally, v, v) } -> std::same_as<void>;
        { score.total(counted) } -> std::same_as<Fixed>;
        // The largest score that is no more than so much better, relative to this one.
        { score.within(need, tolerance) } -> std::same_as<Fixed>;
        // The best score that completions reach, or anything below `need` where they reach less;
        // may note in the state what it has found out.
        { score.bound(state, partial, need) } -> std::same_as<Fixed>;
    };

// How many family edges each free vertex has to placed, to free and to all vertices, up to `top` of them, and
// the most that vertices to be placed can have together. Two ways to count: by bit-sliced addition of rows
// where `top` is small, by population counts and histograms where it is not.
template <int W, int Top>
class DegreeSets {
  public:
    // One more neighbour for each vertex of the row.
    void add(const Bits<W>& row) {
        for (int i = Top; --i > 0;) more_than_[index(i)] |= more_than_[index(i - 1)] & row;
        more_than_[0] |= row;
    }
    // wanted[i]: how many vertices to be placed have more than i edges. optional: how many of them go to
    // vertices that are not required.
    std::int32_t most(std::span<const std::int32_t> wanted, const Partial<W>& partial,
                      std::int32_t optional) const {
        TOPOPLACE_ASSERT(wanted.size() == std::size_t{Top} && optional >= 0);
        std::int32_t total = 0;
        for (int i = 0; i < Top; ++i) {
            const Bits<W> able = more_than_[index(i)] & partial.free;
            const std::int32_t required = (able & partial.required).count();
            total += std::min(wanted[index(i)], required + std::min(able.count() - required, optional));
        }
        return total;
    }

  private:
    std::array<Bits<W>, Top> more_than_{};  // [i]: vertices with more than i neighbours
};

class DegreeCounts {
  public:
    explicit DegreeCounts(std::int32_t top) : top_(std::min(top, kTop)) {}

    void add(std::int32_t degree, bool required) {
        TOPOPLACE_ASSERT(degree >= 0);
        const std::size_t counted = index(std::min(degree, top_));
        if (required) {
            ++required_[counted];
        } else {
            ++optional_[counted];
        }
    }
    std::int32_t most(std::span<const std::int32_t> wanted, std::int32_t optional_slots) const {
        TOPOPLACE_ASSERT(index(top_) <= wanted.size() && optional_slots >= 0);
        std::int32_t total = 0;
        std::int32_t required = 0;
        std::int32_t optional = 0;
        for (std::int32_t i = top_; i-- > 0;) {
            required += required_[index(i) + 1];
            optional += optional_[index(i) + 1];
            total += std::min(wanted[index(i)], required + std::min(optional, optional_slots));
        }
        for (std::size_t i = kTop; i < wanted.size(); ++i) total += wanted[i];
        return total;
    }

  private:
    static constexpr std::int32_t kTop = 32;  // larger degrees count as this one, and are then not limited
    std::int32_t top_;
    std::array<std::int32_t, kTop + 1> required_{};
    std::array<std::int32_t, kTop + 1> optional_{};
};

// The edges of the family that the free vertices allow: outer, inner, and both together, each counted at its
// free ends.
struct FreeEnds {
    std::int32_t outer;
    std::int32_t inner;
    std::int32_t all;
};

template <int W, int Top>
FreeEnds free_ends_by_rows(const Partial<W>& partial, const BitRows& rows, std::size_t base,
                           const Bits<W>& placed, std::int32_t optional) {
    const auto row = [&](std::int32_t v) { return rows.get<W>(base + index(v)); };
    DegreeSets<W, Top> outer;
    placed.for_each([&](std::int32_t v) { outer.add(row(v)); });
    DegreeSets<W, Top> inner;
    DegreeSets<W, Top> all = outer;
    partial.free.for_each([&](std::int32_t v) {
        inner.add(row(v));
        all.add(row(v));
    });
    const Plan& plan = partial.plan;
    return {outer.most(plan.outer_at_least[partial.depth], partial, optional),
            inner.most(plan.inner_at_least[partial.depth], partial, optional),
            all.most(plan.at_least[partial.depth], partial, optional)};
}

template <int W>
FreeEnds free_ends_by_counts(const Partial<W>& partial, const BitRows& rows, std::size_t base,
                             const Bits<W>& placed, std::int32_t optional) {
    DegreeCounts outer(partial.top());
    DegreeCounts inner(partial.top());
    DegreeCounts all(partial.top());
    partial.free.for_each([&](std::int32_t v) {
        const Bits<W> row = rows.get<W>(base + index(v));
        const bool required = partial.required.test(v);
        const std::int32_t to_placed = (row & placed).count();
        const std::int32_t to_free = (row & partial.free).count();
        outer.add(to_placed, required);
        inner.add(to_free, required);
        all.add(to_placed + to_free, required);
    });
    const Plan& plan = partial.plan;
    return {outer.most(plan.outer_at_least[partial.depth], optional),
            inner.most(plan.inner_at_least[partial.depth], optional),
            all.most(plan.at_least[partial.depth], optional)};
}

template <int W>
FreeEnds free_ends(const Partial<W>& partial, const BitRows& rows, std::size_t base, const Bits<W>& placed,
                   std::int32_t optional) {
    switch (partial.top()) {
        case 0:
            return {0, 0, 0};
        case 1:
            return free_ends_by_rows<W, 1>(partial, rows, base, placed, optional);
        case 2:
            return free_ends_by_rows<W, 2>(partial, rows, base, placed, optional);
        case 3:
            return free_ends_by_rows<W, 3>(partial, rows, base, placed, optional);
        case 4:
            return free_ends_by_rows<W, 4>(partial, rows, base, placed, optional);
        default:
            return free_ends_by_counts(partial, rows, base, placed, optional);
    }
}

// The most pattern edges, of those not yet covered, that can fall on the family whose row of vertex v is
// rows[base + v].
template <int W>
std::int32_t capacity(const Partial<W>& partial, const BitRows& rows, std::size_t base) {
    const std::int32_t optional = partial.slots() - partial.required.count();
    TOPOPLACE_ASSERT(optional >= 0 && partial.free.count() >= partial.slots());
    std::int32_t from_placed = 0;
    Bits<W> placed;
    const auto open = partial.plan.open[partial.depth];
    TOPOPLACE_ASSERT(std::ssize(open) == partial.depth);
    for (std::size_t i = 0; i < open.size(); ++i) {
        if (open[i] == 0) continue;
        const std::int32_t v = partial.image[i];
        TOPOPLACE_ASSERT(open[i] > 0 && !partial.free.test(v) && !placed.test(v));
        placed.set(v);
        const Bits<W> next = rows.get<W>(base + index(v)) & partial.free;
        const std::int32_t required = (next & partial.required).count();
        from_placed += std::min(open[i], required + std::min(next.count() - required, optional));
    }
    const FreeEnds ends = free_ends(partial, rows, base, placed, optional);
    const std::int32_t outer = std::min(from_placed, ends.outer);
    const std::int32_t inner = std::min(partial.inner_rest(), ends.inner / 2);
    TOPOPLACE_ASSERT(outer >= 0 && inner >= 0 && inner <= partial.rest());
    return std::min({partial.rest(), (from_placed + ends.all) / 2, outer + inner});
}

// What a component of the family holds.
template <int W>
Spread::Part part_of(const Pattern::Impl& pattern, const BitRows& rows, std::size_t base,
                     const Bits<W>& component) {
    std::int32_t ends = 0;
    std::int32_t degrees = 0;
    component.for_each([&](std::int32_t v) {
        const std::int32_t degree = (rows.get<W>(base + index(v)) & component).count();
        ends += std::min(degree, pattern.max_degree());
        degrees += degree;
    });
    return {component.count(), ends / 2, degrees / 2 - component.count() + 1};
}

// The most pattern edges that can fall on the family: no more than stay inside its connected components.
template <int W>
std::int32_t ceiling(const Pattern::Impl& pattern, const BitRows& rows, std::size_t base,
                     const Bits<W>& usable) {
    const std::vector<Bits<W>> found = components(rows, base, usable, pattern.size());
    if (!found.empty() && found.back().count() >= pattern.size())
        return static_cast<std::int32_t>(pattern.num_edges());
    std::vector<Spread::Part> parts;
    for (const Bits<W>& component : found) parts.push_back(part_of(pattern, rows, base, component));
    return pattern.spread().most_inside(parts);
}

// Only asks whether an embedding exists: each scores 0.
class Existence {
  public:
    static constexpr bool kFollowsWeights = true;  // an automorphism that keeps the weights keeps the score

    struct State {
        bool is_possible = true;  // the components are large enough
    };
    struct Tally {};

    explicit Existence(const BitRows& adjacency) : adjacency_(adjacency) {}

    template <int W>
    Fixed potential(std::int32_t v, const Bits<W>& usable, std::int32_t) const {
        return (adjacency_.get<W>(index(v)) & usable).count();
    }
    template <int W>
    State root(const Pattern::Impl& pattern, const Bits<W>& usable) const {
        return {ceiling(pattern, adjacency_, 0, usable) >= static_cast<std::int32_t>(pattern.num_edges())};
    }
    Outlook outlook(const State&, std::int32_t, std::span<const std::int32_t>, std::span<const std::int32_t>,
                    std::int32_t) const {
        return {0, 0};
    }
    void extend(State&, std::int32_t, std::span<const std::int32_t>, std::span<const std::int32_t>) const {}
    std::size_t num_groups() const { return 0; }
    template <int W>
    Bits<W> group(std::size_t, std::int32_t) const {
        return {};
    }
    Outlook group_outlook(const State&, std::size_t, std::int32_t) const { return {0, 0}; }
    template <int W>
    Fixed twin_key(std::int32_t v, const Bits<W>& usable) const {
        return (adjacency_.get<W>(index(v)) & usable).count();
    }
    template <int W>
    bool are_twins(std::int32_t u, std::int32_t v, const Bits<W>& others) const {
        return (adjacency_.get<W>(index(u)) & others) == (adjacency_.get<W>(index(v)) & others);
    }
    Tally tally(const State&) const { return {}; }
    void add(Tally&, std::int32_t, std::int32_t) const {}
    Fixed total(const Tally&) const { return 0; }
    Fixed within(Fixed score, double) const { return score; }
    template <int W>
    Fixed bound(State& state, const Partial<W>& partial, Fixed) const {
        if (!state.is_possible) return kNoScore;
        if (is_rest_complete(partial)) return may_hold_clique(partial) ? 0 : kNoScore;
        return capacity(partial, adjacency_, 0) < partial.rest() ? kNoScore : 0;
    }

  private:
    // Every vertex to be placed is joined to all others. Then the next question counts for more than degrees.
    template <int W>
    static bool is_rest_complete(const Partial<W>& partial) {
        const std::int32_t slots = partial.slots();
        return slots > 2 && partial.rest() == slots * (slots - 1) / 2 + slots * partial.depth;
    }

    // A clique has at most one vertex of a set without adjacent vertices. So it is refuted if the vertices
    // left to it fall into fewer such sets than it needs vertices.
    template <int W>
    bool may_hold_clique(const Partial<W>& partial) const {
        Bits<W> left = partial.free;
        for (const std::int32_t v : partial.image.first(index(partial.depth)))
            left &= adjacency_.get<W>(index(v));
        if ((partial.required - left).any()) return false;
        for (std::int32_t sets = 0; sets < partial.slots(); ++sets) {
            if (!left.any()) return false;
            for (Bits<W> apart = left; apart.any();) {
                const std::int32_t v = apart.lowest();
                left.reset(v);
                apart.reset(v);
                apart -= adjacency_.get<W>(index(v));
            }
        }
        return true;
    }

    const BitRows& adjacency_;
};

// The sum of the weights of the target edges used.
class WeightSum {
  public:
    static constexpr bool kFollowsWeights = true;

    using Counts = std::array<std::int32_t, kMaxLevels>;
    using Tally = Fixed;
    struct State {
        Fixed sum = 0;
        Counts used{};  // edges covered so far on each level or a heavier one
        Counts high{};  // no completion covers more than this
    };

    WeightSum(const Target::Impl& target, const Levels& levels) : target_(target), levels_(levels) {}

    template <int W>
    State root(const Pattern::Impl& pattern, const Bits<W>& usable) const {
        State state;
        for (std::size_t level = 0; level < levels_.count(); ++level) {
            state.high[level] = ceiling(pattern, levels_.at_least, first_row(level), usable);
        }
        return state;
    }
    Outlook outlook(const State& state, std::int32_t v, std::span<const std::int32_t> back,
                    std::span<const std::int32_t> image, std::int32_t rest) const {
        State next = state;
        extend(next, v, back, image);
        return {fill(next, rest), next.sum};
    }
    const Levels& levels() const { return levels_; }
    // No more than `most` edges are on this level or a heavier one.
    void limit(State& state, std::size_t level, std::int32_t most) const {
        for (std::size_t heavier = 0; heavier <= level; ++heavier)
            state.high[heavier] = std::min(state.high[heavier], most);
    }
    // Where every level is one weight: a vertex joined to one placed vertex differs by its level only.
    std::size_t num_groups() const { return levels_.exact ? levels_.count() : 0; }
    template <int W>
    Bits<W> group(std::size_t level, std::int32_t u) const {
        const auto row = [&](std::size_t l) { return levels_.at_least.get<W>(first_row(l) + index(u)); };
        TOPOPLACE_ASSERT(level == 0 || !(row(level - 1) - row(level)).any());
        return level == 0 ? row(0) : row(level) - row(level - 1);
    }
    Outlook group_outlook(const State& state, std::size_t level, std::int32_t rest) const {
        State next = state;
        cover(next, level);
        next.sum += levels_.heaviest[level];
        return {fill(next, rest), next.sum};
    }
    void extend(State& state, std::int32_t v, std::span<const std::int32_t> back,
                std::span<const std::int32_t> image) const {
        for (const std::int32_t i : back) {
            const std::size_t pair = target_.pair_of(v, image[index(i)]);
            TOPOPLACE_ASSERT(target_.weight(pair) > 0);
            state.sum += target_.weight(pair);
            cover(state, levels_.level_of[pair]);
        }
    }
    template <int W>
    Fixed twin_key(std::int32_t v, const Bits<W>& usable) const {
        std::uint64_t sum = 0;
        usable.for_each([&](std::int32_t u) { sum += static_cast<std::uint64_t>(target_.weight(u, v)); });
        return static_cast<Fixed>(sum);
    }
    template <int W>
    bool are_twins(std::int32_t u, std::int32_t v, const Bits<W>& others) const {
        bool alike = true;
        for (std::int32_t w = 0; w < W && alike; ++w) {
            for (std::uint64_t rest = others.at(w); rest != 0 && alike; rest &= rest - 1) {
                const std::int32_t x = 64 * w + std::countr_zero(rest);
                alike = target_.weight(u, x) == target_.weight(v, x);
            }
        }
        return alike;
    }
    // Of the first vertex: its heaviest edges to usable vertices.
    template <int W>
    Fixed potential(std::int32_t v, const Bits<W>& usable, std::int32_t degree) const {
        Fixed total = 0;
        std::int32_t covered = 0;
        for (std::size_t level = 0; level < levels_.count() && covered < degree; ++level) {
            const Bits<W> row = levels_.at_least.get<W>(first_row(level) + index(v)) & usable;
            const std::int32_t now = std::min(degree, row.count());
            total += (now - covered) * levels_.heaviest[level];
            covered = now;
        }
        return total;
    }
    Tally tally(const State& state) const { return state.sum; }
    // Scores are sums of these.
    Fixed weight(std::int32_t u, std::int32_t v) const { return target_.weight(u, v); }
    Fixed heaviest() const { return levels_.count() > 0 ? levels_.heaviest.front() : 0; }
    void add(Tally& tally, std::int32_t u, std::int32_t v) const { tally += weight(u, v); }
    Fixed total(const Tally& tally) const { return tally; }
    Fixed within(Fixed score, double tolerance) const { return raised(score, tolerance); }

    template <int W>
    Fixed bound(State& state, const Partial<W>& partial, Fixed need) const {
        const std::int32_t rest = partial.rest();
        for (std::size_t level = 0; level < levels_.count(); ++level) {
            if (level + 1 == levels_.count() && levels_.complete) break;
            const std::int32_t more = capacity(partial, levels_.at_least, first_row(level));
            if (state.used[level] + more >= state.high[level]) continue;
            state.high[level] = state.used[level] + more;
            if (fill(state, rest) < need) return kNoScore;
        }
        return fill(state, rest);
    }

  private:
    std::size_t first_row(std::size_t level) const { return level * index(target_.size()); }

    void cover(State& state, std::size_t level) const {
        TOPOPLACE_ASSERT(level < levels_.count());
        for (; level < levels_.count(); ++level) ++state.used[level];
        TOPOPLACE_ASSERT(
            std::is_sorted(state.used.begin(), state.used.begin() + std::ptrdiff_t(levels_.count())));
    }

    // As many of the remaining edges on the heaviest level as the ceilings allow, then on the next. An edge
    // counts on every level below its own, so that each ceiling holds for all levels above it too.
    [[gnu::always_inline]] Fixed fill(const State& state, std::int32_t rest) const {
        Fixed sum = state.sum;
        TOPOPLACE_ASSERT(rest >= 0);
        std::int32_t room = rest;  // on this level or a heavier one
        const std::size_t last = levels_.count();
        for (std::size_t level = last; level-- > 0;) {
            const std::int32_t heavier = std::min(room, state.high[level] - state.used[level]);
            if (heavier < 0 || (level + 1 == last && heavier < rest)) return kNoScore;
            if (level + 1 < last) sum += (room - heavier) * levels_.heaviest[level + 1];
            room = heavier;
        }
        if (last == 0) return rest > 0 ? kNoScore : sum;
        TOPOPLACE_ASSERT(room >= 0 && room <= rest);
        return sum + room * levels_.heaviest[0];
    }

    const Target::Impl& target_;
    const Levels& levels_;
};

static_assert(Score<Existence> && Score<WeightSum>);

}  // namespace topoplace::match
