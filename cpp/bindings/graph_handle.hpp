// The graph of Python's Graph, shared by the files that bind kernels.
#pragma once

#include <vector>

#include "convert.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/made_once.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/match.hpp"

namespace topoplace::bindings {

// A graph as Python holds it, with what it is searched as made once.
class GraphHandle {
  public:
    // Throws Stopped.
    GraphHandle(std::int32_t n, const Array<std::int32_t>& ends, const Array<double>& weights,
                const StopCondition& stop)
        : graph_(n, edges(ends, weights), stop) {}

    // Throws Stopped.
    GraphHandle(const Array<double>& matrix, const StopCondition& stop)
        : graph_(Graph::of_matrix(size_of(matrix), as_span(matrix), stop)) {}

    const Graph& graph() const { return graph_; }
    // Both throw Stopped where `stop` says so; the next call starts over.
    const match::Pattern& pattern(const StopCondition& stop) const {
        return pattern_.get([&] { return match::Pattern(graph_, stop); });
    }
    const match::Target& target(const StopCondition& stop) const {
        return target_.get([&] { return match::Target(graph_, stop); });
    }

    const mapping::Source& source() const {
        return source_.get([this] { return mapping::Source(graph_); });
    }

  private:
    static std::int32_t size_of(const Array<double>& matrix) {
        check_shape(matrix, "weights", {-1, matrix.ndim() == 2 ? matrix.shape(0) : 0});
        return static_cast<std::int32_t>(matrix.shape(0));
    }
    static std::vector<Edge> edges(const Array<std::int32_t>& ends, const Array<double>& weights) {
        check_shape(ends, "edges", {-1, 2});
        check_shape(weights, "weights", {ends.shape(0)});
        std::vector<Edge> result;
        result.reserve(static_cast<std::size_t>(ends.shape(0)));
        for (pybind11::ssize_t i = 0; i < ends.shape(0); ++i) {
            result.push_back({ends.data()[2 * i], ends.data()[2 * i + 1], weights.data()[i]});
        }
        return result;
    }

    Graph graph_;
    mutable MadeOnce<match::Pattern> pattern_;
    mutable MadeOnce<match::Target> target_;
    mutable MadeOnce<mapping::Source> source_;
};

}  // namespace topoplace::bindings

template <>
class pybind11::detail::type_caster<topoplace::bindings::GraphHandle>
    : public topoplace::bindings::HandleCaster<topoplace::bindings::GraphHandle> {};
