// Bipartition: split a graph's vertices into two sides of given weights so that little edge weight crosses.
//
// The cut is the total weight of the edges between the sides. Side 0 is to hold the share `fraction` of the
// vertex weight W, side 1 the rest; with f = fraction, side 0 may hold at most (1 + imbalance) * ceil(f * W)
// and side 1 at most (1 + imbalance) * ceil((1 - f) * W), so that an odd vertex has its place without any
// tolerance. A product within 1e-9 of an integer counts as that integer.
//
// Weights are compared as integers: all are multiplied by one power of two, by which integers and binary
// fractions stay exact, and rounded once, to about 2^-61 of their total. Vertex weights are integers; their
// total must not exceed 2^53.
//
// The entry point is `bipartition`; cpp/src/partition/bipartition.cpp describes its method and gives the
// references.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::partition {

// The most vertices for which a minimum is proven.
inline constexpr std::int32_t kMaxExactVertices = 24;
// In `fixed`: the vertex may be on either side.
inline constexpr std::int8_t kFreeVertex = -1;

enum class GainStructure {
    automatic,  // buckets where the weights allow them, else a heap
    heap,
};

struct BipartitionParams {
    double fraction = 0.5;                           // share of the vertex weight meant for side 0
    double imbalance = 0;                            // how much more, relative, each side may hold
    std::span<const std::int64_t> vertex_weights{};  // not negative; empty: every vertex weighs 1
    std::span<const std::int8_t> fixed{};            // kFreeVertex, or the side to be on; empty: all free
    std::int32_t starts = 16;                        // starts of the heuristic on the coarsest level
    std::int32_t cycles = 1;                       // times that a level of medium size is made coarser again
    std::uint64_t seed = 0;                        // what the starts are drawn from
    std::int32_t exact_up_to = kMaxExactVertices;  // vertices up to which the minimum is proven
    std::int32_t coarsest = 60;                    // vertices at which no coarser level is made
    GainStructure gains = GainStructure::automatic;  // what keeps the moves in order
    StopCondition stop{};
};

enum class BipartitionStatus {
    optimal,     // balanced, and no balanced bipartition cuts less
    feasible,    // balanced; a smaller cut may exist
    infeasible,  // proven: no bipartition keeps the balance and the fixed vertices; allow more imbalance
    not_found,   // none was found; allow more imbalance, or more time where `complete` is false
};

struct BipartitionResult {
    std::vector<std::int8_t> side;  // 0 or 1 for each vertex; empty where none was found
    double cut = 0;                 // total weight of the edges between the sides
    double start_cut = 0;           // heuristic: of the balanced start this answer grew from, else infinite
    BipartitionStatus status = BipartitionStatus::not_found;
    bool complete = true;         // false: the search was stopped early
    bool optimal = false;         // the cut is proven minimal, and ties were broken to the end
    std::uint64_t passes = 0;     // of the heuristic, over all starts and levels
    std::uint64_t moves = 0;      // vertices moved
    std::uint64_t rollbacks = 0;  // moves taken back
    std::uint64_t nodes = 0;      // partial side vectors visited by the proof
};

// Memory that repeated calls share. One thread at a time.
class BipartitionWorkspace {
  public:
    BipartitionWorkspace();
    ~BipartitionWorkspace();
    BipartitionWorkspace(BipartitionWorkspace&&) noexcept;
    BipartitionWorkspace& operator=(BipartitionWorkspace&&) noexcept;

    struct Impl;
    Impl& impl() { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

// The parameter, the index and the value that is out of range.
[[nodiscard]] Fault check(const Graph& graph, const BipartitionParams& params);

BipartitionResult bipartition(const Graph& graph, const BipartitionParams& params,
                              BipartitionWorkspace* workspace = nullptr);

// Checks a result by the definition alone: one side for each vertex, fixed vertices kept, both sides within
// their limits, and `cut` the weight between them to within 1e-9 of the total weight.
Fault verify_bipartition(const Graph& graph, const BipartitionParams& params,
                         std::span<const std::int8_t> side, double cut);

}  // namespace topoplace::partition
