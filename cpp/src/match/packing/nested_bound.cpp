// The tree of components, level by level, and a table for each part: the largest sum of each number of
// vertices.
#include "match/packing/nested_bound.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "graph/index.hpp"
#include "match/packing/tree_cuts.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

constexpr Fixed kNever = std::numeric_limits<Fixed>::min() / 4;
constexpr std::size_t kSmall = NestedBound::kSmall;
constexpr std::uint64_t kStepsPerSet = 256;
constexpr std::uint64_t kStepsPerPair = 8;

// By number of the pattern's vertices, or by set of a small part's.
using Table = std::vector<Fixed>;

struct Part {
    std::vector<std::int32_t> vertices;
    std::vector<std::size_t> children;
    bool is_leaf = false;        // small, and not in another small one
    std::vector<Table> gains{};  // by level, what its drop can be worth
    Table paths{};               // of leaves, for patterns that are paths there: by set, the best paths
    Table most{};                // by number
    std::vector<std::uint32_t> sets{};  // of small parts, the best sets of their vertices, by number

    bool is_small() const { return vertices.size() <= kSmall; }
};

using Rows = std::array<std::uint32_t, kSmall>;

}  // namespace

// What takes a meter is false or none where it stops.
class NestedBound::Impl {
  public:
    Impl(const Pattern::Impl& pattern, const Target::Impl& target, const Levels& levels)
        : pattern_(pattern), target_(target), levels_(levels), at_least_(index(pattern.max_degree())) {
        for (std::int32_t u = 0; u < pattern.size(); ++u) {
            for (std::int32_t i = 0; i < pattern.degree(u); ++i) ++at_least_[index(i)];
        }
    }

    [[nodiscard]] bool prepare(std::span<const std::int32_t> free, WorkMeter& meter) {
        for (std::size_t i = 0; i < free.size(); ++i) {
            parts_.push_back({.vertices = {free[i]}, .children = {}});
            wholes_.push_back(i);
        }
        for (std::size_t level = 0; level < levels_.count(); ++level) {
            if (!merge(level, meter)) return false;
            std::vector<std::int32_t> sizes;
            for (const std::size_t part : wholes_)
                sizes.push_back(static_cast<std::int32_t>(parts_[part].vertices.size()));
            cuts_.push_back(fewest_cuts(pattern_, std::move(sizes)));
        }
        Part root{.vertices = {free.begin(), free.end()}, .children = wholes_};
        const bool complete =
            root.is_small() ? tabulate(root, levels_.count(), meter) : adopt(root, levels_.count(), meter);
        parts_.push_back(std::move(root));
        return complete;
    }

    // Levels count by their ceilings where that makes the bound less.
    [[nodiscard]] bool find(std::span<const std::int32_t> ceilings, WorkMeter& meter) {
        std::vector<bool> by_ceiling(levels_.count(), false);
        const auto first = most(by_ceiling, ceilings, meter);
        if (!first) return false;
        most_ = *first;
        for (std::size_t level = levels_.count(); level-- > 0;) {
            by_ceiling[level] = true;
            const auto now = most(by_ceiling, ceilings, meter);
            if (!now) return false;
            by_ceiling[level] = *now < most_;
            most_ = std::min(most_, *now);
        }
        std::fill(by_ceiling.begin(), by_ceiling.end(), false);
        if (is_of_paths() && !find_paths(meter)) return false;
        const auto last = most(by_ceiling, ceilings, meter);
        if (!last) return false;
        most_ = std::min(most_, *last);
        choose(parts_.back(), pattern_.size());
        std::sort(chosen_.begin(), chosen_.end());
        std::sort(machines_.begin(), machines_.end());
        TOPOPLACE_ASSERT(std::ssize(chosen_) == pattern_.size());
        return true;
    }

    Fixed most() const { return most_; }
    std::span<const std::int32_t> chosen() const { return chosen_; }
    std::span<const std::int32_t> machines() const { return machines_; }

