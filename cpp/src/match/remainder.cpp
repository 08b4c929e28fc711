// The set of k vertices whose removal costs the free graph the least weight.
//
// The loss of a set S is the weight of the free graph's edges that touch it: the sum of its vertices'
// weighted degrees, less the edges inside S, which that sum counts twice. Sets are built in lexicographic
// order, so the first of equals is the canonical one. A partial set with q vertices to come loses at least
// its loss so far plus the q smallest values of: a vertex's weight to vertices not chosen yet, less half its
// q - 1 heaviest free edges.
#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/index.hpp"
#include "match/branch_and_bound.hpp"
#include "match/graphs/used_weights.hpp"

namespace topoplace::match {
namespace {

template <int W>
class Remainder {
  public:
    Remainder(const Pattern::Impl& pattern, const Target::Impl& target, const BitRows& adjacency,
              std::span<const std::int32_t> free, const RemainderParams& params, WorkMeter& meter)
        : pattern_(pattern),
          target_(target),
          meter_(meter),
          adjacency_(adjacency),
          settings_{.stop = params.stop},
          embedding_(pattern_, adjacency_, WeightSum(target_, target_.levels()), settings_, meter_) {
        Bits<W> left;
        for (const std::int32_t v : params.kept) left.set(v);
        for (const std::int32_t v : free) {
            left.set(v);
            free_.set(v);
        }
        for (const std::int32_t v : params.required) required_.set(v);
        free_ = able(free_);
        free_.for_each([&](std::int32_t v) { ids_.push_back(v); });
        (left - free_).for_each([&](std::int32_t v) { kept_.push_back(v); });
    }

    RemainderResult solve() {
        RemainderResult result;
        const bool all_able = !(required_ - free_).any();
        if (pattern_.size() <= free_.count() && required_.count() <= pattern_.size() && all_able) {
            search();
            TOPOPLACE_ASSERT(!found_ || loss_of(best_) == best_loss_);
            if (found_) result = report();
        }
        result.optimal = !meter_.stopped();
        result.nodes = meter_.nodes();
        return result;
    }

  private:
    void search() {
        if (!prepare()) return;
        start_greedily();
        descend(Bits<W>{}, 0, 0, degree_);
    }

    // The free vertices with as many free neighbours as some pattern vertex has; no other is ever taken.
    Bits<W> able(const Bits<W>& free) const {
        std::int32_t least = pattern_.max_degree();
        for (std::int32_t u = 0; u < pattern_.size(); ++u) least = std::min(least, pattern_.degree(u));
        Bits<W> found;
        free.for_each([&](std::int32_t v) {
            if ((adjacency_.template get<W>(index(v)) & free).count() >= least) found.set(v);
        });
        return found;
    }

    // By position in ids_: weighted degree among free and kept vertices, prefix sums of the heaviest edges.
    // False where the meter stops.
    [[nodiscard]] bool prepare() {
        const std::size_t k = index(pattern_.size());
        degree_.resize(ids_.size());
        heaviest_.assign(ids_.size() * k, 0);
        std::vector<Fixed> row;
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            if (meter_.pass_time(128 * ids_.size())) return false;
            row.clear();
            for (const std::int32_t v : ids_) row.push_back(target_.weight(ids_[i], v));
            const Fixed among = std::accumulate(row.begin(), row.end(), Fixed{0});
            TOPOPLACE_ASSERT(among >= 0 && target_.weight(ids_[i], ids_[i]) == 0);
            const Fixed to_kept = weight_to(ids_[i], kept_);
            degree_[i] = among + to_kept;
            std::sort(row.begin(), row.end(), std::greater<>());
            for (std::size_t q = 1; q < k; ++q) heaviest_[i * k + q] = heaviest_[i * k + q - 1] + row[q - 1];
        }
        plan_ = pattern_.plan(meter_);
        if (plan_ == nullptr) return false;
        best_score_bound_ = embedding_.root_bound(*plan_, free_, kNoScore + 1);
        return true;
    }

