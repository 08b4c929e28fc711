// What helps a search for the best embedding that has proved hard: bounds on all embeddings, and embeddings
// to start from, step by step.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/index.hpp"
#include "match/branch_and_bound.hpp"
#include "match/graphs/pattern.hpp"
#include "match/graphs/target.hpp"
#include "match/packing/densest_sets.hpp"
#include "match/packing/first_mapping.hpp"
#include "match/packing/machine_pieces.hpp"
#include "match/packing/nested_bound.hpp"

namespace topoplace::match {

struct StartStep {
    enum class Kind {
        nested_bound,  // a bound by nested components, and the embedding on the vertices it is made of
        pieces,        // a bound for patterns that fall into few different pieces
        packed_sets,   // short searches in few components each; settles the matter if no others are worth it
        map_machines,  // the mapping kernel's embedding on the machines of the nested bound's vertices
        map_chosen,    // on these vertices alone
        map_usable,    // on all usable vertices
        anneal,        // the best embedding so far
        search_on,     // nothing
    };

    std::string_view name;
    Kind kind;
    std::uint64_t max_nodes = 0;  // of all short searches
    std::uint64_t seed = 0;       // of the mapping kernel
    std::span<const Starts::Annealing> annealing{};
    std::uint64_t pause = 0;  // nodes that the search visits before the next step
};

inline constexpr std::array<Starts::Annealing, 3> kShortAnnealing{{{0.3, 1}, {0.1, 1}, {0.05, 1}}};
inline constexpr std::array<Starts::Annealing, 1> kLongAnnealing{{{0.7, 4}}};

// One step after the other, and then the last again and again, each pause twice as long as the one before.
inline constexpr std::array<StartStep, 13> kStartLadder{{
    {"nested bound", StartStep::Kind::nested_bound},
    {"pieces", StartStep::Kind::pieces},
    {"packed sets, few nodes", StartStep::Kind::packed_sets, 1U << 12},
    {"mapping to machines", StartStep::Kind::map_machines, 0, 3},
    {"mapping to chosen vertices", StartStep::Kind::map_chosen, 0, 4},
    {"mapping to machines, again", StartStep::Kind::map_machines, 0, 5},
    {"mapping to chosen vertices, again", StartStep::Kind::map_chosen, 0, 6},
    {"mapping to machines, the third time", StartStep::Kind::map_machines, 0, 7},
    {"mapping to all vertices", StartStep::Kind::map_usable},
    {"search on", StartStep::Kind::search_on, 0, 0, {}, 1U << 14},
    {"short annealing", StartStep::Kind::anneal, 0, 0, kShortAnnealing},
    {"packed sets, many nodes", StartStep::Kind::packed_sets, 1U << 15},
    {"long annealing", StartStep::Kind::anneal, 0, 0, kLongAnnealing, 1U << 15},
}};

std::vector<std::int32_t> all_of(const auto& bits) {
    std::vector<std::int32_t> vertices;
    bits.for_each([&](std::int32_t v) { vertices.push_back(v); });
    return vertices;
}

template <int W, Score S>
class StartLadder {
  public:
    using Search = BranchAndBound<W, S>;

    // Embeddings within `usable` that contain `required`.
    StartLadder(const Pattern::Impl& pattern, const Target::Impl& target, const BitRows& adjacency,
                const S& score, const BestParams& params, const Bits<W>& usable, const Bits<W>& required,
                WorkMeter& meter)
        : pattern_(pattern),
          target_(target),
          adjacency_(adjacency),
          score_(score),
          params_(params),
          usable_(usable),
          required_(required),
          meter_(meter) {}

    // No embedding scores more.
    void lower_bound_to(Fixed bound) { bound_ = std::min(bound_, bound); }

    // The next step; without help where the meter stops. need: the least score that is of use.
    Starts next(Fixed need) {
        const std::size_t asked = num_asked_++;
        const std::size_t rung = std::min(asked, kStartLadder.size() - 1);
        Starts starts = taken(kStartLadder[rung], need);
        starts.pause = kStartLadder[rung].pause << (asked - rung);
        return starts;
    }

