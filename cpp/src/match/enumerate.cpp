// Enumeration and counting: all mappings, one for each image, or one for each set of target vertices.
#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "graph/index.hpp"
#include "match/backtrack.hpp"

namespace topoplace::match {
namespace {

std::vector<std::int32_t> neighbor_degrees(std::span<const std::int32_t> neighbors, const auto& degree_of) {
    std::vector<std::int32_t> degrees;
    for (const std::int32_t v : neighbors) degrees.push_back(degree_of(v));
    std::sort(degrees.begin(), degrees.end(), std::greater<>());
    return degrees;
}

// Every neighbour of the first has its own neighbour of at least its degree in the second.
bool fits(std::span<const std::int32_t> wanted, std::span<const std::int32_t> offered) {
    if (wanted.size() > offered.size()) return false;
    return std::equal(wanted.begin(), wanted.end(), offered.begin(), [](auto a, auto b) { return a <= b; });
}

// False where degrees alone rule out every embedding, which most impossible questions come to: for some d the
// pattern has more vertices of at least d edges than the target.
bool may_fit(const Pattern::Impl& pattern, const Graph& target) {
    if (pattern.size() > target.num_vertices() || pattern.num_edges() > target.num_edges()) return false;
    std::vector<std::int32_t> surplus(index(pattern.max_degree()) +
                                      1);  // by degree, the pattern's largest for more
    for (std::int32_t v = 0; v < target.num_vertices(); ++v) {
        ++surplus[index(std::min(target.degree(v), pattern.max_degree()))];
    }
    for (std::int32_t u = 0; u < pattern.size(); ++u) --surplus[index(pattern.degree(u))];
    std::int32_t above = 0;
    return std::all_of(surplus.rbegin(), surplus.rend(), [&](std::int32_t here) {
        above += here;
        return above >= 0;
    });
}

std::int64_t saturating_product(std::int64_t count, double factor) {
    TOPOPLACE_ASSERT(count >= 0 && factor >= 1);
    const double product = static_cast<double>(count) * factor;
    if (product >= 9.2e18) return std::numeric_limits<std::int64_t>::max();
    return count * static_cast<std::int64_t>(factor);
}

}  // namespace

template <int W>
Space<W>::Space(const Pattern::Impl& p, const Target::Impl& t, const EnumerateParams& params,
                WorkMeter& meter)
    : pattern(p),
      target_size(t.size()),
      induced(params.induced),
      adjacency(t.adjacency(params.min_weight, meter)),
      allowed(index(p.size()), Bits<W>::first(t.size())) {
    const auto row = [&](std::int32_t u) {
        return params.candidates.subspan(index(u) * index(target_size), index(target_size));
    };
    for (std::int32_t u = 0; u < p.size() && !params.candidates.empty(); ++u) {
        for (std::int32_t v = 0; v < target_size; ++v) {
            if (row(u)[index(v)] == 0) allowed[index(u)].reset(v);
        }
        uniform = uniform && std::equal(row(u).begin(), row(u).end(), row(0).begin());
    }
    filter_by_degree(meter);
    add_balls(meter);
}

template <int W>
void Space<W>::filter_by_degree(WorkMeter& meter) {
    std::vector<std::vector<std::int32_t>> around(index(target_size));
    const auto target_degree = [&](std::int32_t v) { return adjacency.get<W>(index(v)).count(); };
    const auto pattern_degree = [&](std::int32_t u) { return pattern.degree(u); };
    std::int32_t least = target_size;
    for (std::int32_t v = 0; v < target_size; ++v) least = std::min(least, target_degree(v));
    if (least >= pattern.max_degree()) return;  // nothing can be filtered
    for (std::int32_t v = 0; v < target_size; ++v) {
        std::vector<std::int32_t> neighbors;
        adjacency.get<W>(index(v)).for_each([&](std::int32_t x) { neighbors.push_back(x); });
        meter.prepare(128 * neighbors.size());
        around[index(v)] = neighbor_degrees(neighbors, target_degree);
    }
    for (std::int32_t u = 0; u < pattern.size(); ++u) {
        const auto wanted = neighbor_degrees(pattern.neighbors(u), pattern_degree);
        meter.prepare(8 * index(target_size) * (1 + wanted.size()));
        for (std::int32_t v = 0; v < target_size; ++v) {
            if (!fits(wanted, around[index(v)])) allowed[index(u)].reset(v);
        }
    }
}

template <int W>
void Space<W>::add_balls(WorkMeter& meter) {
    std::int32_t largest = 0;
    for (std::int32_t d = 0; d < pattern.size(); ++d) {
        for (const Reach& reach : pattern.plan(meter).reach[d]) largest = std::max(largest, reach.radius);
        for (const Reach& reach : pattern.natural(meter).reach[d]) largest = std::max(largest, reach.radius);
    }
    bool full = true;
    const Bits<W> everyone = Bits<W>::first(target_size);
    for (std::int32_t radius = 2; radius <= largest; ++radius) {
        if (ball.empty()) ball.assign(2, BitRows{});
        ball.emplace_back(index(target_size), width_of(target_size));
        for (std::int32_t v = 0; v < target_size; ++v) {
            const BitRows& inner = radius == 2 ? adjacency : ball[index(radius) - 1];
            Bits<W> reached = inner.get<W>(index(v));
            meter.prepare(index(reached.count()) * (W + 4));
            reached.for_each([&](std::int32_t x) { reached |= adjacency.get<W>(index(x)); });
            reached.for_each([&](std::int32_t x) { ball[index(radius)].set(index(v), x); });
            full = full && reached == everyone;
        }
    }
    if (full) ball.clear();
}

namespace {

template <int W>
class Enumeration {
  public:
    Enumeration(const Pattern::Impl& pattern, const Target::Impl& target, const EnumerateParams& params,
                bool rows)
        : pattern_(pattern),
          meter_(params.stop),
          space_(pattern, target, params, meter_),
          params_(params),
          rows_(rows),
          row_(index(pattern.size())) {}

