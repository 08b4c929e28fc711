// Steps of each algorithm for flows of least cost, and of searches after a change, on fixed networks.
#include <string>
#include <utility>
#include <vector>

#include "oracles/flow_oracle.hpp"
#include "topoplace/flow_network.hpp"
#include "work/networks.hpp"

namespace flow = topoplace::flow;
using flow::Algorithm;
using namespace work;

namespace {

// Any node to any other, some arcs at a profit.
oracle::Network tangle(std::int32_t nodes, std::int32_t arcs) {
    Random random(2);
    oracle::Network network;
    network.num_nodes = nodes;
    network.supply.assign(std::size_t(nodes), 0);
    for (std::int32_t v = 0; v < nodes; ++v) network.add(v, (v + 1) % nodes, flow::kInfinite, 900);
    for (std::int32_t a = 0; a < arcs; ++a) {
        const std::int32_t lower = random.below(20) == 0 ? 1 : 0;
        const std::int32_t cost = random.below(1000) - 80;
        const std::int32_t capacity = lower + random.below(20);
        const std::int32_t head = random.below(nodes);
        network.add(random.below(nodes), head, capacity, cost, lower);
    }
    for (std::int32_t v = 0; v + 1 < nodes; v += 2) {
        const std::int32_t units = random.below(9);
        network.supply[std::size_t(v)] = units;
        network.supply[std::size_t((v + nodes / 2) / 2 * 2 + 1) % std::size_t(nodes)] -= units;
    }
    return network;
}

std::uint64_t steps(const oracle::Network& network, Algorithm algorithm) {
    flow::FlowParams params;
    params.algorithm = algorithm;
    params.structure = false;
    const auto found = flow::min_cost_flow(network.view(), params);
    CHECK(found.status == flow::Status::optimal && found.algorithm == algorithm);
    CHECK(!flow::verify_flow(network.view(), found.flow, found.potential, found.cost));
    return found.steps;
}

// Jobs of four tasks that prefer a machine, may use any through one aggregator, or wait; nearly no two costs
// are the same.
oracle::Network wide_costs(std::int32_t machines, std::int32_t jobs) {
    Random random(4);
    oracle::Network network;
    const std::int32_t sink = machines, aggregator = machines + 1, tasks = machines + 2;
    network.num_nodes = tasks + 4 * jobs;
    network.supply.assign(std::size_t(network.num_nodes), 0);
    network.supply[std::size_t(sink)] = -4 * jobs;
    for (std::int32_t m = 0; m < machines; ++m) {
        network.add(m, sink, 4, 0);
        network.add(aggregator, m, 4, random.below(1 << 20));
    }
    for (std::int32_t job = 0; job < jobs; ++job) {
        const std::int32_t machine = random.below(machines);
        const std::int64_t near = random.below(1 << 19), far = (1 << 17) + random.below(1 << 20);
        for (std::int32_t task = tasks + 4 * job; task < tasks + 4 * (job + 1); ++task) {
            network.supply[std::size_t(task)] = 1;
            network.add(task, machine, 1, near);
            network.add(task, aggregator, 1, far);
            network.add(task, sink, 1, (1 << 28) + job);
        }
    }
    return network;
}

}  // namespace

TEST(columns_are_solved_in_few_steps) {
    const oracle::Network network = columns(40, 8, 1000);
    CHECK_WORK(steps(network, Algorithm::cost_scaling), 14978);
    CHECK_WORK(steps(network, Algorithm::network_simplex), 1153);
    CHECK_WORK(steps(network, Algorithm::successive_shortest_path), 21686);
    CHECK_WORK(steps(network, Algorithm::cycle_canceling), 325197);
}

TEST(tangles_are_solved_in_few_steps) {
    const oracle::Network network = tangle(300, 2500);
    CHECK_WORK(steps(network, Algorithm::cost_scaling), 17314);
    CHECK_WORK(steps(network, Algorithm::network_simplex), 1093);
    CHECK_WORK(steps(network, Algorithm::successive_shortest_path), 18913);
    CHECK_WORK(steps(network, Algorithm::cycle_canceling), 353315);
}

TEST(a_start_near_the_optimum_saves_steps) {
    oracle::Network network = columns(40, 8, 1000);
    const auto before = flow::min_cost_flow(network.view(), {});
    for (std::size_t a = 0; a < network.cost.size(); a += 400) network.cost[a] = 0;
    flow::FlowParams params;
    params.structure = false;
    params.start_flow = before.flow;
    params.start_potential = before.potential;
    const auto found = flow::min_cost_flow(network.view(), params);
    CHECK(!flow::verify_flow(network.view(), found.flow, found.potential, found.cost));
    CHECK_WORK(found.steps, 9103);
}

