// What a canonical search may use of a target with bit rows, and the searches there.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph/index.hpp"
#include "match/branch_and_bound.hpp"
#include "match/start_ladder.hpp"

namespace topoplace::match {

template <int W>
Bits<W> to_bits(std::span<const std::int32_t> vertices) {
    Bits<W> bits;
    for (const std::int32_t v : vertices) bits.set(v);
    return bits;
}

template <int W, Score S>
class SearchSpace {
  public:
    // max_nodes: of each search.
    SearchSpace(const Pattern::Impl& pattern, WorkMeter& meter, const Target::Impl& target,
                const BitRows& adjacency, const S& score, const BestParams& params, const Bits<W>& usable,
                const Bits<W>& required, std::uint64_t max_nodes = kEndless)
        : pattern_(pattern),
          meter_(meter),
          target_(target),
          params_(params),
          max_nodes_(max_nodes),
          usable_(usable),
          required_(required),
          score_(score),
          search_(pattern, adjacency, score, params, meter),
          ladder_(pattern, target, adjacency, score_, params, usable_, required_, meter),
          left_(usable),
          taken_(required) {}
    SearchSpace(const SearchSpace&) = delete;  // the ladder refers to it
    SearchSpace& operator=(const SearchSpace&) = delete;

    static Bits<W> set_of(std::span<const std::int32_t> vertices) { return to_bits<W>(vertices); }

    bool is_possible() const {
        return usable_.count() >= pattern_.size() && required_.count() <= pattern_.size() &&
               !(required_ - usable_).any();
    }
    Fixed bound() {
        const Plan* plan = pattern_.plan(meter_);
        return plan == nullptr ? kNoScore : search_.root_bound(*plan, usable_, kNoScore + 1);
    }
    std::int32_t num_required() const { return taken_.count(); }
    std::int32_t lowest_required() const { return taken_.any() ? taken_.lowest() : kAbsent; }

    SearchResult search_anywhere(Fixed enough) {
        SearchTask<W> task{.plan = *pattern_.plan(meter_),  // made for the bound
                           .usable = usable_,
                           .required = required_,
                           .roots = usable_,
                           .enough = enough,
                           .max_nodes = max_nodes_};
        ladder_.lower_bound_to(enough);
        if constexpr (S::kFollowsWeights) task.orbit_mates = [this] { return orbit_mates(); };
        if constexpr (!std::same_as<S, Existence>)
            task.ask_starts = [this](Fixed need) { return ladder_.next(need); };
        return search_.run(std::move(task));
    }

    std::size_t num_parts() const { return std::max(homes_.size(), std::size_t{1}); }
    bool enter_part(std::size_t part, Fixed floor) {
        part_ = left_;
        if (homes_.empty()) return true;
        part_ &= homes_[part];
        if (part_.count() < pattern_.size() || (taken_ - part_).any() || meter_.stopped()) return false;
        return ladder_.bound_within(part_, floor) >= floor;
    }

    SearchResult search_at(std::int32_t v, const Plan& plan, Goal goal, Fixed floor, Fixed enough) {
        TOPOPLACE_ASSERT(taken_.test(v) && part_.test(v));
        return search_.run({.plan = plan,
                            .goal = goal,
                            .usable = part_,
                            .required = taken_,
                            .roots = Bits<W>::single(v),
                            .floor = floor,
                            .enough = enough,
                            .max_nodes = max_nodes_});
    }

    SearchResult search_in_order(Fixed floor) {
        const Plan* plan = pattern_.natural(meter_);
        if (plan == nullptr) return {};
        return search_.run({.plan = *plan,
                            .goal = Goal::first,
                            .usable = taken_,
                            .required = taken_,
                            .roots = taken_,
                            .floor = floor,
                            .max_nodes = max_nodes_});
    }

    void start_ties() {
        open_ = left_ - taken_;
        hard_after_ = meter_.nodes() + params_.polish_after;
    }
    std::int32_t next_open(Fixed score) {
        if (meter_.nodes() >= hard_after_) {
            auto homes = ladder_.homes(score);
            if (!homes) return kAbsent;
            homes_ = std::move(*homes);
            hard_after_ = kEndless;
        }
        const std::int32_t v = open_.lowest();
        open_.reset(v);
        return v;
    }
    void require(std::int32_t v) { taken_.set(v); }
    void exclude(std::int32_t v) {
        taken_.reset(v);
        left_.reset(v);
    }

  private:
    std::vector<Bits<W>> orbit_mates() const {
        std::vector<bool> free(index(target_.size()));
        usable_.for_each([&](std::int32_t v) { free[index(v)] = true; });
        const std::vector<std::int32_t> orbit = target_.orbits(free, meter_);
        std::vector<Bits<W>> members(index(target_.size()));
        for (std::int32_t v = 0; v < target_.size(); ++v) members[index(orbit[index(v)])].set(v);
        std::vector<Bits<W>> mates(index(target_.size()));
        for (std::int32_t v = 0; v < target_.size(); ++v) mates[index(v)] = members[index(orbit[index(v)])];
        return mates;
    }

    const Pattern::Impl& pattern_;
    WorkMeter& meter_;
    const Target::Impl& target_;
    const BestParams& params_;
    const std::uint64_t max_nodes_;
    // At first.
    const Bits<W> usable_;
    const Bits<W> required_;
    const S score_;
    BranchAndBound<W, S> search_;
    StartLadder<W, S> ladder_;
    // Where ties are broken: usable, required, and neither yet.
    Bits<W> left_;
    Bits<W> taken_;
    Bits<W> open_;
    Bits<W> part_;
    std::vector<Bits<W>> homes_;  // sets that hold all embeddings of the best score; none if not known
    std::uint64_t hard_after_ = kEndless;
};

}  // namespace topoplace::match
