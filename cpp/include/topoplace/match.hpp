// Subgraph matching: where does a small pattern graph fit into a larger target graph, and where does it fit
// best?
//
// A mapping sends the pattern's vertices to distinct target vertices so that every pattern edge falls on a
// target edge (a monomorphism; with `induced`, non-edges fall on non-edges too). An image is the subgraph a
// mapping covers: mappings that differ by an automorphism of the pattern share it. Pattern weights are
// ignored; target weights are bandwidths, larger is better.
//
// Every answer is canonical. Among embeddings of equal score the one with the lexicographically smallest
// sorted vertex list wins, then the one with the lexicographically smallest mapping. To compare sums exactly,
// weights are rounded once to 41-bit fixed point relative to the largest weight; integers below 2^40 are kept
// exactly.
//
// Small or dense targets are searched with rows of bits, large ones of low degree with lists of neighbours,
// for which a node of the search takes time by degrees alone. Answers are the same.
//
// References: Cordella, Foggia, Sansone, Vento, "A (sub)graph isomorphism algorithm for matching large
// graphs", IEEE TPAMI 26 (2004), for the search; Grochow and Kellis, "Network motif discovery using subgraph
// enumeration and symmetry-breaking", RECOMB 2007, for the images; Land and Doig, Econometrica 28 (1960), for
// branch and bound.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::match {

// The most vertices of a target that is searched with a row of bits for each vertex.
inline constexpr std::int32_t kMaxDenseVertices = 4096;
inline constexpr std::int32_t kMaxPatternVertices = 4096;
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// A pattern, with its search plans and its automorphism group. Immutable; safe to share between threads.
class Pattern {
  public:
    // More vertices than kMaxPatternVertices.
    [[nodiscard]] static Fault check(const Graph& graph);
    explicit Pattern(const Graph& graph);
    // The same; none where it is stopped first.
    static std::optional<Pattern> make(const Graph& graph, const StopCondition& stop);

    std::int32_t num_vertices() const;
    std::int64_t num_edges() const;
    // Exact up to 2^53; none where it is stopped first.
    std::optional<double> num_automorphisms(const StopCondition& stop = {}) const;

    class Impl;
    const Impl& impl() const { return *impl_; }

  private:
    explicit Pattern(std::shared_ptr<const Impl> impl);

    std::shared_ptr<const Impl> impl_;
};

// How searches look at a target.
enum class Layout {
    chosen,  // sparse above kMaxDenseVertices, and above 64 where vertices have few neighbours; else dense
    dense,   // a row of bits for each vertex
    sparse,  // lists of neighbours
};

// A target, with what searches over it share. Immutable; safe to share between threads. Answers do not depend
// on the layout. Searches by link counts and for the best remainder need the dense one, whatever was chosen.
class Target {
  public:
    // Dense layouts are for at most kMaxDenseVertices.
    explicit Target(const Graph& graph, Layout layout = Layout::chosen);
    // The same; none where it is stopped first.
    static std::optional<Target> make(const Graph& graph, const StopCondition& stop,
                                      Layout layout = Layout::chosen);

    std::int32_t num_vertices() const;
    const Graph& graph() const;
    bool is_sparse() const;

    class Impl;
    // Why there is no dense layout: more vertices than kMaxDenseVertices.
    [[nodiscard]] Fault check_dense() const;
    // Why sums of weights cannot be compared exactly: they span too wide a range.
    [[nodiscard]] Fault check_comparable() const;
    // The dense layout, made on first use. Null where it is stopped first.
    const Impl* impl(const StopCondition& stop = {}) const;
    class Sparse;
    // Where is_sparse().
    const Sparse& sparse() const;

  private:
    struct Layouts;
    explicit Target(std::shared_ptr<Layouts> layouts);

    std::shared_ptr<Layouts> layouts_;
};

enum class Distinct {
    mappings,     // every mapping
    images,       // one mapping, the lexicographically smallest, for each image subgraph
    vertex_sets,  // one mapping, the lexicographically smallest, for each set of target vertices
};

struct EnumerateParams {
    Distinct distinct = Distinct::mappings;  // what counts as different
    bool induced = false;                    // must non-edges fall on non-edges?
    double min_weight = 0;                   // target edges lighter than this do not exist
    std::int64_t limit = kNoLimit;           // stop after this number of matches
    std::span<const std::uint8_t>
        candidates{};  // pattern x target, row-major, 1 = allowed; empty: everything is
    StopCondition stop{};
};

struct EnumerateResult {
    std::vector<std::int32_t> vertices;  // row-major, one row of num_vertices() images for each match
    std::int64_t count = 0;
    std::uint64_t nodes = 0;  // partial mappings visited
    bool complete = true;     // false: the search was stopped early, or ended by the limit
};

EnumerateResult enumerate_subgraphs(const Pattern& pattern, const Target& target,
                                    const EnumerateParams& params);