    Fixed weight_to(std::int32_t v, const std::vector<std::int32_t>& others) const {
        const Fixed* weights = target_.weights(v);
        return std::accumulate(others.begin(), others.end(), Fixed{0},
                               [&](Fixed sum, std::int32_t u) { return sum + weights[u]; });
    }

    // A first loss to beat, where the cheapest next vertex leads to a set that takes the pattern.
    void start_greedily() {
        std::vector<Fixed> cost = degree_;
        Bits<W> set = required_;
        Fixed loss = 0;
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            if (set.test(ids_[i])) loss += take(i, cost);
        }
        while (set.count() < pattern_.size()) {
            std::size_t cheapest = ids_.size();
            for (std::size_t i = 0; i < ids_.size(); ++i) {
                if (!set.test(ids_[i]) && (cheapest == ids_.size() || cost[i] < cost[cheapest])) cheapest = i;
            }
            TOPOPLACE_ASSERT(cheapest < ids_.size());
            set.set(ids_[cheapest]);
            loss += take(cheapest, cost);
        }
        weigh(set, loss);
    }

    // What taking ids_[i] costs; lowers the cost of its neighbours.
    Fixed take(std::size_t i, std::vector<Fixed>& cost) const {
        const Fixed* weights = target_.weights(ids_[i]);
        for (std::size_t j = 0; j < ids_.size(); ++j) cost[j] -= weights[ids_[j]];
        return cost[i];
    }

    // By the definition: the weight of the edges among free and kept vertices that touch the set.
    Fixed loss_of(const Bits<W>& set) const {
        Fixed loss = 0;
        set.for_each([&](std::int32_t v) {
            loss += weight_to(v, kept_);
            for (const std::int32_t u : ids_) loss += set.test(u) && u < v ? 0 : target_.weight(u, v);
        });
        return loss;
    }

    SearchResult embed(const Bits<W>& set, Fixed floor) {
        return embedding_.run({.plan = *plan_, .usable = set, .roots = set, .floor = floor});
    }

    void descend(const Bits<W>& set, std::size_t next, Fixed loss, const std::vector<Fixed>& cost) {
        if (meter_.visit(1 + ids_.size() / 64)) return;  // a node looks at every free vertex
        const std::int32_t slots = pattern_.size() - set.count();
        TOPOPLACE_ASSERT(slots >= 0 && loss_of(set) == loss);
        if (slots == 0) return weigh(set, loss);
        const Fixed bound = loss + least_loss(next, slots, cost);
        if (bound > best_loss_ || (bound == best_loss_ && !may_win_tie(set, next, slots))) return;
        const std::int32_t missing = (required_ - set).count();
        if (missing > slots) return;
        for (std::size_t i = next; i + index(slots) <= ids_.size() && !meter_.stopped(); ++i) {
            const bool wanted = required_.test(ids_[i]);
            if (missing < slots || wanted) {
                std::vector<Fixed> after = cost;
                const Fixed more = take(i, after);
                Bits<W> with = set;
                with.set(ids_[i]);
                descend(with, i + 1, loss + more, after);
            }
            if (wanted) return;  // every later set would lack it
        }
    }

    Fixed least_loss(std::size_t next, std::int32_t slots, const std::vector<Fixed>& cost) {
        if (ids_.size() < next + index(slots)) return std::numeric_limits<Fixed>::max() / 4;
        halves_.clear();
        for (std::size_t i = next; i < ids_.size(); ++i) {
            halves_.push_back(2 * cost[i] - heaviest_[i * index(pattern_.size()) + index(slots) - 1]);
        }
        std::nth_element(halves_.begin(), halves_.begin() + slots - 1, halves_.end());
        const Fixed sum = std::accumulate(halves_.begin(), halves_.begin() + slots, Fixed{0});
        return std::max<Fixed>(0, (sum + 1) / 2);
    }

    // A set of the best loss that goes on like this may score more than the best one, or precede it.
    bool may_win_tie(Bits<W> set, std::size_t next, std::int32_t slots) const {
        if (!found_ || best_score_ < best_score_bound_) return true;
        for (std::size_t i = next; i < next + index(slots); ++i) set.set(ids_[i]);
        return precedes(set, best_);
    }

