// A bipartition problem as the solvers take it: with integer weights and a limit for each side.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/partition.hpp"

namespace topoplace::partition {

inline constexpr std::int64_t kMaxVertexWeight = std::int64_t{1} << 53;

// A graph with integer weights, in compressed sparse rows.
struct IntegerGraph {
    std::vector<std::int64_t> offsets;
    std::unique_ptr<std::int32_t[]> neighbors;
    std::unique_ptr<std::int64_t[]> weights;

    // Memory of this size, not initialised: pages that stay unused cost nothing.
    void reserve(std::size_t num_vertices, std::size_t arcs) {
        offsets.resize(num_vertices + 1);
        neighbors = std::make_unique_for_overwrite<std::int32_t[]>(arcs);
        weights = std::make_unique_for_overwrite<std::int64_t[]>(arcs);
    }
    std::size_t size() const { return offsets.size() - 1; }
    std::size_t num_arcs() const { return static_cast<std::size_t>(offsets.back()); }
    std::size_t degree(std::size_t v) const { return end(v) - begin(v); }
    // The arcs of a vertex.
    std::size_t begin(std::size_t v) const { return static_cast<std::size_t>(offsets[v]); }
    std::size_t end(std::size_t v) const { return static_cast<std::size_t>(offsets[v + 1]); }
};

std::int64_t total_weight(const Graph& graph, const BipartitionParams& params);

// The most weight each side may hold.
std::array<std::int64_t, 2> limits_of(const BipartitionParams& params, std::int64_t total);

// The power of two by which edge weights become integers whose sum stays below 2^61; 1 where all are
// integers; none where `meter` stops.
std::optional<double> scale_of(const Graph& graph, WorkMeter& meter);

// A weight as an integer.
std::int64_t scaled(double weight, double scale);

// What is left to divide once isolated vertices are set aside: they cut nothing on either side.
struct Core {
    std::vector<std::int32_t> number;  // of each vertex; kAbsent: set aside; empty: each keeps its own
    std::vector<std::int64_t> vertex_weights;  // by these numbers; empty: as in the parameters
    std::vector<std::int8_t> fixed;            // likewise
    std::int32_t size = 0;
    std::int64_t weight = 0;

    bool sets_aside(std::int32_t v) const { return !number.empty() && number[index(v)] == kAbsent; }
};

// Sets aside the free isolated vertices so light that they always fit where the others are balanced.
Core core_of(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
             std::int64_t total);

// Gives the graph of the core integer weights. False where `meter` stops.
[[nodiscard]] bool fill(IntegerGraph& result, const Graph& graph, const Core& core, double scale,
                        WorkMeter& meter);

// Extends a balanced side vector of the core to all vertices: those set aside go, heaviest first, to the side
// with more room. `room` is what each side may still hold.
std::vector<std::int8_t> extended(const Core& core, const BipartitionParams& params,
                                  std::array<std::int64_t, 2> room, const std::vector<std::int8_t>& side);

// The weight between the sides, summed in the order of the vertices.
double cut_of(const Graph& graph, std::span<const std::int8_t> side);

}  // namespace topoplace::partition