    // The tables of the leaves are still those of find().
    Fixed most_within(std::span<const std::int32_t> vertices) {
        for (Part& part : parts_) {
            if (!part.is_leaf && !part.is_small()) combine(part, {}, vertices);
        }
        const Part& root = parts_.back();
        if (root.is_leaf) return most_;
        return index(pattern_.size()) < root.most.size() ? root.most[index(pattern_.size())] : kNever;
    }

  private:
    // The largest sum where some levels are worth their ceilings, whatever the parts.
    std::optional<Fixed> most(const std::vector<bool>& by_ceiling, std::span<const std::int32_t> ceilings,
                              WorkMeter& meter) {
        for (Part& part : parts_) {
            if (part.is_leaf) {
                if (meter.spend((part.gains.size() + 1) << part.vertices.size())) return std::nullopt;
                take_best_sets(part, by_ceiling);
            } else if (!part.is_small()) {
                if (meter.spend(part.children.size() * kSmall * index(pattern_.size()))) return std::nullopt;
                combine(part, by_ceiling);
            }
        }
        Fixed sum = parts_.back().most[index(pattern_.size())];
        for (std::size_t level = 0; level < levels_.count(); ++level) {
            const auto uncut = static_cast<std::int32_t>(pattern_.num_edges()) - cuts_[level];
            sum += by_ceiling[level] ? std::min(ceilings[level], uncut) * drop(level) : 0;
        }
        return sum;
    }

    // Makes one part of those that edges of this level join.
    [[nodiscard]] bool merge(std::size_t level, WorkMeter& meter) {
        std::vector<std::size_t> unseen = wholes_;
        wholes_.clear();
        while (!unseen.empty()) {
            std::vector<std::size_t> joined{unseen.back()};
            unseen.pop_back();
            for (std::size_t next = 0; next < joined.size(); ++next) {
                const auto apart = std::partition(unseen.begin(), unseen.end(), [&](std::size_t other) {
                    const Part& one = parts_[joined[next]];
                    return meter.spend(kStepsPerPair * one.vertices.size() * parts_[other].vertices.size()) ||
                           !touch(one, parts_[other], level);
                });
                if (meter.stopped()) return false;
                joined.insert(joined.end(), apart, unseen.end());
                unseen.erase(apart, unseen.end());
            }
            if (!unite(std::move(joined), level, meter)) return false;
        }
        return true;
    }

    bool touch(const Part& a, const Part& b, std::size_t level) const {
        return std::any_of(a.vertices.begin(), a.vertices.end(), [&](std::int32_t u) {
            return std::any_of(b.vertices.begin(), b.vertices.end(),
                               [&](std::int32_t v) { return has_edge(u, v, level); });
        });
    }
    bool has_edge(std::int32_t u, std::int32_t v, std::size_t level) const {
        return levels_.at_least.test(level * index(target_.size()) + index(u), v);
    }

    [[nodiscard]] bool unite(std::vector<std::size_t>&& parts, std::size_t level, WorkMeter& meter) {
        if (parts.size() > 1) {
            Part whole{.vertices = {}, .children = std::move(parts)};
            for (const std::size_t part : whole.children) {
                const auto& its = parts_[part].vertices;
                whole.vertices.insert(whole.vertices.end(), its.begin(), its.end());
            }
            if (!whole.is_small() && !adopt(whole, level, meter)) return false;
            parts_.push_back(std::move(whole));
            parts = {parts_.size() - 1};
        }
        Part& whole = parts_[parts.front()];
        if (meter.spend(kStepsPerPair * whole.vertices.size() * whole.vertices.size())) return false;
        if (!whole.is_small()) add_edges(whole, level);
        wholes_.push_back(parts.front());
        return true;
    }

