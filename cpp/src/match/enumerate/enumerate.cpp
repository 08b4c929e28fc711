// Enumeration and counting: all mappings, one for each image, or one for each set of target vertices.
#include <algorithm>
#include <functional>
#include <ranges>
#include <utility>

#include "graph/index.hpp"
#include "match/enumerate/backtrack.hpp"
#include "match/enumerate/enumeration.hpp"
#include "match/enumerate/vertex_sets.hpp"
#include "match/sparse/backtrack.hpp"
#include "match/sparse/vertex_sets.hpp"

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

}  // namespace

template <int W>
DenseSpace<W>::DenseSpace(const Pattern::Impl& p, BitRows rows, std::int32_t size,
                          const EnumerateParams& params)
    : pattern(p),
      target_size(size),
      induced(params.induced),
      adjacency(std::move(rows)),
      allowed(index(p.size()), Bits<W>::first(size)) {
    const auto row = [&](std::int32_t u) {
        return params.candidates.subspan(index(u) * index(target_size), index(target_size));
    };
    for (std::int32_t u = 0; u < p.size() && !params.candidates.empty(); ++u) {
        for (std::int32_t v = 0; v < target_size; ++v) {
            if (row(u)[index(v)] == 0) allowed[index(u)].reset(v);
        }
        uniform = uniform && std::equal(row(u).begin(), row(u).end(), row(0).begin());
    }
}

template <int W>
std::optional<DenseSpace<W>> DenseSpace<W>::make(const Pattern::Impl& p, const Target::Impl& t,
                                                 const EnumerateParams& params, WorkMeter& meter) {
    auto rows = t.adjacency(params.min_weight, meter);
    if (!rows) return std::nullopt;
    DenseSpace space(p, std::move(*rows), t.size(), params);
    if (!space.filter_by_degree(meter) || !space.add_balls(meter)) return std::nullopt;
    return space;
}

template <int W>
bool DenseSpace<W>::filter_by_degree(WorkMeter& meter) {
    std::vector<std::vector<std::int32_t>> around(index(target_size));
    const auto target_degree = [&](std::int32_t v) { return adjacency.get<W>(index(v)).count(); };
    const auto pattern_degree = [&](std::int32_t u) { return pattern.degree(u); };
    const auto vertices = std::views::iota(0, target_size);
    if (std::ranges::min(vertices | std::views::transform(target_degree)) >= pattern.max_degree())
        return true;  // nothing can be filtered
    for (std::int32_t v = 0; v < target_size; ++v) {
        std::vector<std::int32_t> neighbors;
        adjacency.get<W>(index(v)).for_each([&](std::int32_t x) { neighbors.push_back(x); });
        if (meter.pass_time(128 * neighbors.size())) return false;
        around[index(v)] = neighbor_degrees(neighbors, target_degree);
    }
    for (std::int32_t u = 0; u < pattern.size(); ++u) {
        const auto wanted = neighbor_degrees(pattern.neighbors(u), pattern_degree);
        if (meter.pass_time(std::uint64_t{8} * index(target_size) * (1 + wanted.size()))) return false;
        for (std::int32_t v = 0; v < target_size; ++v) {
            if (!fits(wanted, around[index(v)])) allowed[index(u)].reset(v);
        }
    }
    return true;
}

template <int W>
bool DenseSpace<W>::add_balls(WorkMeter& meter) {
    std::int32_t largest = 0;
    for (const Plan* plan : {pattern.plan(meter), pattern.natural(meter)}) {
        if (plan == nullptr) return false;
        for (std::int32_t d = 0; d < pattern.size(); ++d) {
            for (const Reach& reach : plan->reach[d]) largest = std::max(largest, reach.radius);
        }
    }
    bool full = true;
    const Bits<W> everyone = Bits<W>::first(target_size);
    for (std::int32_t radius = 2; radius <= largest; ++radius) {
        if (ball.empty()) ball.assign(2, BitRows{});
        ball.emplace_back(index(target_size), width_of(target_size));
        for (std::int32_t v = 0; v < target_size; ++v) {
            const BitRows& inner = radius == 2 ? adjacency : ball[index(radius) - 1];
            Bits<W> reached = inner.get<W>(index(v));
            if (meter.pass_time(index(reached.count()) * (W + 4))) return false;
            reached.for_each([&](std::int32_t x) { reached |= adjacency.get<W>(index(x)); });
            reached.for_each([&](std::int32_t x) { ball[index(radius)].set(index(v), x); });
            full = full && reached == everyone;
        }
    }
    if (full) ball.clear();
    return true;
}

namespace {

EnumerateResult search(const Pattern& pattern, const Target& target, const EnumerateParams& params,
                       bool rows) {
    const std::int32_t k = pattern.num_vertices();
    EnumerateResult result;
    if (!may_fit(pattern.impl(), target.graph())) return result;
    if (k == 0) {
        result.count = std::min<std::int64_t>(1, params.limit);
        return result;
    }
    if (target.is_sparse())
        return Enumeration<sparse::Space>(pattern.impl(), target.sparse(), params, rows).run();
    return with_width(target.num_vertices(), [&](auto width) {
        return Enumeration<DenseSpace<width()>>(pattern.impl(), *target.impl(), params, rows).run();
    });
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
