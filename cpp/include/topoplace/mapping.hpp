// Mapping: put the k vertices of a source graph (tasks) on distinct vertices of a target so that what they
// exchange travels a short way. A quadratic assignment problem with k of n vertices used.
//
// The cost of a mapping is the sum over source edges (a, b) of weight(a, b) * distance(f(a), f(b)), plus the
// price of every target vertex used. Distances are symmetric, finite and not negative, 0 from a vertex to
// itself; they need not obey the triangle inequality. Costs are sums of doubles in a fixed order; two costs
// that differ by less than 1e-12 of what the dearest mapping could cost count as equal.
//
// Method drb, dual recursive bipartitioning: the target is halved again and again along its largest
// distances (by partition::bipartition on similarity = largest distance - distance, once for each Target).
// Tasks go down this tree together: at each part the one most tied to those placed is taken first, and goes
// to the half where it costs less - to tasks whose half is known, inside the part and outside it - and where
// a vertex is left. More than 8 tasks are divided at once instead, by partition::bipartition of their graph,
// with two fixed vertices for what draws them to either half. A half may stay empty. The descent is repeated
// for packed regions: the vertices around each vertex that are nearest to it, the parts of the tree that just
// fit, and the regions of the caller. The best mappings are refined by exchanges: one task moves to a vertex
// that is not used, or two tasks swap, until no exchange lowers the cost. Where that leaves a gap to a simple
// lower bound, a job of up to 16 tasks is tried with a few steps of branch and bound, and what is still open
// gets some seeded kicks, each refined again.
//
// Method exact, branch and bound from the refined mapping: tasks are placed in a fixed order, the heaviest
// first, then always the one most tied to those before it (of equal ones the heavier, then the smaller
// number). The cost of placing a task on a vertex is bounded from below by what it exchanges with placed
// tasks, plus half of its other weights, largest first, times the vertex's distances to unused vertices,
// smallest first (Gilmore, Lawler); the least assignment of tasks to vertices at these costs bounds the node,
// and the reduced costs of that assignment its children. Mappings that differ by an automorphism of the
// source or by vertices with equal distances to all others are searched once, and where the search proves
// hard one root is tried for each orbit of the target's automorphisms. Of all mappings of least cost the one
// is returned whose vertices, read in the order of placing, are lexicographically smallest. Where tasks *
// tasks * vertices exceed 2^26 nothing is searched beyond what drb finds.
//
// The deadline is looked at between and within all searches, but not while the target is halved, tasks are on
// one way down, or a proof is prepared: tenths of a second for a thousand vertices, seconds for thousands.
//
// References: Amaral et al., "Topology-aware GPU scheduling for learning workloads in cloud environments",
// SC 2017, algorithms 2 and 3; Pellegrini, "Static mapping by dual recursive bipartitioning of process and
// architecture graphs", SHPCC 1994; Gilmore, J. SIAM 10 (1962); Lawler, Management Science 9 (1963); Jonker
// and Volgenant, Computing 38 (1987), for the assignment.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topoplace/deadline.hpp"
#include "topoplace/graph.hpp"

namespace topoplace::mapping {

// A source graph with what searches prepare. Immutable; calls may share it between threads.
class Source {
  public:
    explicit Source(Graph graph);

    std::int32_t num_vertices() const;

    class Impl;
    const Impl& impl() const { return *impl_; }

  private:
    std::shared_ptr<const Impl> impl_;
};

// The distances between a target's vertices, and the tree of its halves, made when first needed. Immutable;
// calls may share it between threads.
class Target {
  public:
    // `distance`: n x n, row-major. Throws std::invalid_argument naming the first entry that is not finite,
    // negative, not 0 on the diagonal, or not equal to its mirror image.
    Target(std::int32_t num_vertices, std::vector<double> distance);

    std::int32_t num_vertices() const;
    std::span<const double> distance() const;

    class Impl;
    const Impl& impl() const { return *impl_; }

  private:
    std::shared_ptr<const Impl> impl_;
};

enum class Method {
    drb,    // dual recursive bipartitioning, refined
    exact,  // branch and bound
};

struct MapParams {
    Method method = Method::drb;
    std::span<const double> target_cost{};                 // price of each target vertex; empty: 0
    std::optional<std::span<const std::int32_t>> free{};   // vertices that may be used; none: all
    std::span<const std::vector<std::int32_t>> regions{};  // vertex sets to try besides our own
    std::int32_t kicks = 30;                               // seeded perturbations after refinement
    std::uint64_t proof_nodes = 100;  // drb: steps of branch and bound where refinement leaves a gap
    std::uint64_t seed = 0;           // what the kicks are drawn from
    Deadline deadline{};
};

struct MapResult {
    bool found = false;                   // false: more tasks than vertices that may be used
    std::vector<std::int32_t> target_of;  // the vertex of each task
    double cost = 0;
    double bound = 0;             // no mapping costs less
    bool optimal = false;         // none costs less than `target_of`
    bool complete = true;         // false: the deadline ended the search early
    std::int32_t descents = 0;    // regions that tasks were sent down the halves of
    std::uint64_t exchanges = 0;  // moves and swaps made by refinement
    std::uint64_t nodes = 0;      // partial mappings visited by the proof; a large one counts for several
};

// Throws std::invalid_argument naming the parameter, the index and the value that is out of range.
MapResult map_graph(const Source& source, const Target& target, const MapParams& params);

// Checks a result by the definition alone: distinct vertices that may be used, one for each task, and `cost`
// theirs to within 1e-9 of the dearest mapping's.
bool verify_map(const Graph& source, std::int32_t num_vertices, std::span<const double> distance,
                const MapParams& params, std::span<const std::int32_t> target_of, double cost);

}  // namespace topoplace::mapping
