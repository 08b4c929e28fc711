// Builds the rows: both directions of every edge, sorted by tail and head.
#include "topoplace/graph.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "graph/index.hpp"

namespace topoplace {
namespace {

std::string describe(std::size_t index, const Edge& edge) {
    return "edges[" + std::to_string(index) + "] = (" + std::to_string(edge.u) + ", " +
           std::to_string(edge.v) + ", " + std::to_string(edge.weight) + ")";
}

void check(std::int32_t n, std::span<const Edge> edges) {
    if (n < 0) throw std::invalid_argument("num_vertices = " + std::to_string(n) + " is negative");
    for (std::size_t i = 0; i < edges.size(); ++i) {
        const Edge& edge = edges[i];
        if (edge.u < 0 || edge.v < 0 || edge.u >= n || edge.v >= n) {
            throw std::invalid_argument(describe(i, edge) + ": vertices must be in 0.." +
                                        std::to_string(n - 1));
        }
        if (edge.u == edge.v) throw std::invalid_argument(describe(i, edge) + " is a loop");
        if (!(edge.weight > 0) || !std::isfinite(edge.weight)) {
            throw std::invalid_argument(describe(i, edge) + ": the weight must be positive and finite");
        }
    }
}

}  // namespace

Graph::Graph(std::int32_t num_vertices, std::span<const Edge> edges) {
    check(num_vertices, edges);
    offsets_.assign(index(num_vertices) + 1, 0);
    std::vector<Edge> arcs;
    arcs.reserve(2 * edges.size());
    for (const Edge& edge : edges) {
        arcs.push_back(edge);
        arcs.push_back({edge.v, edge.u, edge.weight});
    }
    const auto ends = [](const Edge& a, const Edge& b) { return a.u != b.u ? a.u < b.u : a.v < b.v; };
    std::sort(arcs.begin(), arcs.end(), ends);
    for (std::size_t i = 0; i < arcs.size(); ++i) {
        if (i > 0 && arcs[i].u == arcs[i - 1].u && arcs[i].v == arcs[i - 1].v) {
            throw std::invalid_argument("edge (" + std::to_string(arcs[i].u) + ", " +
                                        std::to_string(arcs[i].v) + ") is listed twice");
        }
        ++offsets_[index(arcs[i].u) + 1];
        neighbors_.push_back(arcs[i].v);
        weights_.push_back(arcs[i].weight);
    }
    for (std::size_t v = 1; v < offsets_.size(); ++v) offsets_[v] += offsets_[v - 1];
    TOPOPLACE_ASSERT(is_consistent());
}

// Rows ascend, hold no loop, and every edge is in the rows of both its ends with one weight.
bool Graph::is_consistent() const {
    if (offsets_.back() != std::ssize(neighbors_) || neighbors_.size() != weights_.size()) return false;
    for (std::int32_t v = 0; v < num_vertices(); ++v) {
        const auto row = neighbors(v);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool ascends = i == 0 || row[i - 1] < row[i];
            if (!ascends || row[i] == v || weight(row[i], v) != weights(v)[i]) return false;
        }
    }
    return true;
}

double Graph::weight(std::int32_t u, std::int32_t v) const {
    const auto row = neighbors(u);
    const auto found = std::lower_bound(row.begin(), row.end(), v);
    if (found == row.end() || *found != v) return 0.0;
    return weights(u)[static_cast<std::size_t>(found - row.begin())];
}

}  // namespace topoplace