// As above, without the rows. Counts saturate at 2^63 - 1.
EnumerateResult count_subgraphs(const Pattern& pattern, const Target& target, const EnumerateParams& params);

// A score that depends only on how many target edges of each class the pattern's edges fall on.
class LinkCountScore {
  public:
    // Too many vectors to tabulate (2^20).
    [[nodiscard]] static Fault check(std::int32_t num_edges, std::int32_t num_classes);
    // The vectors of num_classes counts that sum to num_edges, in lexicographic order, row after row.
    static std::vector<std::int32_t> count_vectors(std::int32_t num_edges, std::int32_t num_classes);

    // edge_class: n x n, row-major, values 0 .. num_classes-1; read where the target has an edge.
    // scores: one finite value for each row of count_vectors(num_edges, num_classes).
    [[nodiscard]] static Fault check(const Target& target, std::span<const std::uint8_t> edge_class,
                                     std::int32_t num_classes, std::int32_t num_edges,
                                     std::span<const double> scores);
    LinkCountScore(const Target& target, std::span<const std::uint8_t> edge_class, std::int32_t num_classes,
                   std::int32_t num_edges, std::span<const double> scores);

    class Impl;
    const Impl& impl() const { return *impl_; }

  private:
    std::shared_ptr<const Impl> impl_;
};

enum class Objective {
    sum,             // of the weights of the target edges used
    bottleneck,      // the lightest target edge used
    bottleneck_sum,  // the bottleneck first, then the sum
};

struct BestParams {
    std::span<const std::int32_t> required{};  // target vertices the embedding must contain
    double min_weight = 0;                     // target edges lighter than this do not exist
    StopCondition stop{};
    std::uint64_t polish_after = 256;     // nodes after which local search may improve the incumbent
    std::uint64_t symmetry_after = 4096;  // nodes after which the target's automorphisms are worth computing
    // Relative, at least 0. Above 0 the search ends with the first embedding proven to be within it of the
    // best, and breaks no ties. For bottleneck_sum it is that of the sum.
    double tolerance = 0;
};

struct BestResult {
    bool found = false;
    std::vector<std::int32_t> vertices{};  // image of each pattern vertex
    double score = 0;                      // of `vertices`; for bottleneck_sum the sum
    double bound = 0;                      // no embedding scores more
    bool optimal = false;                  // score == bound was proven
    bool complete = false;                 // and ties were broken to the end
    std::uint64_t nodes = 0;
};

// A target whose weights cannot be compared, or a score for patterns of another size.
[[nodiscard]] Fault check(const Pattern& pattern, const Target& target, Objective objective);
[[nodiscard]] Fault check(const Pattern& pattern, const Target& target, const LinkCountScore& score);

// `free`: the target vertices that may be used.
BestResult best_subgraph(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                         Objective objective, const BestParams& params);
BestResult best_subgraph(const Pattern& pattern, const Target& target, std::span<const std::int32_t> free,
                         const LinkCountScore& score, const BestParams& params);

// Without a search: the required and then the lowest of the free vertices, in ascending order, with a bound
// that holds; not found where that is no embedding. For a caller whose time is up before there is a `Pattern`
// or a `Target`; best_subgraph falls back to it.
BestResult plain_subgraph(const Graph& pattern, const Graph& target, std::span<const std::int32_t> free,
                          Objective objective, const BestParams& params);
BestResult plain_subgraph(const Graph& pattern, const Graph& target, std::span<const std::int32_t> free,
                          const LinkCountScore& score, const BestParams& params);

struct RemainderParams {
    std::span<const std::int32_t> required{};  // target vertices the embedding must contain
    std::span<const std::int32_t> kept{};      // vertices that may not be used but count as left over
    StopCondition stop{};
};

struct RemainderResult {
    bool found = false;
    std::vector<std::int32_t> vertices{};  // image of each pattern vertex
    double remainder = 0;                  // weight of the edges among the free vertices that are left
    double score = 0;                      // sum over the pattern's edges
    bool optimal = false;                  // both were proven
    std::uint64_t nodes = 0;
};

// A target that is too large, or whose weights cannot be compared.
[[nodiscard]] Fault check_remainder(const Pattern& pattern, const Target& target);

// Places the pattern so that the free vertices it leaves keep the largest total weight among them; ties go to
// the largest sum over the pattern's edges. (Ranganath et al., "MAPA", SC'21, eq. 3.)
RemainderResult best_remainder(const Pattern& pattern, const Target& target,
                               std::span<const std::int32_t> free, const RemainderParams& params);

// Checks an embedding by the definition alone: images in range and distinct, every edge (and for `induced`
// non-edge) kept.
Fault verify_embedding(const Graph& pattern, const Graph& target, std::span<const std::int32_t> vertices,
                       bool induced = false, double min_weight = 0);

}  // namespace topoplace::match