    // Small parts of a large one are looked at as they are on the level before.
    [[nodiscard]] bool adopt(Part& whole, std::size_t num_levels, WorkMeter& meter) {
        std::stable_sort(whole.children.begin(), whole.children.end(), [&](std::size_t a, std::size_t b) {
            return parts_[a].vertices.size() > parts_[b].vertices.size();
        });
        for (const std::size_t child : whole.children) {
            if (parts_[child].is_small() && !tabulate(parts_[child], num_levels, meter)) return false;
        }
        return true;
    }

    // The most that the children have together, and the part's own edges. within: leaves without any of these
    // vertices count for nothing; empty: all count.
    void combine(Part& whole, const std::vector<bool>& by_ceiling,
                 std::span<const std::int32_t> within = {}) {
        whole.most = {0};
        for (const std::size_t child : whole.children) {
            if (within.empty() || !parts_[child].is_leaf || touches(parts_[child], within))
                whole.most = together(whole.most, parts_[child].most);
        }
        for (std::size_t level = 0; level < whole.gains.size(); ++level) {
            if (!by_ceiling.empty() && by_ceiling[level]) continue;
            const Table& gains = whole.gains[level];
            const std::size_t most = std::min(gains.size(), whole.most.size());
            for (std::size_t count = 0; count < most; ++count) whole.most[count] += gains[count];
        }
    }
    static bool touches(const Part& part, std::span<const std::int32_t> vertices) {
        return std::any_of(part.vertices.begin(), part.vertices.end(), [&](std::int32_t v) {
            return std::binary_search(vertices.begin(), vertices.end(), v);
        });
    }

    void take_best_sets(Part& part, const std::vector<bool>& by_ceiling) const {
        part.most.assign(part.vertices.size() + 1, kNever);
        part.sets.assign(part.vertices.size() + 1, 0);
        for (std::uint32_t set = 0; set < std::uint32_t{1} << part.vertices.size(); ++set) {
            Fixed sum = part.paths.empty() ? 0 : part.paths[set];
            for (std::size_t level = 0; level < part.gains.size() && part.paths.empty(); ++level)
                sum += by_ceiling[level] ? 0 : part.gains[level][set];
            const std::size_t count = index(std::popcount(set));
            if (sum <= part.most[count]) continue;
            part.most[count] = sum;
            part.sets[count] = set;
        }
    }

    Table together(const Table& a, const Table& b) const {
        const std::size_t most = std::min(a.size() + b.size() - 2, index(pattern_.size()));
        Table sums(most + 1, kNever);
        for (std::size_t i = 0; i < a.size(); ++i) {
            for (std::size_t j = 0; j < b.size() && i + j <= most; ++j)
                sums[i + j] = std::max(sums[i + j], a[i] + b[j]);
        }
        return sums;
    }

    Fixed drop(std::size_t level) const {
        return levels_.heaviest[level] - (level + 1 < levels_.count() ? levels_.heaviest[level + 1] : 0);
    }

    // Of a large part: what edges of this level or a heavier one are worth until the next.
    void add_edges(Part& part, std::size_t level) const {
        std::vector<std::int32_t> degrees;
        for (const std::int32_t u : part.vertices) {
            degrees.push_back(static_cast<std::int32_t>(
                std::count_if(part.vertices.begin(), part.vertices.end(),
                              [&](std::int32_t v) { return has_edge(u, v, level); })));
        }
        std::sort(degrees.begin(), degrees.end(), std::greater<>());
        part.gains.resize(level + 1);
        Table& gains = part.gains[level];
        const std::size_t most = std::min(part.vertices.size(), index(pattern_.size()));
        for (std::size_t count = 0; count <= most; ++count)
            gains.push_back(most_edges(std::span(degrees.data(), count)) * drop(level));
    }

