// An answer without a search: the required and then the lowest free vertices, where they hold the pattern.
#include <algorithm>
#include <limits>

#include "graph/index.hpp"
#include "match/link_counts.hpp"

namespace topoplace::match {
namespace {

std::vector<std::int32_t> ascending(std::span<const std::int32_t> vertices) {
    std::vector<std::int32_t> result(vertices.begin(), vertices.end());
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

// Empty where there are too few, or too many required.
std::vector<std::int32_t> lowest(std::int32_t size, std::span<const std::int32_t> free,
                                 const BestParams& params) {
    const std::vector<std::int32_t> usable = ascending(free);
    const std::vector<std::int32_t> required = ascending(params.required);
    if (!std::includes(usable.begin(), usable.end(), required.begin(), required.end())) return {};
    std::vector<std::int32_t> chosen = required;
    for (const std::int32_t v : usable) {
        if (std::ssize(chosen) >= size) break;
        if (!std::binary_search(required.begin(), required.end(), v)) chosen.push_back(v);
    }
    std::sort(chosen.begin(), chosen.end());
    return std::ssize(chosen) == size ? chosen : std::vector<std::int32_t>{};
}

// Calls visit(u, v, weight) for the target edge of each pattern edge; false where one is missing.
template <class Visit>
bool visit_edges(const Graph& pattern, const Graph& target, const std::vector<std::int32_t>& vertices,
                 double min_weight, Visit&& visit) {
    for (std::int32_t a = 0; a < pattern.num_vertices(); ++a) {
        for (const std::int32_t b : pattern.neighbors(a)) {
            if (a > b) continue;
            const double weight = target.weight(vertices[index(a)], vertices[index(b)]);
            if (weight <= 0 || weight < min_weight) return false;
            visit(vertices[index(a)], vertices[index(b)], weight);
        }
    }
    return true;
}

}  // namespace

BestResult plain_subgraph(const Graph& pattern, const Graph& target, std::span<const std::int32_t> free,
                          Objective objective, const BestParams& params) {
    const std::vector<std::int32_t> chosen = lowest(pattern.num_vertices(), free, params);
    double sum = 0;
    double least = std::numeric_limits<double>::infinity();
    const bool is_embedding =
        std::ssize(chosen) == pattern.num_vertices() &&
        visit_edges(pattern, target, chosen, params.min_weight, [&](std::int32_t, std::int32_t, double w) {
            sum += w;
            least = std::min(least, w);
        });
    if (!is_embedding) return {};
    double heaviest = 0;
    for (std::int32_t v = 0; v < target.num_vertices(); ++v) {
        for (const double weight : target.weights(v)) heaviest = std::max(heaviest, weight);
    }
    if (pattern.num_edges() == 0) heaviest = least = 0;
    const bool is_sum = objective != Objective::bottleneck;
    return {.found = true,
            .vertices = chosen,
            .score = is_sum ? sum : least,
            .bound = is_sum ? std::max(sum, static_cast<double>(pattern.num_edges()) * heaviest) : heaviest};
}

BestResult plain_subgraph(const Graph& pattern, const Graph& target, std::span<const std::int32_t> free,
                          const LinkCountScore& score, const BestParams& params) {
    const std::vector<std::int32_t> chosen = lowest(pattern.num_vertices(), free, params);
    const auto n = index(target.num_vertices());
    LinkCountScore::Impl::Counts counts{};
    const bool is_embedding =
        std::ssize(chosen) == pattern.num_vertices() &&
        visit_edges(pattern, target, chosen, params.min_weight, [&](std::int32_t u, std::int32_t v, double) {
            ++counts[score.impl().edge_class(index(u) * n + index(v))];
        });
    if (!is_embedding) return {};
    return {.found = true,
            .vertices = chosen,
            .score = score.impl().score_of_rank(score.impl().rank(score.impl().position(counts))),
            .bound = score.impl().score_of_rank(score.impl().rank(0))};
}

}  // namespace topoplace::match