TEST(a_scheduling_graph_is_searched_as_far_as_a_change_travels) {
    // The racks of 2,000 tasks are hubs that many enter.
    for (const auto& [racks, slots, tasks, first, come, gone, changed] :
         {std::tuple{5, 3, 250, 195, 23752, 15073, 10891},
          {5, 3, 500, 457, 34947, 15416, 11440},
          {3, 20, 2000, 377, 183, 139, 824}}) {
        Scheduler scheduler(racks, 20, slots);
        scheduler.submit(tasks);
        CHECK_WORK(scheduler.steps_from_nothing(), first);
        CHECK_WORK(scheduler.steps(), first);
        std::uint64_t sums[3] = {0, 0, 0};
        for (int round = 0; round < 5; ++round) {
            scheduler.submit(20);
            sums[0] += scheduler.steps();
            scheduler.end(20);
            sums[1] += scheduler.steps();
            scheduler.disturb(10);
            sums[2] += scheduler.steps();
        }
        CHECK_WORK(sums[0], come);
        CHECK_WORK(sums[1], gone);
        CHECK_WORK(sums[2], changed);
    }
}

// Where all slots are taken, searches from both ends meet at a hub that leads to all machines.
TEST(a_full_cluster_is_searched_from_both_ends) {
    Scheduler scheduler(1, 1000, 4);
    scheduler.submit(4000);
    CHECK_WORK(scheduler.steps(), 6754);
    std::uint64_t sum = 0;
    for (int round = 0; round < 5; ++round) {
        scheduler.end(40);
        scheduler.submit(40);
        sum += scheduler.steps();
    }
    CHECK_WORK(sum, 2482);  // from one end: 51,579
}

// Among many places, the second search starts early.
TEST(a_large_crowded_cluster_is_searched_from_both_ends_early) {
    Scheduler scheduler(1, 1200, 4);
    scheduler.submit(5000);
    scheduler.steps();
    std::uint64_t sum = 0;
    for (int round = 0; round < 5; ++round) {
        scheduler.end(300);
        scheduler.submit(300);
        scheduler.disturb(300);
        sum += scheduler.steps();
    }
    CHECK_WORK(sum, 24795);  // after 16 steps of the first: 34,249
}

// Enough at once for the prices of all places to be moved together.
TEST(prices_are_levelled_where_many_tasks_come_and_go) {
    Scheduler scheduler(5, 20, 3);
    scheduler.submit(500);
    scheduler.steps();
    std::uint64_t come = 0, gone = 0;
    for (int round = 0; round < 5; ++round) {
        scheduler.submit(200);
        come += scheduler.steps();
        scheduler.end(200);
        gone += scheduler.steps();
    }
    CHECK_WORK(come, 1439);
    CHECK_WORK(gone, 1389);
}

TEST(a_kept_network_of_any_kind_starts_where_it_was) {
    Scheduler scheduler(5, 20, 3);
    scheduler.submit(400);
    CHECK_WORK(scheduler.steps_from_nothing(false), 1425);
    CHECK_WORK(scheduler.steps(false), 1425);
    scheduler.submit(10);
    scheduler.end(10);
    CHECK_WORK(scheduler.steps(false), 8480);
}

// Prices are estimated also where there is room for all, and room is left only at the cheapest places of a
// hub.
TEST(wide_costs_through_one_aggregator_are_searched_little) {
    for (const auto& [jobs, figure] : {std::pair{150, 112}, {200, 360}, {285, 447}, {450, 1014}}) {
        const oracle::Network network = wide_costs(300, jobs);
        const auto found = flow::min_cost_flow(network.view(), {});
        CHECK(found.algorithm == Algorithm::automatic);
        CHECK(!flow::verify_flow(network.view(), found.flow, found.potential, found.cost));
        CHECK_WORK(found.steps, figure);
    }
}

// Most tasks find their places in chains of displacements, without a search.
TEST(few_tasks_of_an_assignment_need_a_search) {
    Random random(5);
    oracle::Network network;
    network.num_nodes = 400;
    for (int i = 0; i < 400; ++i) network.supply.push_back(i < 200 ? 1 : -1);
    for (std::int32_t task = 0; task < 200; ++task) {
        for (std::int32_t i = 0; i < 40; ++i)
            network.add(task, 200 + (task + 7 * i) % 200, 1, random.below(10000));
    }
    const auto found = flow::min_cost_flow(network.view(), {});
    CHECK(found.algorithm == Algorithm::automatic);
    CHECK(!flow::verify_flow(network.view(), found.flow, found.potential, found.cost));
    CHECK_WORK(found.steps, 537);
}