    EnumerateResult run() {
        try {
            search();
        } catch (const Stopped&) {
            TOPOPLACE_ASSERT(meter_.stopped());
        }
        result_.complete = result_.complete && !meter_.stopped();
        result_.nodes = meter_.nodes();
        return std::move(result_);
    }

  private:
    void search() {
        switch (params_.distinct) {
            case Distinct::mappings:
                mappings();
                break;
            case Distinct::images:
                space_.uniform ? images() : images_one_by_one();
                break;
            case Distinct::vertex_sets:
                vertex_sets();
                break;
        }
    }

    // Counting all mappings counts the images and multiplies by the automorphisms.
    void mappings() {
        if (!space_.uniform || (!rows_ && params_.limit != kNoLimit)) return walk(false);
        const double factor = pattern_.num_automorphisms(meter_);
        if (rows_) return reserve_for(factor) ? walk(false) : void();
        result_.count = saturating_product(count_images(params_.limit), factor);
    }

    void images() {
        if (!rows_ || reserve_for(1)) walk(true);
    }

    void walk(bool break_symmetry) {
        Backtrack<W> search(space_, pattern_.plan(meter_), break_symmetry, meter_);
        search.run([&](const Backtrack<W>& at_leaf, const Bits<W>& last) { return take(at_leaf, last); });
    }

    // Until there are `most`.
    std::int64_t count_images(std::int64_t most) {
        std::int64_t count = 0;
        Backtrack<W> search(space_, pattern_.plan(meter_), true, meter_);
        search.run([&](const Backtrack<W>&, const Bits<W>& last) {
            count += last.count();
            return count < most;
        });
        return count;
    }

    // Counting first is cheap beside moving gigabytes of rows to a larger vector. False where there are none.
    bool reserve_for(double mappings_per_image) {
        if (params_.limit <= kReserveLimit) return true;
        const std::int64_t most = std::min(params_.limit, kMostReserved / pattern_.size());
        const std::int64_t rows = saturating_product(count_images(most), mappings_per_image);
        result_.vertices.reserve(index(pattern_.size()) * static_cast<std::size_t>(std::min(rows, most)));
        return rows > 0;
    }

    bool take(const Backtrack<W>& search, const Bits<W>& last) {
        const std::int64_t found = last.count();
        TOPOPLACE_ASSERT(found > 0 && result_.count <= params_.limit);
        if (found > params_.limit - result_.count) return take_some(search, last);
        result_.count += found;
        if (rows_) {
            meter_.spend(16 * index(last.count()) * row_.size());
            const std::int32_t u = search.write(last.lowest(), row_.data());
            last.for_each([&](std::int32_t v) {
                row_[index(u)] = v;
                TOPOPLACE_ASSERT(is_embedding(row_));
                result_.vertices.insert(result_.vertices.end(), row_.begin(), row_.end());
            });
        }
        return true;
    }

    bool is_embedding(const std::vector<std::int32_t>& row) const {
        for (std::int32_t u = 0; u < pattern_.size(); ++u) {
            if (std::count(row.begin(), row.end(), row[index(u)]) != 1) return false;
            for (const std::int32_t v : pattern_.neighbors(u)) {
                if (!space_.adjacency.test(index(row[index(u)]), row[index(v)])) return false;
            }
        }
        return true;
    }

    bool take_some(const Backtrack<W>& search, const Bits<W>& last) {
        bool room = true;
        last.for_each([&](std::int32_t v) { room = room && append(search, v); });
        return room;
    }

    bool append(const Backtrack<W>& search, std::int32_t last) {
        if (result_.count == params_.limit) {
            result_.complete = false;
            return false;
        }
        ++result_.count;
        if (rows_) {
            search.write(last, row_.data());
            TOPOPLACE_ASSERT(is_embedding(row_));
            result_.vertices.insert(result_.vertices.end(), row_.begin(), row_.end());
        }
        return true;
    }

