// Bounds, costs and work of capacity planning on fixed cases.
#include "work/capacity_tables.hpp"

namespace capacity = topoplace::capacity;
using namespace work;

namespace {

struct Sum {
    double cost = 0, bound = 0;
    std::uint64_t knapsacks = 0, improvements = 0;
};

Sum searched(std::int32_t jobs, std::int32_t nodes, capacity::SearchParams params) {
    Random random(1);
    Sum sum;
    params.num_nodes = nodes;
    for (int round = 0; round < 4; ++round) {
        const oracle::Capacity c = capacity_tables(random, jobs);
        const auto found = capacity::search(capacity::Problem(c.tables()), params);
        CHECK(!capacity::verify(c.tables(), found.nodes, found.cost));
        CHECK(found.bound <= found.cost + 1e-9);
        sum.cost += found.cost;
        sum.bound += found.bound;
        sum.knapsacks += found.knapsacks;
        sum.improvements += found.improvements;
    }
    return sum;
}

}  // namespace

TEST(bounds_and_plans_are_near_the_optimum) {
    Random random(2);
    double best = 0, cost = 0, bound = 0;
    for (int round = 0; round < 10; ++round) {
        const oracle::Capacity c = capacity_tables(random, 7);
        capacity::SearchParams params;
        params.num_nodes = 1 + round % 3;
        const auto found = capacity::search(capacity::Problem(c.tables()), params);
        best += oracle::best_plan(c, params.num_nodes);
        cost += found.cost;
        bound += found.bound;
    }
    CHECK_EQ(cost, best);
    CHECK_BOUND(bound, 0.98 * best);
}

TEST(plans_are_cheap_and_bounds_tight) {
    const Sum few = searched(20, 3, {});
    CHECK_COST(few.cost, 1932);
    CHECK_BOUND(few.bound, 1932);
    CHECK_WORK(few.knapsacks, 11352);
    CHECK_WORK(few.improvements, 6);
    const Sum many = searched(60, 15, {});
    CHECK_COST(many.cost, 4169);
    CHECK_BOUND(many.bound, 4033.5);
    CHECK_WORK(many.knapsacks, 13818);
    CHECK_WORK(many.improvements, 62);
}

TEST(each_part_of_the_search_earns_its_place) {
    CHECK_COST(searched(60, 15, {.price_steps = 0, .rounds = 0}).cost, 10613);
    CHECK_COST(searched(60, 15, {.rounds = 0}).cost, 4386);
    CHECK_COST(searched(60, 15, {.price_steps = 0}).cost, 4345);
    CHECK_BOUND(searched(60, 15, {.price_steps = 40, .rounds = 0}).bound, 1839.5);
    CHECK_BOUND(searched(60, 15, {.price_steps = 1000, .rounds = 0}).bound, 4040.5);
    CHECK_COST(searched(60, 15, {.rounds = 20}).cost, 4179);
}
