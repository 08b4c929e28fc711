// Checks an embedding by the definition; shares no code with the searches.
#include <algorithm>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {

bool verify_mapping(const Graph& pattern, const Graph& target, std::span<const std::int32_t> vertices,
                    bool induced, double min_weight) {
    const std::int32_t k = pattern.num_vertices();
    if (vertices.size() != index(k)) return false;
    std::vector<bool> used(index(target.num_vertices()), false);
    for (const std::int32_t v : vertices) {
        if (v < 0 || v >= target.num_vertices() || used[index(v)]) return false;
        used[index(v)] = true;
    }
    for (std::int32_t a = 0; a < k; ++a) {
        for (std::int32_t b = a + 1; b < k; ++b) {
            const bool wanted = pattern.weight(a, b) > 0;
            const double weight =
                target.weight(vertices[index(a)], vertices[index(b)]);
            const bool present = weight > 0 && weight >= min_weight;
            if (wanted && !present) return false;
            if (induced && !wanted && present) return false;
        }
    }
    return true;
}

}  // namespace topoplace::match