    // Candidates that differ between vertices are not symmetric; images then differ by their edges.
    void images_one_by_one() {
        std::set<std::vector<std::pair<std::int32_t, std::int32_t>>> seen;
        Backtrack<W> search(space_, pattern_.natural(meter_), false, meter_);
        search.run([&](const Backtrack<W>& at_leaf, const Bits<W>& last) {
            bool room = true;
            last.for_each([&](std::int32_t v) {
                at_leaf.write(v, row_.data());
                if (room && seen.insert(edges_of(row_)).second) room = append(at_leaf, v);
            });
            return room;
        });
    }

    std::vector<std::pair<std::int32_t, std::int32_t>> edges_of(const std::vector<std::int32_t>& row) const {
        std::vector<std::pair<std::int32_t, std::int32_t>> edges;
        for (std::int32_t u = 0; u < pattern_.size(); ++u) {
            edges.emplace_back(row[index(u)], row[index(u)]);
            for (const std::int32_t v : pattern_.neighbors(u))
                edges.emplace_back(row[index(u)], row[index(v)]);
        }
        std::sort(edges.begin(), edges.end());
        return edges;
    }

    // Sets in lexicographic order: a vertex is taken in, then left out, where some embedding agrees.
    void vertex_sets() {
        Bits<W> usable;
        for (const Bits<W>& set : space_.allowed) usable |= set;
        Bits<W> witness;
        if (find(Bits<W>{}, usable, witness)) split(Bits<W>{}, usable, witness);
    }

    // Some embedding covers `witness`, with taken within it and it within usable.
    bool split(const Bits<W>& taken, Bits<W> usable, Bits<W> witness) {
        while (taken.count() < pattern_.size()) {
            TOPOPLACE_ASSERT(witness.count() == pattern_.size());
            TOPOPLACE_ASSERT(!(taken - witness).any() && !(witness - usable).any());
            if (meter_.stopped()) return false;
            const std::int32_t v = (usable - taken).lowest();
            Bits<W> with = taken;
            with.set(v);
            Bits<W> other = witness;
            if ((witness.test(v) || find(with, usable, other)) && !split(with, usable, other)) return false;
            usable.reset(v);
            if (witness.test(v) && !find(taken, usable, witness)) return !meter_.stopped();
        }
        return append_set(taken);
    }

    bool find(const Bits<W>& required, const Bits<W>& usable, Bits<W>& witness) {
        if (usable.count() < pattern_.size()) return false;
        const auto try_plan = [&](const Plan& plan, std::int32_t root) {
            Backtrack<W> search(space_, plan, false, meter_);
            search.restrict_to(usable, required);
            if (root != kAbsent) search.fix_root(root);
            bool found = false;
            search.run([&](const Backtrack<W>& at_leaf, const Bits<W>& last) {
                witness = Bits<W>::single(last.lowest());
                for (std::int32_t d = 0; d + 1 < pattern_.size(); ++d)
                    witness.set(at_leaf.images()[index(d)]);
                found = true;
                return false;
            });
            return found;
        };
        if (!required.any()) return try_plan(pattern_.plan(meter_), kAbsent);
        const std::int32_t root = required.lowest();
        for (std::int32_t u = 0; u < pattern_.size(); ++u) {
            if (space_.uniform && !is_representative(u)) continue;
            if (try_plan(pattern_.rooted(u, meter_), root)) return true;
        }
        return false;
    }

    bool is_representative(std::int32_t u) {
        const auto list = pattern_.representatives(meter_);
        return std::binary_search(list.begin(), list.end(), u);
    }

    bool append_set(const Bits<W>& set) {
        bool room = true;
        Backtrack<W> search(space_, pattern_.natural(meter_), false, meter_);
        search.restrict_to(set, set);
        search.run([&](const Backtrack<W>& at_leaf, const Bits<W>& last) {
            room = append(at_leaf, last.lowest());
            return false;
        });
        return room;
    }

    static constexpr std::int64_t kReserveLimit = 1 << 16;
    static constexpr std::int64_t kMostReserved = 1 << 28;  // numbers: a GiB

    const Pattern::Impl& pattern_;
    WorkMeter meter_;
    const Space<W> space_;
    const EnumerateParams& params_;
    const bool rows_;
    std::vector<std::int32_t> row_;
    EnumerateResult result_;
};

EnumerateResult search(const Pattern& pattern, const Target& target, const EnumerateParams& params,
                       bool rows) {
    const std::int32_t k = pattern.num_vertices();
    EnumerateResult result;
    if (!may_fit(pattern.impl(), target.impl().graph())) return result;
    if (k == 0) {
        result.count = std::min<std::int64_t>(1, params.limit);
        return result;
    }
    try {
        return with_width(target.num_vertices(), [&](auto width) {
            return Enumeration<width()>(pattern.impl(), target.impl(), params, rows).run();
        });
    } catch (const Stopped&) {  // before anything was found
        result.complete = false;
        return result;
    }
}

}  // namespace

EnumerateResult enumerate_subgraphs(const Pattern& pattern, const Target& target,
                                    const EnumerateParams& params) {
    return search(pattern, target, params, true);
}

EnumerateResult count_subgraphs(const Pattern& pattern, const Target& target, const EnumerateParams& params) {
    return search(pattern, target, params, false);
}

}  // namespace topoplace::match