    // The sets that hold all embeddings of this score or more; empty where that is not known, none where the
    // meter stops.
    std::optional<std::vector<Bits<W>>> homes(Fixed score) {
        std::vector<Bits<W>> found;
        if (pattern_.size() > kPackedPattern) return found;
        const PackedSets<W> packed(levels(), target_.size(), usable_, pattern_.size(), kPackedSets);
        if (!packed.is_exhaustive()) return found;
        const auto beyond = bound_beyond(packed);
        if (!beyond) return std::nullopt;
        if (*beyond >= score) return found;
        const auto sets = ranked(packed.sets(), score);
        if (!sets) return std::nullopt;
        for (const auto& [bound, set] : *sets) found.push_back(set);
        if (meter_.stopped()) found.clear();  // some sets may not have been looked at
        return found;
    }

    // No embedding into these vertices scores more; below `floor` also where none scores as much.
    Fixed bound_within(const Bits<W>& vertices, Fixed floor) {
        return short_search().root_bound(plan(), vertices, floor);
    }

  private:
    static constexpr std::int32_t kPackedPattern = 128;  // larger ones need too many machines
    static constexpr std::size_t kPackedSets = 1024;
    static constexpr std::uint64_t kStepsPerRow = 4;
    static constexpr std::uint64_t kStepsPerVertex = 256;  // of the bound by nested components
    static constexpr std::size_t kSparseDegree = 8;        // mean number of neighbours
    static constexpr std::uint64_t kNodesPerSet = 1U << 13;

    Starts taken(const StartStep& step, Fixed need) {
        using Kind = StartStep::Kind;
        switch (step.kind) {
            case Kind::nested_bound:
                return nested_starts();
            case Kind::pieces:
                return piece_starts(need);
            case Kind::packed_sets:
                return packed_starts(need, step.max_nodes);
            case Kind::map_machines:
                if (!nested_) return {};
                return {.mappings = mapped_to(nested_->machines(), step.seed)};
            case Kind::map_chosen:
                if (!nested_) return {};
                return {.mappings = mapped_to(nested_->chosen(), step.seed)};
            case Kind::map_usable:
                return {.mappings = mapped_to(all_of(usable_), step.seed)};
            case Kind::anneal:
                return {.annealing = step.annealing};
            case Kind::search_on:
                return {};
        }
        return {};
    }

