// Mapping: put the k vertices of a source graph (tasks) on distinct vertices of a target so that what they
// exchange travels a short way. A quadratic assignment problem with k of n vertices used.
//
// The cost of a mapping is the sum over source edges (a, b) of weight(a, b) * distance(f(a), f(b)), plus the
// price of every target vertex used. Distances are symmetric, finite and not negative, 0 from a vertex to
// itself; they need not obey the triangle inequality. Costs are sums of doubles in a fixed order; two costs
// that differ by less than 1e-12 of what the dearest mapping could cost count as equal.
//
// The entry point is `map_graph`; cpp/src/mapping/map.cpp describes its method and gives the references.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/stop_condition.hpp"

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
    // The first entry that is not finite, negative, not 0 on the diagonal, or not equal to its mirror image.
    [[nodiscard]] static Fault check(std::int32_t num_vertices, std::span<const double> distance);
    // `distance`: n x n, row-major.
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
    std::span<const std::int32_t> start{};  // drb: the vertex of each task, to be refined; empty: regions
    std::int32_t kicks = 30;                // seeded perturbations after refinement
    std::uint64_t proof_nodes = 100;        // drb: steps of branch and bound where refinement leaves a gap
    std::uint64_t seed = 0;                 // what the kicks are drawn from
    StopCondition stop{};
};

struct MapResult {
    bool found = false;                     // false: more tasks than vertices that may be used
    std::vector<std::int32_t> target_of{};  // the vertex of each task
    double cost = 0;
    double bound = 0;             // no mapping costs less
    bool optimal = false;         // none costs less than `target_of`
    bool complete = true;         // false: the search was stopped early
    std::int32_t descents = 0;    // regions that tasks were sent down the halves of
    std::uint64_t exchanges = 0;  // moves and swaps made by refinement
    std::uint64_t nodes = 0;      // partial mappings visited by the proof; a large one counts for several
};

// The parameter, the index and the value that is out of range.
[[nodiscard]] Fault check(const Source& source, const Target& target, const MapParams& params);

MapResult map_graph(const Source& source, const Target& target, const MapParams& params);

// Checks a result by the definition alone: distinct vertices that may be used, one for each task, and `cost`
// theirs to within 1e-9 of the dearest mapping's.
Fault verify_mapping(const Graph& source, std::int32_t num_vertices, std::span<const double> distance,
                     const MapParams& params, std::span<const std::int32_t> target_of, double cost);

}  // namespace topoplace::mapping
