// Every kernel asked by several threads at once about the same objects, of which nothing is prepared yet: all
// get the same answer. Under ThreadSanitizer (`make thread-sanitizer`) a lock that is missing is reported,
// too.
#include <barrier>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "first_vertices.hpp"
#include "oracles/capacity_oracle.hpp"
#include "oracles/collective_oracle.hpp"
#include "oracles/flow_oracle.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/cluster_state.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/match.hpp"
#include "topoplace/partition.hpp"
#include "topoplace/tree_packing.hpp"
#include "work/work.hpp"

namespace capacity = topoplace::capacity;
namespace collective = topoplace::collective;
namespace flow = topoplace::flow;
namespace mapping = topoplace::mapping;
namespace match = topoplace::match;
namespace partition = topoplace::partition;
using work::Graph;
using work::Random;

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 5;

// `fresh` makes what the threads share, `ask` asks about it.
template <class Fresh, class Ask>
void check_threads(const Fresh& fresh, const Ask& ask, int threads_of_round = kThreads) {
    const auto alone = ask(fresh());
    for (int round = 0; round < kRounds; ++round) {
        const auto shared = fresh();
        std::vector<decltype(ask(shared))> answers(static_cast<std::size_t>(threads_of_round));
        std::barrier start(threads_of_round);
        std::vector<std::jthread> threads;
        for (auto& answer : answers) {
            threads.emplace_back([&] {
                start.arrive_and_wait();
                answer = ask(shared);
            });
        }
        threads.clear();  // waits for them
        for (const auto& answer : answers) CHECK(answer == alone);
    }
}

Graph weighted(std::int32_t size, std::uint64_t seed) {
    Random random(seed);
    return work::random_graph(random, size, 70, 5);
}

}  // namespace

TEST(threads_share_a_pattern_and_a_target) {
    using Shared = std::tuple<match::Pattern, match::Target>;
    const auto fresh = [] {
        return Shared{match::Pattern(work::grid(2, 3)), match::Target(weighted(12, 1))};
    };
    match::BestParams at_once;
    at_once.polish_after = at_once.symmetry_after = 0;
    check_threads(fresh, [](const Shared& shared) { return std::get<0>(shared).num_automorphisms(); });
    for (const auto objective :
         {match::Objective::sum, match::Objective::bottleneck, match::Objective::bottleneck_sum}) {
        check_threads(fresh, [&](const Shared& shared) {
            const auto& [pattern, target] = shared;
            return match::best_subgraph(pattern, target, first_vertices(12), objective, at_once).vertices;
        });
    }
    const std::vector<std::int32_t> required{3, 7};
    at_once.required = required;
    check_threads(fresh, [&](const Shared& shared) {
        const auto& [pattern, target] = shared;
        return match::best_subgraph(pattern, target, first_vertices(12), match::Objective::sum, at_once)
            .vertices;
    });
    check_threads(fresh, [](const Shared& shared) {
        const auto& [pattern, target] = shared;
        return match::best_remainder(pattern, target, first_vertices(12), {}).vertices;
    });
    for (const auto distinct :
         {match::Distinct::mappings, match::Distinct::images, match::Distinct::vertex_sets}) {
        check_threads(fresh, [&](const Shared& shared) {
            const match::EnumerateParams params{.distinct = distinct, .min_weight = 3};
            const auto& [pattern, target] = shared;
            return std::pair(match::enumerate_subgraphs(pattern, target, params).vertices,
                             match::count_subgraphs(pattern, target, params).count);
        });
    }
}

TEST(threads_share_a_target_of_lists) {
    using Shared = std::tuple<match::Pattern, match::Target>;
    check_threads(
        [] {
            return Shared{match::Pattern(work::grid(2, 2)),
                          match::Target(weighted(12, 1), match::Layout::sparse)};
        },
        [](const Shared& shared) {
            const auto& [pattern, target] = shared;
            const auto best = [&](match::Objective objective) {
                return match::best_subgraph(pattern, target, first_vertices(12), objective, {}).vertices;
            };
            return std::pair(best(match::Objective::bottleneck), best(match::Objective::sum));
        });
}

TEST(threads_share_a_score_by_link_counts) {
    using Shared = std::tuple<match::Pattern, match::Target, match::LinkCountScore>;
    check_threads(
        [] {
            const match::Target target(weighted(12, 1));
            std::vector<std::uint8_t> classes(144, 0);
            for (std::size_t pair = 0; pair < 144; pair += 5)
                classes[pair] = classes[pair % 12 * 12 + pair / 12] = 1;
            const std::vector<double> scores{0, 5, 2, 7, 1, 3, 9, 4};
            return Shared{match::Pattern(work::grid(2, 3)), target,
                          match::LinkCountScore(target, classes, 2, 7, scores)};
        },
        [](const Shared& shared) {
            const auto& [pattern, target, score] = shared;
            return match::best_subgraph(pattern, target, first_vertices(12), score, {}).vertices;
        });
}

