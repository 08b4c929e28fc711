// Builds the rows: both directions of every edge, sorted by tail and head.
#include "topoplace/graph.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

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

// Every edge is entered in the rows of both its ends, in the order given; then every row is dealt out to its
// neighbors' rows, in the order of the rows: these ascend, and hold the same entries.
Graph::Graph(std::int32_t num_vertices, std::span<const Edge> edges, const StopCondition& stop) {
    constexpr std::uint64_t kStepsPerEntry = 64;
    check(num_vertices, edges);
    WorkMeter meter(stop);
    auto rows = std::make_shared<Rows>();
    auto& [offsets, neighbors, weights] = *rows;
    offsets.assign(index(num_vertices) + 1, 0);
    for (const Edge& edge : edges) {
        ++offsets[index(edge.u) + 1];
        ++offsets[index(edge.v) + 1];
    }
    for (std::size_t v = 1; v < offsets.size(); ++v) offsets[v] += offsets[v - 1];
    offsets_ = offsets;
    struct Entry {
        std::int32_t neighbor;
        double weight;
    };
    std::vector<Entry> entries(2 * edges.size());
    auto end = offsets;  // of what is in each row so far
    for (const Edge& edge : edges) {
        meter.prepare(kStepsPerEntry);
        entries[static_cast<std::size_t>(end[index(edge.u)]++)] = {edge.v, edge.weight};
        entries[static_cast<std::size_t>(end[index(edge.v)]++)] = {edge.u, edge.weight};
    }
    neighbors.resize(entries.size());
    weights.resize(entries.size());
    end = offsets;
    for (std::int32_t u = 0; u < num_vertices; ++u) {
        meter.prepare(kStepsPerEntry * (begin(u + 1) - begin(u)));
        const auto row = std::span(entries).subspan(begin(u), begin(u + 1) - begin(u));
        for (const auto& [neighbor, weight] : row) {
            const auto place = static_cast<std::size_t>(end[index(neighbor)]++);
            if (place > begin(neighbor) && neighbors[place - 1] == u) {
                throw std::invalid_argument("edge (" + std::to_string(std::min(u, neighbor)) + ", " +
                                            std::to_string(std::max(u, neighbor)) + ") is listed twice");
            }
            neighbors[place] = u;
            weights[place] = weight;
        }
    }
    neighbors_ = neighbors;
    weights_ = weights;
    rows_ = std::move(rows);
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