    Starts nested_starts() {
        if constexpr (requires { score_.levels(); }) {
            if (index(usable_.count()) > NestedBound::kMostVertices) return {};
            auto ceilings = short_search().root(plan(), usable_).high;
            if (!lower(ceilings)) return {};
            nested_ =
                NestedBound::make(pattern_, target_, score_.levels(), all_of(usable_), ceilings, meter_);
            if (!nested_) return {};
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
    // By what as many vertices as the pattern's can have among them, on levels that join few pairs. False
    // where the meter stops.
    [[nodiscard]] bool lower(std::span<std::int32_t> ceilings) {
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
            if (ends > kSparseDegree * free.size()) return true;
            const auto most = densest_sets(neighbors, usable_.count(), pattern_.size(), meter_);
            if (!most) return false;
            ceilings[level] = std::min(ceilings[level], most->back());
        }
        return true;
    }

    // No mapping, but a bound, for patterns that fall into few different pieces.
    Starts piece_starts(Fixed need) {
        if constexpr (requires { score_.levels(); }) {
            pieces_.emplace(pattern_, target_, score_.levels(), usable_, meter_);
            if (pieces_->empty()) {
                pieces_.reset();
                return {};
            }
            if (!pieces_->improve(need, meter_)) return {};
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
    Starts packed_starts(Fixed need, std::uint64_t max_nodes) {
        Starts starts;
        if (pattern_.size() > kPackedPattern) return starts;
        const PackedSets<W> packed(levels(), target_.size(), usable_, pattern_.size(), kPackedSets);
        starts.settled = packed.is_exhaustive();
        const std::uint64_t last = meter_.nodes() + max_nodes;
        const auto sets = ranked(packed.sets(), need);
        if (!sets) return {};
        for (const auto& [bound, set] : *sets) {
            if (bound < need) break;
            if (meter_.nodes() >= last) {
                starts.settled = false;
                break;
            }
            const SearchResult best =
                short_search().run({.plan = plan(),
                                    .usable = set,
                                    .required = required_,
                                    .roots = set,
                                    .floor = need,
                                    .enough = bound,
                                    .max_nodes = std::min(kNodesPerSet, last - meter_.nodes())});
            if (best.found) {
                need = best.need;
                starts.mappings.assign(1, {best.vertices.begin(), best.vertices.end()});
            }
            if (best.is_limited) starts.settled = false;
            if (need > bound_) break;
        }
        if (starts.settled && need <= bound_) {
            const auto beyond = bound_beyond(packed);
            if (!beyond) return {};
            starts.settled = *beyond < need;
        }
        starts.settled = starts.settled && !meter_.stopped();
        return starts;
    }

    struct Ranked {
        Fixed bound;
        Bits<W> set;
    };
    // Sets with a bound of at least this, by descending bound, without those that lack a required vertex.
    // None where the meter stops in a bound.
    std::optional<std::vector<Ranked>> ranked(const std::vector<Bits<W>>& sets, Fixed least) {
        std::vector<Ranked> found;
        for (const Bits<W>& set : sets) {
            if (meter_.spend(kStepsPerRow * W * index(set.count()) * levels().count())) break;
            if ((required_ - set).any()) continue;
            Fixed bound = short_search().root_bound(plan(), set, kNoScore + 1);
            if (nested_) {
                meter_.spend(kStepsPerVertex * index(usable_.count()));
                bound = std::min(bound, nested_->most_within(all_of(set)));
            }
            if (pieces_) {
                const auto most = pieces_->most_within(set, meter_);
                if (!most) return std::nullopt;
                bound = std::min(bound, *most);
            }
            if (bound >= least) found.push_back({bound, set});
        }
        std::stable_sort(found.begin(), found.end(),
                         [](const Ranked& a, const Ranked& b) { return a.bound > b.bound; });
        return found;
    }

    // No embedding over more components than make up a set scores more. None where the meter stops.
    std::optional<Fixed> bound_beyond(const PackedSets<W>& packed) {
        const Fixed most = most_inside_beyond(packed);
        if (!pieces_ || pieces_->first_crossing() != packed.level()) return most;
        const auto over = pieces_->most_over(packed.fewest() + 1, meter_);
        return over ? std::optional(std::min(most, *over)) : std::nullopt;
    }
    Fixed most_inside_beyond(const PackedSets<W>& packed) {
        if constexpr (requires(typename S::State& state) { score_.limit(state, 0, 0); }) {
            std::vector<Spread::Part> parts;
            const std::size_t base = (packed.level() - 1) * index(target_.size());
            for (const Bits<W>& part : packed.parts())
                parts.push_back(part_of(pattern_, levels().at_least, base, part));
            const std::size_t most_ways = index(pattern_.size()) * index(packed.fewest() + 1);
            if (meter_.spend(most_ways * index(usable_.count()))) return bound_;
            const std::int32_t most = pattern_.spread().most_inside(parts, packed.fewest() + 1);
            if (most < 0) return kNoScore;
            return short_search().root_bound(plan(), usable_, kNoScore + 1, [&](typename S::State& state) {
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

    // Made for the search that is helped.
    const Plan& plan() const { return *pattern_.plan(meter_); }

    // For searches while the main one waits.
    Search& short_search() {
        if (!short_search_) short_search_.emplace(pattern_, adjacency_, score_, params_, meter_);
        return *short_search_;
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    const BitRows& adjacency_;
    const S& score_;
    const BestParams& params_;
    const Bits<W>& usable_;
    const Bits<W>& required_;
    WorkMeter& meter_;
    std::optional<Search> short_search_;
    std::optional<NestedBound> nested_;
    std::optional<MachinePieces<W>> pieces_;
    std::size_t num_asked_ = 0;
    Fixed bound_ = kEnough;
};

}  // namespace topoplace::match
