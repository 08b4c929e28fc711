#include "instructions/counted.hpp"
#include "work/capacity_tables.hpp"
#include "work/networks.hpp"

namespace capacity = topoplace::capacity;
namespace flow = topoplace::flow;

namespace {

void count_flow(flow::Algorithm algorithm) {
    const oracle::Network network = work::columns(40, 8, 1000);
    const flow::FlowParams params{.algorithm = algorithm, .structure = false};
    counted([&] { CHECK(flow::min_cost_flow(network.view(), params).status == flow::Status::optimal); });
}

}  // namespace

TEST(flow_by_cost_scaling) { count_flow(flow::Algorithm::cost_scaling); }

TEST(flow_by_network_simplex) { count_flow(flow::Algorithm::network_simplex); }

TEST(flow_by_shortest_paths) { count_flow(flow::Algorithm::successive_shortest_path); }

TEST(schedule_from_nothing) {
    work::Scheduler scheduler(5, 20, 3);
    scheduler.submit(400);
    counted([&] { CHECK(scheduler.solve().status == flow::Status::optimal); });
}

TEST(schedule_after_changes) {
    work::Scheduler scheduler(5, 20, 3);
    scheduler.submit(250);
    scheduler.solve();
    counted([&] {
        for (int round = 0; round < 5; ++round) {
            scheduler.end(10);
            scheduler.submit(10);
            scheduler.disturb(5);
            CHECK(scheduler.solve().status == flow::Status::optimal);
        }
    });
}

TEST(capacity_of_rented_machines) {
    work::Random random(1);
    const oracle::Capacity tables = work::capacity_tables(random, 20);
    const capacity::Problem problem(tables.tables());
    counted([&] {
        const auto found =
            capacity::search(problem, {.num_nodes = 3, .price_steps = 60, .rounds = 20, .seed = 0});
        CHECK(found.bound <= found.cost);
    });
}