    // Of a small part: what each set of its vertices is worth on the first levels, weight by weight.
    [[nodiscard]] bool tabulate(Part& part, std::size_t num_levels, WorkMeter& meter) const {
        const std::size_t size = part.vertices.size();
        part.is_leaf = true;
        part.gains.assign(num_levels, Table(std::size_t{1} << size, 0));
        for (std::size_t level = 0; level < num_levels; ++level) {
            Fixed above = levels_.heaviest[level];
            for (const Fixed weight : weights_of(part, level)) {
                if (meter.spend(kStepsPerSet << size)) return false;
                const Rows rows = rows_of(part, above);
                for (std::uint32_t set = 0; set < std::uint32_t{1} << size; ++set)
                    part.gains[level][set] += most_edges(rows, set) * (above - weight);
                above = weight;
            }
        }
        return true;
    }

    // Within a few vertices, the pattern is paths alone.
    bool is_of_paths() const {
        if (pattern_.max_degree() > 2) return false;
        for (std::int32_t count = 1; count <= std::min(static_cast<std::int32_t>(kSmall), pattern_.size());
             ++count) {
            if (pattern_.spread().most_edges(count) >= count) return false;
        }
        return true;
    }

    [[nodiscard]] bool find_paths(WorkMeter& meter) {
        for (Part& part : parts_) {
            if (!part.is_leaf) continue;
            if (meter.spend(kStepsPerSet << part.vertices.size())) return false;
            const std::size_t next = part.gains.size();
            part.paths = best_paths(part, next < levels_.count() ? levels_.heaviest[next] : 0);
        }
        return true;
    }

    // By set of vertices, how much more than `floor` each edge of paths over all of them weighs; edges that
    // weigh less are left out.
    Table best_paths(const Part& part, Fixed floor) const {
        const std::size_t size = part.vertices.size();
        std::vector<std::array<Fixed, kSmall>> ending(std::size_t{1} << size);  // by set and last vertex
        Table best(ending.size(), 0);
        for (std::uint32_t set = 1; set < ending.size(); ++set) {
            for (std::uint32_t rest = set; rest != 0; rest &= rest - 1) {
                const std::size_t last = index(std::countr_zero(rest));
                const std::uint32_t before = set & ~(std::uint32_t{1} << last);
                Fixed most = 0;
                for (std::uint32_t others = before; others != 0; others &= others - 1) {
                    const std::size_t other = index(std::countr_zero(others));
                    const Fixed weight = target_.weight(part.vertices[last], part.vertices[other]);
                    most = std::max(most, ending[before][other] + std::max(weight - floor, Fixed{0}));
                }
                ending[set][last] = most;
                best[set] = std::max(best[set], most);
            }
        }
        return best;
    }

    // Those of the part's edges on this level, heaviest first, and where the level ends.
    std::vector<Fixed> weights_of(const Part& part, std::size_t level) const {
        std::vector<Fixed> weights{levels_.heaviest[level] - drop(level)};
        for (const std::int32_t u : part.vertices) {
            for (const std::int32_t v : part.vertices) {
                const Fixed weight = u == v ? 0 : target_.weight(u, v);
                if (weight > weights.front() && weight <= levels_.heaviest[level]) weights.push_back(weight);
            }
        }
        std::sort(weights.begin(), weights.end(), std::greater<>());
        weights.erase(std::unique(weights.begin(), weights.end()), weights.end());
        return weights;
    }

    // Over edges of at least this weight.
    Rows rows_of(const Part& part, Fixed weight) const {
        Rows rows{};
        for (std::size_t i = 0; i < part.vertices.size(); ++i) {
            for (std::size_t j = 0; j < part.vertices.size(); ++j) {
                if (i != j && target_.weight(part.vertices[i], part.vertices[j]) >= weight)
                    rows[i] |= std::uint32_t{1} << j;
            }
        }
        return rows;
    }

