// The graph of Python's Graph, shared by the files that bind kernels.
#pragma once

#include <utility>

#include "convert.hpp"
#include "topoplace/graph.hpp"
#include "topoplace/made_once.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/match.hpp"

namespace topoplace::bindings {

// A graph as Python holds it, with what it is searched as made once.
class GraphHandle {
  public:
    explicit GraphHandle(Graph graph) : graph_(std::move(graph)) {}

    const Graph& graph() const { return graph_; }
    // Null where it is stopped first; the next call starts over.
    const match::Pattern* pattern(const StopCondition& stop) const {
        return pattern_.get([&] {
            require(match::Pattern::check(graph_));
            return match::Pattern::make(graph_, stop);
        });
    }
    const match::Target* target(const StopCondition& stop) const {
        return target_.get([&] { return match::Target::make(graph_, stop); });
    }

    const mapping::Source& source() const {
        return *source_.get([this] { return mapping::Source(graph_); });
    }

  private:
    Graph graph_;
    mutable MadeOnce<match::Pattern> pattern_;
    mutable MadeOnce<match::Target> target_;
    mutable MadeOnce<mapping::Source> source_;
};

}  // namespace topoplace::bindings

template <>
class pybind11::detail::type_caster<topoplace::bindings::GraphHandle>
    : public topoplace::bindings::HandleCaster<topoplace::bindings::GraphHandle> {};
