// Depth-first search over mappings with bitset candidate sets: the engine of enumeration, counting and
// existence.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"
#include "match/graphs/target.hpp"

namespace topoplace::match {

template <int W>
class Backtrack;

// The part of a search that does not depend on its visitor.
template <int W>
struct DenseSpace {
    using Search = Backtrack<W>;
    using Set = Bits<W>;
    using Layout = Target::Impl;

    const Pattern::Impl& pattern;
    std::int32_t target_size;
    bool induced;
    BitRows adjacency;          // of the target, by vertex
    std::vector<BitRows> ball;  // ball[r]: within r edges; r = 0 and 1 unused; empty where every ball is full
    std::vector<Bits<W>> allowed;  // by pattern vertex
    bool uniform = true;           // every pattern vertex is allowed the same vertices by the caller

    // None where `meter` stops.
    static std::optional<DenseSpace> make(const Pattern::Impl& p, const Target::Impl& t,
                                          const EnumerateParams& params, WorkMeter& meter);

    bool adjacent(std::int32_t u, std::int32_t v) const { return adjacency.test(index(u), v); }

  private:
    DenseSpace(const Pattern::Impl& p, BitRows rows, std::int32_t size, const EnumerateParams& params);
    [[nodiscard]] bool add_balls(WorkMeter& meter);
    [[nodiscard]] bool filter_by_degree(WorkMeter& meter);
};

// Takes every placement of all but the last vertex, with the images that the last one may take; false ends
// the search.
template <class V, int W>
concept PlacementVisitor = requires(V& visit, const Backtrack<W>& search, const Bits<W>& last) {
    { visit(search, last) } -> std::same_as<bool>;
};

template <int W>
class Backtrack {
  public:
    Backtrack(const DenseSpace<W>& space, const Plan& plan, bool break_symmetry, WorkMeter& meter)
        : space_(space),
          plan_(plan),
          break_symmetry_(break_symmetry),
          meter_(meter),
          last_(space.pattern.size() - 1),
          image_(index(space.pattern.size())) {}

    // Restricts the search to these vertices, and to mappings that use all of `required`.
    void restrict_to(const Bits<W>& usable, const Bits<W>& required) {
        TOPOPLACE_ASSERT(!(required - usable).any());
        usable_ = usable;
        required_ = required;
        has_required_ = required.any();
    }
    // The image of the first vertex in the plan's order.
    void fix_root(std::int32_t v) {
        TOPOPLACE_ASSERT(usable_.test(v));
        root_ = v;
    }

    template <PlacementVisitor<W> Visit>
    void run(Visit&& visit) {
        TOPOPLACE_ASSERT(last_ >= 0 && std::ssize(plan_.order) == last_ + 1);
        stopped_ = false;
        descend(0, Bits<W>{}, visit);
    }

    // Images by depth; the last one is valid only where the visitor set it.
    std::span<const std::int32_t> images() const { return image_; }
    // Writes the mapping whose last vertex goes to `last`, by pattern vertex; returns that last vertex.
    std::int32_t write(std::int32_t last, std::int32_t* row) const {
        for (std::int32_t d = 0; d < last_; ++d) row[plan_.order[index(d)]] = image_[index(d)];
        row[plan_.order[index(last_)]] = last;
        return plan_.order[index(last_)];
    }

  private:
    Bits<W> candidates(std::int32_t depth, const Bits<W>& used) const {
        Bits<W> set = space_.allowed[index(plan_.order[index(depth)])] & usable_;
        set -= used;
        for (const std::int32_t i : plan_.back[depth])
            set &= space_.adjacency.template get<W>(index(image_[index(i)]));
        if (!space_.ball.empty()) {
            for (const Reach& reach : plan_.reach[depth]) {
                set &= space_.ball[index(reach.radius)].template get<W>(index(image_[index(reach.depth)]));
            }
        }
        if (space_.induced) {
            for (const std::int32_t i : plan_.apart[depth]) {
                set -= space_.adjacency.template get<W>(index(image_[index(i)]));
            }
        }
        if (break_symmetry_) {
            for (const std::int32_t i : plan_.greater[depth]) set = set.above(image_[index(i)]);
            for (const std::int32_t i : plan_.less[depth]) set = set.below(image_[index(i)]);
            set &= Bits<W>::first(space_.target_size - plan_.followers[index(depth)]);
        }
        if (has_required_) keep_required_possible(depth, used, set);
        return set;
    }

    void keep_required_possible(std::int32_t depth, const Bits<W>& used, Bits<W>& set) const {
        const Bits<W> missing = required_ - used;
        const std::int32_t slots = last_ + 1 - depth;
        const std::int32_t count = missing.count();
        if (count > slots) set = Bits<W>{};
        if (count == slots) set &= missing;
    }

    template <PlacementVisitor<W> Visit>
    void descend(std::int32_t depth, const Bits<W>& used, Visit& visit) {
        TOPOPLACE_ASSERT(used.count() == depth && !(used - usable_).any());
        Bits<W> set = candidates(depth, used);
        TOPOPLACE_ASSERT(!(set & used).any());
        if (depth == 0 && root_ != kAbsent) set &= Bits<W>::single(root_);
        if (depth == last_) {
            if (set.any() && !visit(*this, set)) stopped_ = true;
            return;
        }
        if (meter_.visit()) stopped_ = true;
        // Placements of the last vertex count for no node, and there are many in a large target.
        if constexpr (W > 2) {
            if (meter_.pass_time(index(set.count()) * W * 16)) stopped_ = true;
        }
        for (std::int32_t w = 0; w < W; ++w) {
            for (std::uint64_t rest = set.at(w); rest != 0 && !stopped_; rest &= rest - 1) {
                const std::int32_t v = 64 * w + std::countr_zero(rest);
                image_[index(depth)] = v;
                Bits<W> next = used;
                next.set(v);
                descend(depth + 1, next, visit);
            }
        }
    }

    const DenseSpace<W>& space_;
    const Plan& plan_;
    const bool break_symmetry_;
    WorkMeter& meter_;
    const std::int32_t last_;
    std::vector<std::int32_t> image_;
    Bits<W> usable_ = Bits<W>::first(Bits<W>::kBits);
    Bits<W> required_{};
    bool has_required_ = false;
    std::int32_t root_ = kAbsent;
    bool stopped_ = false;
};

}  // namespace topoplace::match
