// The best embedding on clusters of small machines, of which a part is free, against all mappings.
#include "check.hpp"
#include "oracles/machine_cases.hpp"

using namespace machine_cases;

namespace {

// Local search, starts on a few machines and symmetries come in after this number of nodes.
match::BestParams helped_after(std::uint64_t nodes) {
    match::BestParams params;
    params.polish_after = params.symmetry_after = nodes;
    return params;
}

}  // namespace

TEST(jobs_on_a_few_machines_against_all_mappings) {
    Random rng(5);
    const match::BestParams at_once = helped_after(0);
    const match::BestParams never = helped_after(std::uint64_t{1} << 62);
    for (int round = 0; round < check::rounds(40, 12); ++round) {
        const std::int32_t size = 8 + rng.below(3);
        const Graph graph = cluster(rng, size);
        const Vertices free = free_of(rng, size);
        const match::Target target(graph);
        for (const Graph& pattern : patterns()) {
            const match::Pattern prepared(pattern);
            for (const auto objective : {match::Objective::sum, match::Objective::bottleneck}) {
                const auto found = match::best_subgraph(prepared, target, free, objective, at_once);
                const auto plain = match::best_subgraph(prepared, target, free, objective, never);
                const double best = largest(pattern, graph, free, objective);
                CHECK(found.optimal && plain.optimal);
                CHECK_EQ(found.found, best >= 0);
                CHECK(found.vertices == plain.vertices);
                if (!found.found) continue;
                CHECK(std::abs(found.score - best) <= 1e-9 * best);
                CHECK(std::abs(value(pattern, graph, found.vertices, objective) - best) <= 1e-9 * best);
            }
        }
    }
}

// The same answer whether or not searches on a few machines come first, where all mappings are too many.
TEST(searches_on_a_few_machines_change_no_answer) {
    Random rng(9);
    const match::BestParams at_once = helped_after(0);
    const match::BestParams never = helped_after(std::uint64_t{1} << 62);
    for (int round = 0; round < check::rounds(12, 12); ++round) {
        const Graph graph = cluster(rng, 18);
        const Vertices free = free_of(rng, 18);
        const match::Target target(graph);
        for (const Graph& pattern : patterns()) {
            const match::Pattern prepared(pattern);
            for (const auto objective :
                 {match::Objective::sum, match::Objective::bottleneck, match::Objective::bottleneck_sum}) {
                const auto found = match::best_subgraph(prepared, target, free, objective, at_once);
                const auto plain = match::best_subgraph(prepared, target, free, objective, never);
                CHECK(found.optimal && plain.optimal);
                CHECK(found.vertices == plain.vertices);
                CHECK_EQ(found.score, plain.score);
            }
        }
    }
}