TEST(threads_share_a_source_and_a_target_of_mappings) {
    using Shared = std::tuple<mapping::Source, mapping::Target>;
    for (const auto method : {mapping::Method::drb, mapping::Method::exact}) {
        check_threads(
            [] {
                std::vector<double> distance;
                for (std::int32_t pair = 0; pair < 400; ++pair)
                    distance.push_back(pair / 20 == pair % 20 ? 0 : pair / 100 == pair % 20 / 5 ? 1 : 7);
                return Shared{mapping::Source(weighted(7, 2)), mapping::Target(20, distance)};
            },
            [&](const Shared& shared) {
                mapping::MapParams params;
                params.method = method;
                return mapping::map_graph(std::get<0>(shared), std::get<1>(shared), params).target_of;
            });
    }
}

TEST(threads_share_a_graph_to_split) {
    for (const std::int32_t size : {14, 200}) {
        check_threads([&] { return weighted(size, 3); },
                      [](const Graph& graph) { return partition::bipartition(graph, {}).side; });
    }
}

TEST(threads_share_a_network) {
    const auto fresh = [] {
        Random random(4);
        oracle::Network network;
        network.num_nodes = 30;
        network.supply.assign(30, 0);
        network.supply.front() = 9;
        network.supply.back() = -9;
        for (std::int32_t v = 0; v < 29; ++v) network.add(v, v + 1, flow::kInfinite, 50);
        for (int arc = 0; arc < 120; ++arc) {
            const std::int32_t cost = random.below(40);
            const std::int32_t capacity = 1 + random.below(4);
            const std::int32_t head = random.below(30);
            network.add(random.below(30), head, capacity, cost);
        }
        return network;
    };
    for (const auto algorithm :
         {flow::Algorithm::automatic, flow::Algorithm::cost_scaling, flow::Algorithm::network_simplex,
          flow::Algorithm::successive_shortest_path, flow::Algorithm::cycle_canceling}) {
        check_threads(fresh, [&](const oracle::Network& network) {
            flow::FlowParams params;
            params.algorithm = algorithm;
            return flow::min_cost_flow(network.view(), params).flow;
        });
    }
}

TEST(threads_share_a_problem_of_capacity) {
    check_threads(
        [] {
            oracle::Capacity c;
            c.gpus = {1, 2};
            c.open = {1, 2};
            c.most_gpus = 2;
            for (int job = 0; job < 6; ++job) {
                c.wait.push_back(10 + job);
                c.run.insert(c.run.end(), {1, oracle::kNever, 1, 0});
                c.pay.insert(c.pay.end(), {4, oracle::kNever, 3, 2});
            }
            return capacity::Problem(c.tables());
        },
        [](const capacity::Problem& problem) {
            capacity::SearchParams params;
            params.num_nodes = 3;
            return std::pair(capacity::search(problem, params).cost,
                             capacity::price(problem, std::vector<double>(6)).size());
        });
}

TEST(threads_share_terminals_and_rings) {
    struct Shared {
        collective::TerminalGraph graph;
        collective::TerminalGraph balanced;
        std::shared_ptr<const collective::RingNetwork> network;
    };
    check_threads(
        [] {
            Random random(5);
            const oracle::RingCase made = oracle::random_rings(random, 6);
            return Shared{
                oracle::random_graph(random, 6, 3), oracle::random_network(random, 6, 3),
                std::make_shared<const collective::RingNetwork>(made.terminals, made.capacities, made.routes,
                                                                std::vector<collective::LinkCut>{})};
        },
        [](const Shared& shared) {
            const auto all = first_vertices(6);
            const auto bound = collective::throughput_bound(shared.graph, {all, false, {}});
            const auto packing = collective::pack_rings(*shared.network, all, {500, 3, 4, false, {}});
            const auto trees = collective::pack_trees(shared.balanced, {all, false, {}});
            return std::tuple(bound.terminals, bound.capacity, packing.rings, packing.nodes, trees.flows,
                              trees.trees.size());
        });
}

// Each set of terminals is searched by one of them, or by several at once, and kept for all.
TEST(threads_share_rates_of_rings_and_a_network_of_collectives) {
    const auto fresh = [] {
        Random random(6);
        oracle::GangCase c;
        while (c.tasks.size() < 6) {
            c = oracle::random_gang(random, oracle::random_fabric(random, 6, 4), 24, 12);
        }
        return c;
    };
    const auto mapped = [](const oracle::GangCase& c) {
        const auto found = topoplace::gang_mapping::map_gang(c.params());
        return std::tuple(found.vertex_of, found.seconds, found.port_seconds, found.work);
    };
    check_threads(fresh, mapped, 8);
    const auto rates = [](const oracle::GangCase& c) {
        std::vector<double> found;
        for (std::int32_t one = 0; one < 4; ++one) {
            for (std::int32_t other = one + 1; other < 4; ++other) {
                found.push_back(c.fabric.rates->gb_per_s(std::vector{one, other}));
            }
        }
        found.push_back(c.fabric.rates->gb_per_s(first_vertices(4)));
        return found;
    };
    check_threads(fresh, rates, 8);
}

TEST(threads_read_and_copy_a_state) {
    check_threads(
        [] {
            topoplace::ClusterState state(70);
            static_cast<void>(state.allocate("a", std::vector<std::int32_t>{3, 64}));
            state.drain(9);
            return state;
        },
        [](const topoplace::ClusterState& state) {
            topoplace::ClusterState own(state);
            static_cast<void>(own.release("a"));
            return std::tuple(state.free_gpus(), state.drained_gpus(), state.snapshot(), own.num_free());
        });
}