    // That the pattern can have on a graph, among vertices of these degrees, in descending order.
    std::int32_t most_edges(std::span<const std::int32_t> degrees) const {
        const auto count = static_cast<std::int32_t>(degrees.size());
        std::int32_t ends = 0;
        for (std::int32_t i = 0; i < std::min(pattern_.max_degree(), count - 1); ++i) {
            const auto able = std::partition_point(degrees.begin(), degrees.end(),
                                                   [&](std::int32_t degree) { return degree > i; });
            ends += std::min(static_cast<std::int32_t>(able - degrees.begin()), at_least_[index(i)]);
        }
        return std::min(ends / 2, pattern_.spread().most_edges(count));
    }
    // That the pattern can have on the graph of these rows, within the set.
    std::int32_t most_edges(const Rows& rows, std::uint32_t set) const {
        std::array<std::int32_t, kSmall> able{};
        std::int32_t inside = 0;
        for (std::uint32_t rest = set; rest != 0;) {
            std::uint32_t component = rest & (~rest + 1);
            for (std::uint32_t fresh = component; fresh != 0;) {
                const std::uint32_t next = rows[index(std::countr_zero(fresh))] & set;
                for (int i = std::popcount(next); i-- > 0;) ++able[index(i)];
                fresh = (fresh & (fresh - 1)) | (next & ~component);
                component |= next;
            }
            inside += pattern_.spread().most_edges(std::popcount(component));
            rest &= ~component;
        }
        std::int32_t ends = 0;
        for (std::size_t i = 0; i < std::min(kSmall, at_least_.size()); ++i)
            ends += std::min(able[i], at_least_[i]);
        return std::min(ends / 2, inside);
    }

    // How the most comes about.
    void choose(const Part& part, std::int32_t count) {
        if (part.is_small()) {
            for (std::uint32_t set = part.sets[index(count)]; set != 0; set &= set - 1)
                chosen_.push_back(part.vertices[index(std::countr_zero(set))]);
            if (count > 0) machines_.insert(machines_.end(), part.vertices.begin(), part.vertices.end());
            return;
        }
        std::vector<Table> sums{{0}};
        for (const std::size_t child : part.children)
            sums.push_back(together(sums.back(), parts_[child].most));
        for (std::size_t i = part.children.size(); i-- > 0 && count > 0;) {
            const Table& its = parts_[part.children[i]].most;
            std::size_t here = 0;
            const auto rest = [&] { return index(count) - here; };
            while (rest() >= sums[i].size() || sums[i][rest()] + its[here] < sums[i + 1][index(count)])
                ++here;
            choose(parts_[part.children[i]], static_cast<std::int32_t>(here));
            count -= static_cast<std::int32_t>(here);
        }
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    const Levels& levels_;
    std::vector<std::int32_t> at_least_;  // [i]: how many pattern vertices have more than i edges
    std::vector<std::int32_t> cuts_;      // by level, how many of the pattern's edges are lighter at least
    std::vector<Part> parts_;
    std::vector<std::size_t> wholes_;  // parts that are not in another so far
    Fixed most_ = kNever;
    std::vector<std::int32_t> chosen_;
    std::vector<std::int32_t> machines_;
};

NestedBound::NestedBound(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::optional<NestedBound> NestedBound::make(const Pattern::Impl& pattern, const Target::Impl& target,
                                             const Levels& levels, std::span<const std::int32_t> free,
                                             std::span<const std::int32_t> ceilings, WorkMeter& meter) {
    auto impl = std::make_shared<Impl>(pattern, target, levels);
    if (!impl->prepare(free, meter) || !impl->find(ceilings, meter)) return std::nullopt;
    return NestedBound(std::move(impl));
}

Fixed NestedBound::most() const { return impl_->most(); }
Fixed NestedBound::most_within(std::span<const std::int32_t> vertices) {
    return impl_->most_within(vertices);
}
std::span<const std::int32_t> NestedBound::chosen() const { return impl_->chosen(); }
std::span<const std::int32_t> NestedBound::machines() const { return impl_->machines(); }

}  // namespace topoplace::match
