// Builds the rows: both directions of every edge, sorted by tail and head.
#include "topoplace/graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "graph/index.hpp"

namespace topoplace {
namespace {

std::string describe(std::size_t index, const Edge& edge) {
    return "edges[" + std::to_string(index) + "] = (" + std::to_string(edge.u) + ", " +
           std::to_string(edge.v) + ", " + std::to_string(edge.weight) + ")";
}

Fault check(std::int32_t n, std::span<const Edge> edges) {
    if (n < 0) return "num_vertices = " + std::to_string(n) + " is negative";
    for (std::size_t i = 0; i < edges.size(); ++i) {
        const Edge& edge = edges[i];
        if (edge.u < 0 || edge.v < 0 || edge.u >= n || edge.v >= n)
            return describe(i, edge) + ": vertices must be in 0.." + std::to_string(n - 1);
        if (edge.u == edge.v) return describe(i, edge) + " is a loop";
        if (!(edge.weight > 0) || !std::isfinite(edge.weight))
            return describe(i, edge) + ": the weight must be positive and finite";
    }
    return std::nullopt;
}

// By blocks, which stay in the cache where rows meet columns. False where it is stopped first.
[[nodiscard]] bool check_symmetric(std::size_t n, std::span<const double> matrix, WorkMeter& meter,
                                   Fault& fault) {
    constexpr std::size_t kBlock = 32;
    bool is_valid = true;
    for (std::size_t top = 0; top < n; top += kBlock) {
        if (meter.pass_time(8 * n * kBlock)) return false;
        for (std::size_t left = 0; left <= top; left += kBlock) {
            for (std::size_t u = top; u < std::min(top + kBlock, n); ++u) {
                for (std::size_t v = left; v < std::min(left + kBlock, u); ++v) {
                    const double weight = matrix[u * n + v];
                    is_valid = is_valid && weight >= 0 && weight <= std::numeric_limits<double>::max() &&
                               weight == matrix[v * n + u];
                }
            }
        }
        for (std::size_t v = top; v < std::min(top + kBlock, n); ++v)
            is_valid = is_valid && matrix[v * n + v] == 0;
    }
    if (!is_valid) fault = "the matrix is not one of symmetric weights";
    return is_valid;
}

Graph checked(std::int32_t num_vertices, std::span<const Edge> edges) {
    Fault fault;
    auto graph = Graph::of_edges(num_vertices, edges, {}, fault);
    TOPOPLACE_ASSERT(graph);
    return *std::move(graph);
}

}  // namespace

Graph::Graph(std::shared_ptr<const Rows> rows)
    : rows_(std::move(rows)),
      offsets_(rows_->offsets),
      neighbors_(rows_->neighbors),
      weights_(rows_->weights) {
    TOPOPLACE_ASSERT(is_consistent());
}

Graph::Graph(std::int32_t num_vertices, std::span<const Edge> edges) : Graph(checked(num_vertices, edges)) {}

// Every edge is entered in the rows of both its ends, in the order given; then every row is dealt out to its
// neighbors' rows, in the order of the rows: these ascend, and hold the same entries.
std::optional<Graph> Graph::of_edges(std::int32_t num_vertices, std::span<const Edge> edges,
                                     const StopCondition& stop, Fault& fault) {
    constexpr std::uint64_t kStepsPerEntry = 64;
    fault = check(num_vertices, edges);
    if (fault) return std::nullopt;
    WorkMeter meter(stop);
    auto rows = std::make_shared<Rows>();
    auto& [offsets, neighbors, weights] = *rows;
    offsets.assign(index(num_vertices) + 1, 0);
    for (const Edge& edge : edges) {
        ++offsets[index(edge.u) + 1];
        ++offsets[index(edge.v) + 1];
    }
    for (std::size_t v = 1; v < offsets.size(); ++v) offsets[v] += offsets[v - 1];
    const auto begin = [&](std::int32_t v) { return static_cast<std::size_t>(offsets[index(v)]); };
    struct Entry {
        std::int32_t neighbor;
        double weight;
    };
    std::vector<Entry> entries(2 * edges.size());
    auto end = offsets;  // of what is in each row so far
    for (const Edge& edge : edges) {
        if (meter.pass_time(kStepsPerEntry)) return std::nullopt;
        entries[static_cast<std::size_t>(end[index(edge.u)]++)] = {edge.v, edge.weight};
        entries[static_cast<std::size_t>(end[index(edge.v)]++)] = {edge.u, edge.weight};
    }
    neighbors.resize(entries.size());
    weights.resize(entries.size());
    end = offsets;
    for (std::int32_t u = 0; u < num_vertices; ++u) {
        if (meter.pass_time(kStepsPerEntry * (begin(u + 1) - begin(u)))) return std::nullopt;
        const auto row = std::span(entries).subspan(begin(u), begin(u + 1) - begin(u));
        for (const auto& [neighbor, weight] : row) {
            const auto place = static_cast<std::size_t>(end[index(neighbor)]++);
            if (place > begin(neighbor) && neighbors[place - 1] == u) {
                fault = "edge (" + std::to_string(std::min(u, neighbor)) + ", " +
                        std::to_string(std::max(u, neighbor)) + ") is listed twice";
                return std::nullopt;
            }
            neighbors[place] = u;
            weights[place] = weight;
        }
    }
    return Graph(std::move(rows));
}

std::optional<Graph> Graph::of_matrix(std::int32_t num_vertices, std::span<const double> matrix,
                                      const StopCondition& stop, Fault& fault) {
    const std::size_t n = index(num_vertices);
    TOPOPLACE_ASSERT(matrix.size() == n * n);
    WorkMeter meter(stop);
    if (!check_symmetric(n, matrix, meter, fault)) return std::nullopt;
    auto rows = std::make_shared<Rows>();
    const auto present =
        matrix.size() - static_cast<std::size_t>(std::count(matrix.begin(), matrix.end(), 0.0));
    rows->offsets.assign(n + 1, 0);
    rows->neighbors.reserve(present);
    rows->weights.reserve(present);
    for (std::size_t u = 0; u < n; ++u) {
        if (meter.pass_time(8 * n)) return std::nullopt;
        for (std::size_t v = 0; v < n; ++v) {
            const double weight = matrix[u * n + v];
            if (weight == 0) continue;
            rows->neighbors.push_back(static_cast<std::int32_t>(v));
            rows->weights.push_back(weight);
        }
        rows->offsets[u + 1] = std::ssize(rows->neighbors);
    }
    return Graph(std::move(rows));
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
