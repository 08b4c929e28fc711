// The partition kernel against the definition: the proof against all side vectors, the heuristic, with
// buckets with heaps and over coarser levels, against its promises, on one small problem.
#include <array>
#include <cmath>
#include <vector>

#include "fuzz.hpp"
#include "oracles/partition_oracle.hpp"
#include "topoplace/partition.hpp"

namespace {

using topoplace::Graph;
namespace partition = topoplace::partition;

struct Case {
    Graph graph;
    std::vector<std::int64_t> vertex_weights;
    std::vector<std::int8_t> fixed;
    std::int64_t percent = 50;
    std::int64_t slack = 0;
};

Case read_case(fuzz::Bytes& bytes) {
    constexpr std::array<std::int64_t, 8> kPercent{50, 50, 50, 0, 25, 30, 70, 100};
    constexpr std::array<std::int64_t, 4> kSlack{0, 3, 10, 50};
    const std::int32_t form = bytes.below(4);
    const std::int64_t percent = kPercent[std::size_t(bytes.below(kPercent.size()))];
    const std::int64_t slack = kSlack[std::size_t(bytes.below(kSlack.size()))];
    Case c{fuzz::graph(bytes, 10), {}, {}, percent, slack};
    for (std::int32_t v = 0; v < c.graph.num_vertices(); ++v) {
        if (form & 1) c.vertex_weights.push_back(bytes.below(5));
        if (form & 2) c.fixed.push_back(std::int8_t(std::max(-1, bytes.below(5) - 3)));
    }
    return c;
}

// As the graph, with weights that no power of two makes whole.
Graph thirds(const Graph& graph) {
    std::vector<topoplace::Edge> edges;
    for (std::int32_t u = 0; u < graph.num_vertices(); ++u) {
        for (const std::int32_t v : graph.neighbors(u)) {
            if (u < v) edges.push_back({u, v, graph.weight(u, v) / 3});
        }
    }
    return Graph(graph.num_vertices(), edges);
}

void check_proof(const Case& c, const partition::BipartitionParams& params) {
    const auto expected = oracle::best_halves(c.graph, params, c.percent, c.slack);
    const auto found = partition::bipartition(c.graph, params);
    REQUIRE(found.complete && found.optimal == expected.has_value());
    if (!expected) {
        REQUIRE(found.status == partition::BipartitionStatus::infeasible && found.side.empty());
        return;
    }
    REQUIRE(found.cut == expected->cut && found.side == expected->side);
    REQUIRE(!partition::verify_bipartition(c.graph, params, found.side, found.cut));
    REQUIRE(partition::verify_bipartition(c.graph, params, found.side, found.cut + 1));
    const Graph graph = thirds(c.graph);
    const auto third = partition::bipartition(graph, params);
    REQUIRE(third.optimal && std::abs(3 * third.cut - expected->cut) <= 1e-9 * (1 + expected->cut));
}

void check_refinement(const Case& c, partition::BipartitionParams params,
                      partition::BipartitionWorkspace& workspace) {
    const auto found = partition::bipartition(c.graph, params, &workspace);
    REQUIRE(found.complete && !found.optimal && found.rollbacks <= found.moves);
    if (found.status == partition::BipartitionStatus::not_found) {
        const auto expected = oracle::best_halves(c.graph, params, c.percent, c.slack);
        REQUIRE(found.side.empty() && (!expected || !c.vertex_weights.empty()));
        return;
    }
    REQUIRE(oracle::allowed(params, c.percent, c.slack, found.side));
    REQUIRE(found.cut == oracle::cut(c.graph, found.side) && found.cut <= found.start_cut);
    REQUIRE(!partition::verify_bipartition(c.graph, params, found.side, found.cut));
    REQUIRE(partition::bipartition(c.graph, params).side == found.side);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const Case c = read_case(bytes);
    partition::BipartitionParams params;
    params.fraction = double(c.percent) / 100;
    params.imbalance = double(c.slack) / 100;
    params.vertex_weights = c.vertex_weights;
    params.fixed = c.fixed;
    check_proof(c, params);
    params.exact_up_to = 0;
    params.starts = 1 + bytes.below(3);
    params.seed = std::uint64_t(bytes.below(256));
    params.coarsest = 1 + bytes.below(4);
    params.cycles = bytes.below(3);
    partition::BipartitionWorkspace workspace;
    for (const auto gains : {partition::GainStructure::automatic, partition::GainStructure::heap}) {
        params.gains = gains;
        check_refinement(c, params, workspace);
    }
    return 0;
}
