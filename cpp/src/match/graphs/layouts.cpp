// A target's layouts: the one that was chosen, and the dense one where a search needs it.
#include <optional>
#include <string>
#include <utility>

#include "match/graphs/target.hpp"
#include "match/sparse/target.hpp"
#include "topoplace/made_once.hpp"

namespace topoplace::match {
namespace {

// Up to these sizes rows of bits are short, and bounds that look at all vertices are cheap.
constexpr std::int32_t kAlwaysDense = 64;
// A sparse graph has at most one edge for this number of pairs.
constexpr std::int64_t kSparseShare = 16;

bool is_better_sparse(const Graph& graph) {
    const std::int64_t n = graph.num_vertices();
    if (n > kMaxDenseVertices) return true;
    return n > kAlwaysDense && 2 * kSparseShare * graph.num_edges() <= n * n;
}

}  // namespace

struct Target::Layouts {
    Graph graph;
    std::optional<Sparse> sparse;
    MadeOnce<Impl> dense;
};

Target::Target(std::shared_ptr<Layouts> layouts) : layouts_(std::move(layouts)) {}

Target::Target(const Graph& graph, Layout layout) : Target(*make(graph, {}, layout)) {}

std::optional<Target> Target::make(const Graph& graph, const StopCondition& stop, Layout layout) {
    Target target(std::make_shared<Layouts>(graph));
    if (layout == Layout::sparse || (layout == Layout::chosen && is_better_sparse(graph))) {
        WorkMeter meter(stop);
        target.layouts_->sparse = Sparse::make(graph, meter);
        if (!target.is_sparse()) return std::nullopt;
    } else if (target.impl(stop) == nullptr) {
        return std::nullopt;
    }
    return target;
}

std::int32_t Target::num_vertices() const { return layouts_->graph.num_vertices(); }

const Graph& Target::graph() const { return layouts_->graph; }

bool Target::is_sparse() const { return layouts_->sparse.has_value(); }

Fault Target::check_dense() const {
    if (num_vertices() <= kMaxDenseVertices) return std::nullopt;
    return "the target has " + std::to_string(num_vertices()) +
           " vertices; this question can be answered for at most " + std::to_string(kMaxDenseVertices);
}

Fault Target::check_comparable() const {
    return (is_sparse() ? sparse().points() : impl()->points()).check_comparable();
}

const Target::Impl* Target::impl(const StopCondition& stop) const {
    return layouts_->dense.get([&] {
        TOPOPLACE_ASSERT(!check_dense());
        WorkMeter meter(stop);
        return Impl::make(layouts_->graph, meter);
    });
}

const Target::Sparse& Target::sparse() const {
    TOPOPLACE_ASSERT(is_sparse());
    return *layouts_->sparse;
}

}  // namespace topoplace::match
