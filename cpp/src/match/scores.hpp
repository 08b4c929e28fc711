// What a branch and bound maximises. A score knows the state of a partial mapping, how one more vertex
// extends it, and an upper bound on what any completion can reach.
//
// All bounds rest on one count. Let a family be a set of target edges. A completion covers rest(d) more
// pattern edges; each lies at an open placed vertex or at vertices still to be placed, half an edge at each
// end. A placed vertex with o open edges has at most min(o, family edges to free vertices) of them in the
// family; a vertex to be placed with D edges at most min(D, family edges to vertices that can still be
// reached), and the free vertices with the most such edges are the best it can get. Half the sum of all that
// caps the family's share (`capacity`).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "match/pattern.hpp"
#include "match/target.hpp"

namespace topoplace::match {

inline constexpr Fixed kNone = std::numeric_limits<Fixed>::min();

// A partial mapping, as scores see it.
template <int W>
struct Partial {
    const Plan& plan;
    std::int32_t depth;                   // placed vertices
    std::span<const std::int32_t> image;  // by depth
    Bits<W> free;                         // where the vertices to be placed may go
    std::int32_t max_degree;

    std::int32_t rest() const { return plan.rest[static_cast<std::size_t>(depth)]; }
};

// The most pattern edges, of those not yet covered, that can fall on the family whose row of vertex v is
// rows[base + v].
template <int W>
std::int32_t capacity(const Partial<W>& partial, const BitRows& rows, std::size_t base) {
    const auto row = [&](std::int32_t v) { return rows.get<W>(base + static_cast<std::size_t>(v)); };
    const auto open = partial.plan.open[partial.depth];
    std::int32_t halves = 0;
    Bits<W> reachable = partial.free;
    for (std::size_t i = 0; i < open.size(); ++i) {
        if (open[i] == 0) continue;
        const std::int32_t v = partial.image[i];
        reachable.set(v);
        halves += std::min(open[i], (row(v) & partial.free).count());
    }
    constexpr std::int32_t kMaxHistogram = 64;
    std::array<std::int32_t, kMaxHistogram + 1> vertices_with{};
    const std::int32_t top = std::min(partial.max_degree, kMaxHistogram);
    partial.free.for_each([&](std::int32_t v) {
        ++vertices_with[static_cast<std::size_t>(std::min(top, (row(v) & reachable).count()))];
    });
    const auto at_least = partial.plan.at_least[partial.depth];
    std::int32_t able = 0;
    for (std::int32_t i = top; i-- > 0;) {
        able += vertices_with[static_cast<std::size_t>(i) + 1];
        halves += std::min(at_least[static_cast<std::size_t>(i)], able);
    }
    for (std::size_t i = kMaxHistogram; i < at_least.size(); ++i) halves += at_least[i];
    return std::min(partial.rest(), halves / 2);
}

// Only asks whether an embedding exists.
class Existence {
  public:
    struct State {};

    explicit Existence(const BitRows& adjacency) : adjacency_(adjacency) {}

    State root() const { return {}; }
    State extend(const State& state, std::int32_t, std::span<const std::int32_t>,
                 std::span<const std::int32_t>) const {
        return state;
    }
    Fixed promise(const State&) const { return 0; }
    Fixed value(const State&) const { return 0; }
    template <int W>
    Fixed bound(State&, const Partial<W>& partial, Fixed) const {
        return capacity(partial, adjacency_, 0) < partial.rest() ? kNone : 0;
    }

  private:
    const BitRows& adjacency_;
};

// The sum of the weights of the target edges used.
class WeightSum {
  public:
    using State = Fixed;

    WeightSum(const Target::Impl& target, const Levels& levels) : target_(target), levels_(levels) {}

    State root() const { return 0; }
    State extend(State sum, std::int32_t v, std::span<const std::int32_t> back,
                 std::span<const std::int32_t> image) const {
        const Fixed* weights = target_.weights(v);
        for (const std::int32_t i : back) sum += weights[image[static_cast<std::size_t>(i)]];
        return sum;
    }
    Fixed promise(State sum) const { return sum; }
    Fixed value(State sum) const { return sum; }

    // Level by level: as many edges of the heaviest level as fit, then of the next.
    template <int W>
    Fixed bound(State sum, const Partial<W>& partial, Fixed need) const {
        const std::int32_t rest = partial.rest();
        const auto n = static_cast<std::size_t>(target_.size());
        std::int32_t covered = 0;
        Fixed total = sum;
        for (std::size_t level = 0; level < levels_.heaviest.size() && covered < rest; ++level) {
            if (total + (rest - covered) * levels_.heaviest[level] < need) return kNone;
            const std::int32_t now = capacity(partial, levels_.at_least, level * n);
            if (now > covered) {
                total += (now - covered) * levels_.heaviest[level];
                covered = now;
            }
        }
        return covered < rest ? kNone : total;
    }

  private:
    const Target::Impl& target_;
    const Levels& levels_;
};

}  // namespace topoplace::match
