// Bipartition: split a graph's vertices into two sides of given weights so that little edge weight crosses.
//
// The cut is the total weight of the edges between the sides. Side 0 is to hold the share `fraction` of the
// vertex weight W, side 1 the rest; with f = fraction, side 0 may hold at most (1 + imbalance) * ceil(f * W)
// and side 1 at most (1 + imbalance) * ceil((1 - f) * W), so that an odd vertex has its place without any
// tolerance. A product within 1e-9 of an integer counts as that integer.
//
// Up to `exact_up_to` vertices a branch and bound proves the minimum cut, and of all minimum cuts returns the
// lexicographically smallest side vector. Vertices are placed in a fixed order, most strongly tied to those
// placed before first; what each open vertex costs on its cheaper side bounds from below; where the numbers
// of vertices on both sides are given, the smallest weight of all pairs is taken off every pair first, for it
// crosses the same number of times whatever the sides. Worst case 2^n nodes.
//
// Above that, coarser levels are made until `coarsest` vertices are left: each vertex joins a neighbor, or
// the cluster a neighbor is in, along an edge that is heavy for what the cluster weighs. At the coarsest,
// several seeded starts are grown breadth first; the best are carried back level by level: four while levels
// are small, one at the end. A level of up to a sixth of the graph is made coarser anew, in clusters that
// keep the sides apart, and what was found refined again from there (`cycles` times; all cycles of one round
// cost about half of making the levels). A coarse vertex may be too heavy for the balance: on coarse levels a
// side may hold one vertex too many, where the start was not balanced without.
//
// Wherever a division is refined, Fiduccia-Mattheyses passes move one vertex at a time, each at most once a
// pass, always the largest gain the balance allows (one vertex too many on a side is allowed for a moment),
// and return to the best balanced state met. Only vertices at the boundary are asked, and those that come to
// it. A pass ends after a number of moves that led nowhere; pass follows pass until one gains nothing. A pass
// takes time linear in the edges of what it moves with buckets, with a heap a logarithm more; buckets serve
// where the weights are integers and no vertex's weighted degree exceeds the number of vertices and edges. So
// a run takes the time of making the levels, which is linear in the edges as long as levels shrink by a
// constant.
//
// Weights are compared as integers: all are multiplied by one power of two, by which integers and binary
// fractions stay exact, and rounded once, to about 2^-61 of their total. Vertex weights are integers; their
// total must not exceed 2^53.
//
// References: Fiduccia and Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982;
// Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J.
// Sci. Comput. 20 (1998); Holtgrewe, Sanders and Schulz, "Engineering a scalable high quality graph
// partitioner", IPDPS 2010, for what makes an edge heavy; Walshaw, "Multilevel refinement for combinatorial
// optimisation problems", Annals of Operations Research 131 (2004), for cycles; Land and Doig, Econometrica
// 28 (1960), for branch and bound.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "topoplace/deadline.hpp"
#include "topoplace/graph.hpp"

namespace topoplace::partition {

// The most vertices for which a minimum is proven.
inline constexpr std::int32_t kMaxExactVertices = 24;

enum class GainStructure {
    automatic,  // buckets where the weights allow them, else a heap
    heap,
};

struct BipartitionParams {
    double fraction = 0.5;                           // share of the vertex weight meant for side 0
    double imbalance = 0;                            // how much more, relative, each side may hold
    std::span<const std::int64_t> vertex_weights{};  // not negative; empty: every vertex weighs 1
    std::span<const std::int8_t> fixed{};            // -1 free, else the side to be on; empty: all free
    std::int32_t starts = 16;                        // starts of the heuristic on the coarsest level
    std::int32_t cycles = 1;                         // times that a level of medium size is made coarser anew
    std::uint64_t seed = 0;                          // what the starts are drawn from
    std::int32_t exact_up_to = kMaxExactVertices;    // vertices up to which the minimum is proven
    std::int32_t coarsest = 60;                      // vertices at which no coarser level is made
    GainStructure gains = GainStructure::automatic;  // what keeps the moves in order
    Deadline deadline{};
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
    bool complete = true;         // false: the deadline ended the search early
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

// Throws std::invalid_argument naming the parameter, the index and the value that is out of range.
BipartitionResult bipartition(const Graph& graph, const BipartitionParams& params,
                              BipartitionWorkspace* workspace = nullptr);

// Checks a result by the definition alone: one side for each vertex, fixed vertices kept, both sides within
// their limits, and `cut` the weight between them to within 1e-9 of the total weight.
bool verify_bipartition(const Graph& graph, const BipartitionParams& params,
                        std::span<const std::int8_t> side, double cut);

}  // namespace topoplace::partition
