// Checks cuts between terminals by the definition alone; shares no code with the searches.
#include <set>

#include "topoplace/terminal_cuts.hpp"

namespace topoplace::collective {

namespace {

struct Cut {
    std::int64_t terminals = 0;  // chosen ones before it
    std::int64_t beyond = 0;     // chosen ones after it
    std::int64_t capacity = 0;
};

Cut cut_of(const TerminalGraph& graph, const CutParams& params, const std::vector<std::int32_t>& side) {
    const std::set<std::int32_t> before(side.begin(), side.end());
    const std::set<std::int32_t> chosen(params.chosen.begin(), params.chosen.end());
    const auto absent = [&](std::int32_t v) {
        return v < graph.num_terminals() && !params.relay_others && !chosen.contains(v);
    };
    Cut cut;
    for (const std::int32_t v : chosen) ++(before.contains(v) ? cut.terminals : cut.beyond);
    for (const Arc& arc : graph.arcs()) {
        if (absent(arc.tail) || absent(arc.head)) continue;
        if (before.contains(arc.tail) && !before.contains(arc.head)) cut.capacity += arc.capacity;
    }
    return cut;
}

}  // namespace

Fault verify_least_flow(const TerminalGraph& graph, const CutParams& params, const LeastFlow& found) {
    const Cut cut = cut_of(graph, params, found.side);
    if (cut.terminals == 0 || cut.beyond == 0) return "the side does not divide the chosen terminals";
    if (cut.capacity != found.value) return "the cut has another capacity";
    return std::nullopt;
}

Fault verify_throughput(const TerminalGraph& graph, const CutParams& params, const ThroughputBound& found) {
    const Cut cut = cut_of(graph, params, found.side);
    if (cut.beyond == 0) return "the side misses no chosen terminal";
    if (cut.terminals == 0 || cut.terminals != found.terminals) {
        return "another number of chosen terminals is before the cut";
    }
    if (cut.capacity != found.capacity) return "the cut has another capacity";
    return std::nullopt;
}

}  // namespace topoplace::collective
