// The tree of components, level by level, and a table for each part: the largest sum of so many vertices.
#include "match/packing/nested_bound.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

constexpr Fixed kNever = std::numeric_limits<Fixed>::min() / 4;
// Parts of which every set of vertices is looked at.
constexpr std::size_t kSmall = 8;

struct Part {
    std::vector<std::int32_t> vertices;
    std::vector<std::size_t> children;
    std::vector<Fixed> most{};          // by number of the pattern's vertices
    std::vector<std::uint32_t> sets{};  // of small parts, the best sets of their vertices, by size

    bool is_small() const { return vertices.size() <= kSmall; }
};

using Rows = std::array<std::uint32_t, kSmall>;

class NestedParts {
  public:
    NestedParts(const Pattern::Impl& pattern, const Target::Impl& target, const Levels& levels,
                std::span<const std::int32_t> free)
        : pattern_(pattern), target_(target), levels_(levels), at_least_(index(pattern.max_degree())) {
        for (std::int32_t u = 0; u < pattern.size(); ++u) {
            for (std::int32_t i = 0; i < pattern.degree(u); ++i) ++at_least_[index(i)];
        }
        for (std::size_t i = 0; i < free.size(); ++i) {
            parts_.push_back({.vertices = {free[i]}, .children = {}});
            wholes_.push_back(i);
        }
    }

    NestedBound bound(WorkMeter& meter) {
        for (std::size_t level = 0; level < levels_.count(); ++level) merge(level, meter);
        Part root{.vertices = {}, .children = wholes_};
        combine(root, levels_.count());
        NestedBound found{.most = root.most[index(pattern_.size())], .chosen = {}};
        choose(root, pattern_.size(), found.chosen);
        std::sort(found.chosen.begin(), found.chosen.end());
        TOPOPLACE_ASSERT(std::ssize(found.chosen) == pattern_.size());
        return found;
    }

