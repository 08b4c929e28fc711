// The graph of Python's Graph, shared by the files that bind kernels.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "convert.hpp"
#include "topoplace/graph.hpp"
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
        std::call_once(pattern_once_, [&] { pattern_.emplace(graph_, stop); });
        return *pattern_;
    }
    const match::Target& target(const StopCondition& stop) const {
        std::call_once(target_once_, [&] { target_.emplace(graph_, stop); });
        return *target_;
    }

    const mapping::Source& source() const {
        std::call_once(source_once_, [this] { source_.emplace(graph_); });
        return *source_;
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
    mutable std::once_flag pattern_once_;
    mutable std::once_flag target_once_;
    mutable std::once_flag source_once_;
    mutable std::optional<match::Pattern> pattern_;
    mutable std::optional<match::Target> target_;
    mutable std::optional<mapping::Source> source_;
};

}  // namespace topoplace::bindings

template <>
class pybind11::detail::type_caster<topoplace::bindings::GraphHandle>
    : public topoplace::bindings::HandleCaster<topoplace::bindings::GraphHandle> {};
