// Least maximum flow between chosen terminals, and the throughput-optimal bound by Dinkelbach's iteration.
//
// The bound looks for the cut of the largest ratio terminals / capacity. For a ratio p/q found so far and a
// terminal v that the cut misses, a cut is worse iff q * terminals(S) > p * capacity(S): iff the maximum flow
// from a source with an arc of capacity q to each other terminal, over arcs of p times their capacity, to v
// is below q * (N - 1). The least cut is then a worse one, and its ratio the next. Each round raises the
// ratio, of which there are finitely many; a round of all v without a worse cut ends the search.
#include "topoplace/terminal_cuts.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "collective/max_flow.hpp"
#include "graph/index.hpp"

namespace topoplace::collective {

namespace {

constexpr std::int64_t kMaxCapacity = std::int64_t{1} << 40;
constexpr std::int32_t kMaxTerminals = 1 << 12;

// The vertices that take part, and their arcs in a flow network with its own source.
class Network {
  public:
    Network(const TerminalGraph& graph, const CutParams& params)
        : graph_(graph),
          chosen_(params.chosen),
          is_chosen_(index(graph.num_vertices()), false),
          meter_(params.stop),
          flow_(graph.num_vertices() + 1) {
        TOPOPLACE_ASSERT(!check(graph, params));
        for (const std::int32_t terminal : chosen_) is_chosen_[index(terminal)] = true;
        for (const Arc& arc : graph.arcs()) {
            if (!takes_part(arc.tail, params) || !takes_part(arc.head, params) || arc.capacity == 0) continue;
            arcs_.push_back(arc);
            numbers_.push_back(flow_.add(arc.tail, arc.head));
        }
        for (const std::int32_t terminal : chosen_)
            feeds_.push_back(flow_.add(graph.num_vertices(), terminal));
    }

    std::span<const std::int32_t> chosen() const { return chosen_; }
    // True when the search has to stop.
    bool count_flow() {
        ++flows_;
        return meter_.spend(64 * arcs_.size() + 1) || meter_.visit();
    }
    std::uint64_t flows() const { return flows_; }

    std::int64_t between(std::int32_t source, std::int32_t sink) {
        scale(1);
        return flow_.run(source, sink);
    }
    // From all chosen terminals but the sink, `feed` each, over `times` the capacities.
    std::int64_t from_all(std::int32_t sink, std::int64_t feed, std::int64_t times) {
        scale(times);
        for (std::size_t i = 0; i < feeds_.size(); ++i) flow_.reset(feeds_[i], chosen_[i] == sink ? 0 : feed);
        return flow_.run(graph_.num_vertices(), sink);
    }
    // The source's side after a flow.
    std::vector<std::int32_t> side() const {
        std::vector<std::int32_t> vertices;
        for (std::int32_t v = 0; v < graph_.num_vertices(); ++v) {
            if (flow_.before_cut(v)) vertices.push_back(v);
        }
        return vertices;
    }
    ThroughputBound cut(std::vector<std::int32_t> side) const {
        std::vector<bool> inside(index(graph_.num_vertices()), false);
        ThroughputBound cut;
        for (const std::int32_t v : side) {
            inside[index(v)] = true;
            if (is_chosen_[index(v)]) ++cut.terminals;
        }
        for (const Arc& arc : arcs_) {
            if (inside[index(arc.tail)] && !inside[index(arc.head)]) cut.capacity += arc.capacity;
        }
        cut.side = std::move(side);
        return cut;
    }

  private:
    bool takes_part(std::int32_t vertex, const CutParams& params) const {
        return vertex >= graph_.num_terminals() || params.relay_others || is_chosen_[index(vertex)];
    }
    void scale(std::int64_t times) {
        for (std::size_t i = 0; i < arcs_.size(); ++i) flow_.reset(numbers_[i], times * arcs_[i].capacity);
        for (const std::int32_t feed : feeds_) flow_.reset(feed, 0);
    }