  private:
    // Makes one part of those that edges of this level join.
    void merge(std::size_t level, WorkMeter& meter) {
        std::vector<std::size_t> unseen = wholes_;
        wholes_.clear();
        while (!unseen.empty()) {
            std::vector<std::size_t> joined{unseen.back()};
            unseen.pop_back();
            for (std::size_t next = 0; next < joined.size(); ++next) {
                const auto apart =
                    std::partition(unseen.begin(), unseen.end(), [&](std::size_t other) {
                        meter.spend(parts_[joined[next]].vertices.size() * parts_[other].vertices.size());
                        return !touch(parts_[joined[next]], parts_[other], level);
                    });
                joined.insert(joined.end(), apart, unseen.end());
                unseen.erase(apart, unseen.end());
            }
            wholes_.push_back(united(std::move(joined), level, meter));
        }
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

    std::size_t united(std::vector<std::size_t>&& parts, std::size_t level, WorkMeter& meter) {
        if (parts.size() > 1) {
            Part whole{.vertices = {}, .children = std::move(parts)};
            for (const std::size_t part : whole.children) {
                const auto& its = parts_[part].vertices;
                whole.vertices.insert(whole.vertices.end(), its.begin(), its.end());
            }
            if (!whole.is_small()) combine(whole, level);
            parts_.push_back(std::move(whole));
            parts = {parts_.size() - 1};
        }
        Part& whole = parts_[parts.front()];
        meter.prepare(whole.vertices.size() * whole.vertices.size());
        if (!whole.is_small()) add_edges(whole, level);
        return parts.front();
    }

    // The most that the children have together, each with its edges on the first levels only.
    void combine(Part& whole, std::size_t num_levels) {
        std::stable_sort(whole.children.begin(), whole.children.end(), [&](std::size_t a, std::size_t b) {
            return parts_[a].vertices.size() > parts_[b].vertices.size();
        });
        whole.most = {0};
        for (const std::size_t child : whole.children) {
            if (parts_[child].is_small()) tabulate(parts_[child], num_levels);
            whole.most = together(whole.most, parts_[child].most);
        }
    }

    std::vector<Fixed> together(const std::vector<Fixed>& a, const std::vector<Fixed>& b) const {
        const std::size_t most = std::min(a.size() + b.size() - 2, index(pattern_.size()));
        std::vector<Fixed> sums(most + 1, kNever);
        for (std::size_t i = 0; i < a.size(); ++i) {
            for (std::size_t j = 0; j < b.size() && i + j <= most; ++j)
                sums[i + j] = std::max(sums[i + j], a[i] + b[j]);
        }
        return sums;
    }

    Fixed drop(std::size_t level) const {
        return levels_.heaviest[level] - (level + 1 < levels_.count() ? levels_.heaviest[level + 1] : 0);
    }

    // Those of this level or a heavier one, for the drop to the next.
    void add_edges(Part& part, std::size_t level) const {
        std::vector<std::int32_t> degrees;
        for (const std::int32_t u : part.vertices) {
            degrees.push_back(static_cast<std::int32_t>(
                std::count_if(part.vertices.begin(), part.vertices.end(),
                              [&](std::int32_t v) { return has_edge(u, v, level); })));
        }
        std::sort(degrees.begin(), degrees.end(), std::greater<>());
        for (std::size_t count = 2; count < part.most.size(); ++count) {
            const std::span first(degrees.data(), count);
            std::int32_t ends = 0;
            for (std::int32_t i = 0; i < std::min(pattern_.max_degree(), static_cast<std::int32_t>(count) - 1);
                 ++i) {
                const auto able = std::partition_point(first.begin(), first.end(),
                                                       [&](std::int32_t degree) { return degree > i; });
                ends += std::min(static_cast<std::int32_t>(able - first.begin()), at_least_[index(i)]);
            }
            const std::int32_t edges =
                std::min(ends / 2, pattern_.spread().most_edges(static_cast<std::int32_t>(count)));
            part.most[count] += edges * drop(level);
        }
    }

    // Of a small part: the best set of each size, with its edges on the first levels.
    void tabulate(Part& part, std::size_t num_levels) const {
        const std::size_t size = part.vertices.size();
        std::vector<Rows> rows;
        for (std::size_t level = 0; level < num_levels; ++level) rows.push_back(rows_of(part, level));
        part.most.assign(size + 1, kNever);
        part.sets.assign(size + 1, 0);
        for (std::uint32_t set = 0; set < std::uint32_t{1} << size; ++set) {
            Fixed sum = 0;
            for (std::size_t level = 0; level < num_levels; ++level)
                sum += most_edges(rows[level], set) * drop(level);
            const std::size_t count = index(std::popcount(set));
            if (sum <= part.most[count]) continue;
            part.most[count] = sum;
            part.sets[count] = set;
        }
    }

    Rows rows_of(const Part& part, std::size_t level) const {
        Rows rows{};
        for (std::size_t i = 0; i < part.vertices.size(); ++i) {
            for (std::size_t j = 0; j < part.vertices.size(); ++j) {
                if (has_edge(part.vertices[i], part.vertices[j], level)) rows[i] |= std::uint32_t{1} << j;
            }
        }
        return rows;
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
    void choose(const Part& part, std::int32_t count, std::vector<std::int32_t>& chosen) const {
        if (part.is_small() && !part.sets.empty()) {
            for (std::uint32_t set = part.sets[index(count)]; set != 0; set &= set - 1)
                chosen.push_back(part.vertices[index(std::countr_zero(set))]);
            return;
        }
        std::vector<std::vector<Fixed>> sums{{0}};
        for (const std::size_t child : part.children)
            sums.push_back(together(sums.back(), parts_[child].most));
        for (std::size_t i = part.children.size(); i-- > 0 && count > 0;) {
            const std::vector<Fixed>& its = parts_[part.children[i]].most;
            std::size_t here = 0;
            const auto rest = [&] { return index(count) - here; };
            while (rest() >= sums[i].size() || sums[i][rest()] + its[here] < sums[i + 1][index(count)]) ++here;
            choose(parts_[part.children[i]], static_cast<std::int32_t>(here), chosen);
            count -= static_cast<std::int32_t>(here);
        }
    }

    const Pattern::Impl& pattern_;
    const Target::Impl& target_;
    const Levels& levels_;
    std::vector<std::int32_t> at_least_;  // [i]: how many pattern vertices have more than i edges
    std::vector<Part> parts_;
    std::vector<std::size_t> wholes_;  // parts that are not in another so far
};

}  // namespace

NestedBound nested_bound(const Pattern::Impl& pattern, const Target::Impl& target, const Levels& levels,
                         std::span<const std::int32_t> free, WorkMeter& meter) {
    return NestedParts(pattern, target, levels, free).bound(meter);
}

}  // namespace topoplace::match