    // Of sets of one size: the one that has the smallest vertex the other lacks.
    static bool precedes(const Bits<W>& a, const Bits<W>& b) {
        const Bits<W> differing = (a | b) - (a & b);
        return differing.any() && a.test(differing.lowest());
    }

    void weigh(const Bits<W>& set, Fixed loss) {
        TOPOPLACE_ASSERT(set.count() == pattern_.size() && !(required_ - set).any() && !(set - free_).any());
        const bool tie = found_ && loss == best_loss_;
        if (loss > best_loss_) return;
        const Fixed floor = !tie ? kNoScore + 1 : best_score_ + (precedes(set, best_) ? 0 : 1);
        const SearchResult embedding = embed(set, floor);
        if (!embedding.found || (found_ && meter_.stopped())) return;
        TOPOPLACE_ASSERT(loss == loss_of(set) && loss <= best_loss_);
        TOPOPLACE_ASSERT(embedding.score <= best_score_bound_);
        found_ = true;
        best_loss_ = loss;
        best_score_ = embedding.score;
        best_ = set;
        mapping_.assign(embedding.vertices.begin(), embedding.vertices.end());
    }

    // All but the work it took.
    RemainderResult report() {
        settle();
        const double score = sum_of_used_weights(pattern_, target_, mapping_);
        return {.found = true, .vertices = std::move(mapping_), .remainder = weight_left(), .score = score};
    }

    // The first mapping onto the best set.
    void settle() {
        if (meter_.stopped()) return;
        const Plan* natural = pattern_.natural(meter_);
        if (natural == nullptr) return;
        const SearchResult embedding = embedding_.run({.plan = *natural,
                                                       .goal = Goal::first,
                                                       .usable = best_,
                                                       .required = best_,
                                                       .roots = best_,
                                                       .floor = best_score_});
        if (embedding.found) mapping_.assign(embedding.vertices.begin(), embedding.vertices.end());
    }

    double weight_left() const {
        Bits<W> left = free_ - best_;
        for (const std::int32_t v : kept_) left.set(v);
        double weight = 0;
        left.for_each([&](std::int32_t v) {
            const auto row = target_.graph().neighbors(v);
            for (std::size_t i = 0; i < row.size(); ++i) {
                if (v < row[i] && left.test(row[i])) weight += target_.graph().weights(v)[i];
            }
        });
        return weight;
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    WorkMeter& meter_;
    const BitRows& adjacency_;
    const BestParams settings_;
    BranchAndBound<W, WeightSum> embedding_;
    const Plan* plan_ = nullptr;
    Bits<W> free_;
    Bits<W> required_;
    std::vector<std::int32_t> ids_;   // the members of free_, ascending
    std::vector<std::int32_t> kept_;  // those that count as left whatever is taken
    std::vector<Fixed> degree_;
    std::vector<Fixed> heaviest_;
    std::vector<Fixed> halves_;
    bool found_ = false;
    Bits<W> best_;
    std::vector<std::int32_t> mapping_;
    Fixed best_loss_ = std::numeric_limits<Fixed>::max() / 2;
    Fixed best_score_ = kNoScore;
    Fixed best_score_bound_ = kNoScore;
};

}  // namespace

Fault check_remainder(const Pattern& pattern, const Target& target) {
    if (pattern.num_vertices() == 0) return std::nullopt;
    if (auto fault = target.check_dense()) return fault;
    return target.check_comparable();
}

RemainderResult best_remainder(const Pattern& pattern, const Target& target,
                               std::span<const std::int32_t> free, const RemainderParams& params) {
    TOPOPLACE_ASSERT(!check_remainder(pattern, target));
    if (pattern.num_vertices() == 0) return {.found = true, .optimal = true};
    const Target::Impl* dense = target.impl(params.stop);
    if (dense == nullptr) return {};
    WorkMeter meter(params.stop);
    const auto adjacency = dense->adjacency(0, meter);
    if (!adjacency) return {};
    return with_width(target.num_vertices(), [&](auto width) {
        return Remainder<width()>(pattern.impl(), *dense, *adjacency, free, params, meter).solve();
    });
}

}  // namespace topoplace::match