    const TerminalGraph& graph_;
    std::span<const std::int32_t> chosen_;
    std::vector<bool> is_chosen_;
    WorkMeter meter_;
    MaxFlow flow_;
    std::vector<Arc> arcs_;              // among vertices that take part
    std::vector<std::int32_t> numbers_;  // of those arcs in the flow network
    std::vector<std::int32_t> feeds_;    // from the source to each chosen terminal
    std::uint64_t flows_ = 0;
};

// Whether one ratio terminals / capacity is larger; a capacity of 0 makes it infinite.
bool worse(const ThroughputBound& one, const ThroughputBound& other) {
    return one.terminals * other.capacity > other.terminals * one.capacity;
}

// The worst of the cuts around each single terminal.
ThroughputBound first_cut(const Network& network) {
    ThroughputBound worst = network.cut({network.chosen().front()});
    for (const std::int32_t v : network.chosen()) {
        ThroughputBound cut = network.cut({v});
        if (worse(cut, worst)) worst = std::move(cut);
    }
    return worst;
}

}  // namespace

Fault TerminalGraph::check(std::int32_t num_vertices, std::int32_t num_terminals, std::span<const Arc> arcs) {
    if (num_terminals < 0 || num_terminals > std::min(num_vertices, kMaxTerminals)) {
        return "num_terminals = " + std::to_string(num_terminals) + " is not in 0.." +
               std::to_string(std::min(num_vertices, kMaxTerminals));
    }
    std::int64_t left = kMaxCapacity;
    for (std::size_t i = 0; i < arcs.size(); ++i) {
        const Arc& arc = arcs[i];
        const auto entry = [&] { return "arcs[" + std::to_string(i) + "]"; };
        if (std::min(arc.tail, arc.head) < 0 || std::max(arc.tail, arc.head) >= num_vertices ||
            arc.tail == arc.head) {
            return entry() + " = (" + std::to_string(arc.tail) + ", " + std::to_string(arc.head) +
                   ") does not join two of " + std::to_string(num_vertices) + " vertices";
        }
        if (arc.capacity < 0 || arc.capacity > left) {
            return entry() + " has the capacity " + std::to_string(arc.capacity) +
                   ": capacities are 0 or more, and at most 2^40 together";
        }
        left -= arc.capacity;
    }
    return std::nullopt;
}

TerminalGraph::TerminalGraph(std::int32_t num_vertices, std::int32_t num_terminals, std::vector<Arc> arcs)
    : num_vertices_(num_vertices), num_terminals_(num_terminals), arcs_(std::move(arcs)) {
    TOPOPLACE_ASSERT(!check(num_vertices, num_terminals, arcs_));
}

Fault check(const TerminalGraph& graph, const CutParams& params) {
    if (params.chosen.size() < 2) return "chosen has fewer than two terminals";
    std::vector<bool> seen(index(graph.num_vertices()), false);
    for (std::size_t i = 0; i < params.chosen.size(); ++i) {
        const std::int32_t v = params.chosen[i];
        const auto entry = [&] { return "chosen[" + std::to_string(i) + "] = " + std::to_string(v); };
        if (v < 0 || v >= graph.num_terminals()) return entry() + " is not a terminal";
        if (seen[index(v)]) return entry() + " appears twice";
        seen[index(v)] = true;
    }
    return std::nullopt;
}

LeastFlow least_max_flow(const TerminalGraph& graph, const CutParams& params) {
    Network network(graph, params);
    LeastFlow least;
    const std::int32_t root = params.chosen.front();
    // The least cut has the root on one of its sides.
    for (const std::int32_t v : params.chosen.subspan(1)) {
        for (const bool outward : {true, false}) {
            const std::int64_t value = outward ? network.between(root, v) : network.between(v, root);
            if (least.side.empty() || value < least.value) {
                least.value = value;
                least.side = network.side();
            }
            if (network.count_flow()) {
                least.complete = false;
                break;
            }
        }
        if (!least.complete || least.value == 0) break;
    }
    least.flows = network.flows();
    return least;
}

ThroughputBound throughput_bound(const TerminalGraph& graph, const CutParams& params) {
    Network network(graph, params);
    ThroughputBound worst = first_cut(network);
    bool complete = true;
    const auto num_chosen = static_cast<std::int64_t>(params.chosen.size());
    std::size_t missed = 0;
    for (std::size_t proven = 0; proven < params.chosen.size() && worst.capacity > 0 && complete;) {
        const std::int64_t common = std::gcd(worst.terminals, worst.capacity);
        const std::int64_t feed = worst.capacity / common;
        const std::int64_t flow = network.from_all(params.chosen[missed], feed, worst.terminals / common);
        if (flow < feed * (num_chosen - 1)) {
            worst = network.cut(network.side());
            proven = 0;
        } else {
            ++proven;
            missed = (missed + 1) % params.chosen.size();
        }
        complete = !network.count_flow();
    }
    worst.complete = complete;
    worst.flows = network.flows();
    return worst;
}

}  // namespace topoplace::collective
