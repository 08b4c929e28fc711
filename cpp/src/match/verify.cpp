// Checks an embedding by the definition; shares no code with the searches.
#include <string>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {
namespace {

std::string pair(std::int32_t a, std::int32_t b) {
    return std::string(1, '(').append(std::to_string(a)).append(", ").append(std::to_string(b)).append(")");
}

// Every image in range, none twice.
Fault injective(std::span<const std::int32_t> vertices, std::int32_t size) {
    std::vector<std::int32_t> mapped_to(index(size), kAbsent);
    for (std::size_t a = 0; a < vertices.size(); ++a) {
        const std::int32_t v = vertices[a];
        if (v < 0 || v >= size) {
            return "vertex " + std::to_string(a) + " is mapped to " + std::to_string(v) +
                   "; the target has " + std::to_string(size) + " vertices";
        }
        if (mapped_to[index(v)] != kAbsent) {
            return "vertex " + std::to_string(mapped_to[index(v)]) + " and vertex " + std::to_string(a) +
                   " are both mapped to " + std::to_string(v);
        }
        mapped_to[index(v)] = static_cast<std::int32_t>(a);
    }
    return std::nullopt;
}

}  // namespace

Fault verify_embedding(const Graph& pattern, const Graph& target, std::span<const std::int32_t> vertices,
                       bool induced, double min_weight) {
    const std::int32_t k = pattern.num_vertices();
    if (vertices.size() != index(k)) {
        return std::to_string(vertices.size()) + " vertices are mapped; the pattern has " + std::to_string(k);
    }
    if (auto fault = injective(vertices, target.num_vertices())) return fault;
    for (std::int32_t a = 0; a < k; ++a) {
        for (std::int32_t b = a + 1; b < k; ++b) {
            const bool wanted = pattern.weight(a, b) > 0;
            const std::int32_t u = vertices[index(a)];
            const std::int32_t v = vertices[index(b)];
            const double weight = target.weight(u, v);
            const bool present = weight > 0 && weight >= min_weight;
            if (wanted && !present)
                return "edge " + pair(a, b) + " is mapped to " + pair(u, v) + ", which is no edge";
            if (induced && !wanted && present)
                return pair(a, b) + " is no edge, but is mapped to the edge " + pair(u, v);
        }
    }
    return std::nullopt;
}

}  // namespace topoplace::match
