// Cuts between terminals of a directed graph with capacities: what a collective operation can carry at most.
//
// Terminals exchange data, every other vertex forwards it. For chosen terminals T there are two bounds:
//
// - the least maximum flow from one of T to another: the rate of one broadcast, or of any set of rings;
// - the throughput of an all-gather: N / max over cuts S of |S and T| / capacity(S), with N = |T| and S any
// set
//   of vertices that misses a terminal of T. What the terminals in S hold must leave S over its outgoing arcs
//   (Zhao et al., ForestColl, arXiv 2402.06787, section 4), and schedules of trees reach this bound.
//
// All numbers are integers, so that the answers are exact. Capacities add up to at most 2^40 and there are at
// most 2^12 terminals; the products of the search then stay below 2^53.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::collective {

struct Arc {
    std::int32_t tail = 0;
    std::int32_t head = 0;
    std::int64_t capacity = 0;
};

// Vertices 0..num_terminals-1 are terminals, the others only forward.
class TerminalGraph {
  public:
    // The arc that has an end that is no vertex, leads from a vertex to itself, or has a negative capacity,
    // or one that makes capacities more than 2^40 together.
    [[nodiscard]] static Fault check(std::int32_t num_vertices, std::int32_t num_terminals,
                                     std::span<const Arc> arcs);
    TerminalGraph(std::int32_t num_vertices, std::int32_t num_terminals, std::vector<Arc> arcs);

    std::int32_t num_vertices() const { return num_vertices_; }
    std::int32_t num_terminals() const { return num_terminals_; }
    std::span<const Arc> arcs() const { return arcs_; }

  private:
    std::int32_t num_vertices_;
    std::int32_t num_terminals_;
    std::vector<Arc> arcs_;
};

struct CutParams {
    std::span<const std::int32_t> chosen{};  // the terminals that exchange data; two or more, all distinct
    bool relay_others = false;               // whether terminals that are not chosen forward, too
    StopCondition stop{};
};

struct LeastFlow {
    std::int64_t value = 0;
    std::vector<std::int32_t> side{};  // a cut of this capacity: the vertices before it, ascending
    bool complete = true;              // false: the search was stopped, and `value` is only an upper bound
    std::uint64_t flows = 0;           // maximum flows computed
};

// The throughput is N * capacity / terminals: the cut `side` has `terminals` chosen ones before it.
struct ThroughputBound {
    std::int64_t terminals = 0;
    std::int64_t capacity = 0;  // 0: some terminal cannot be reached
    std::vector<std::int32_t> side{};
    bool complete = true;  // false: the search was stopped, and the throughput may be lower
    std::uint64_t flows = 0;
};

// The entry of `chosen` that is no terminal or a repeated one.
[[nodiscard]] Fault check(const TerminalGraph& graph, const CutParams& params);

LeastFlow least_max_flow(const TerminalGraph& graph, const CutParams& params);
ThroughputBound throughput_bound(const TerminalGraph& graph, const CutParams& params);

// Check by the definition alone that the side of a result is a cut between chosen terminals, and has the
// capacity and the number of terminals that the result states. Only the searches prove that no cut is worse.
Fault verify_least_flow(const TerminalGraph& graph, const CutParams& params, const LeastFlow& found);
Fault verify_throughput(const TerminalGraph& graph, const CutParams& params, const ThroughputBound& found);

}  // namespace topoplace::collective
