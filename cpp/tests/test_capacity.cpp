// The capacity kernel by hand: what it refuses, and small cases whose answer is plain.
#include <string>

#include "check.hpp"
#include "oracles/capacity_oracle.hpp"

namespace {

using oracle::Capacity;
using oracle::kNever;
namespace capacity = topoplace::capacity;

// Two types of 1 and 2 GPUs, three jobs; the last cannot run on the first type.
Capacity example() {
    Capacity c;
    c.gpus = {1, 2};
    c.open = {1, 2};
    c.wait = {10, 20, 5};
    c.most_gpus = 2;
    c.run = {0, kNever, 1, 0, 0, kNever, 1, 0, kNever, kNever, 0, 0};
    c.pay = {4, kNever, 3, 2, 4, kNever, 3, 2, kNever, kNever, 1, 1};
    return c;
}

TEST(tables_that_make_no_sense_are_refused) {
    Capacity c = example();
    c.gpus[1] = 3;
    CHECK_EQ(capacity::Problem::check(c.tables()).value_or(""), "gpus[1] = 3 is not in 1..most_gpus");
    c = example();
    c.run[3] = kNever;
    CHECK_EQ(capacity::Problem::check(c.tables()).value_or(""),
             "run[3] and pay: both finite, or both infinite");
    c = example();
    c.wait.pop_back();
    CHECK_EQ(capacity::Problem::check(c.tables()).value_or(""), "run: jobs x types x GPUs values needed");
    c = example();
    c.run[10] = c.run[11] = c.pay[10] = c.pay[11] = kNever;
    CHECK_EQ(capacity::Problem::check(c.tables()).value_or(""), "run[2] is nowhere finite");
    c.most_gpus = 1 << 15;
    CHECK_EQ(capacity::Problem::check(c.tables()).value_or(""), "most_gpus = 32768 is not in 1..32767");
}

TEST(the_verifier_reads_no_tables_that_are_not_there) {
    Capacity c = example();
    c.gpus[1] = 1000;
    const std::vector<capacity::Node> nodes{{1, {{2, 1000}}, 0}};
    CHECK_EQ(capacity::verify(c.tables(), nodes, 0).value_or("none"), "node 0 has job 2 on 1000 GPUs");
}

TEST(a_verifier_says_what_is_wrong) {
    const Capacity c = example();
    const auto fault = [&](const std::vector<capacity::Node>& nodes) {
        return capacity::verify(c.tables(), nodes, -1).value_or("none");
    };
    CHECK_EQ(fault({{7, {{0, 1}}, 0}}), "node 0 has a type that does not exist");
    CHECK_EQ(fault({{0, {}, 0}}), "node 0 has no job");
    CHECK_EQ(fault({{0, {{0, 1}}, 0}, {0, {{0, 1}}, 0}}), "node 1 has job 0, which is placed twice");
    CHECK_EQ(fault({{0, {{9, 1}}, 0}}), "node 0 has job 9, which does not exist");
    CHECK(fault({{0, {{0, 1}}, 0}}).starts_with("the cost is "));
}

TEST(the_first_job_to_end_pays_for_the_node) {
    const Capacity c = example();
    const capacity::Problem problem(c.tables());
    const std::vector<double> price(3);
    double best = kNever;
    for (const auto& found : capacity::price(problem, price)) best = std::min(best, found.reduced);
    CHECK_EQ(best, 2.0 + 1 + 1 - 30 + 3);  // jobs 0 and 1 on the second type
    CHECK_EQ(capacity::list(problem, price, best, 10)->size(), 1U);
    CHECK(!capacity::list(problem, price, 100, 3));
    CHECK_EQ(capacity::list(problem, price, 100, 100)->size(), oracle::nodes(c).size());
}

TEST(the_search_finds_what_brute_force_finds) {
    const Capacity c = example();
    const capacity::Problem problem(c.tables());
    for (std::int32_t count = 0; count <= 3; ++count) {
        capacity::SearchParams params;
        params.num_nodes = count;
        const auto found = capacity::search(problem, params);
        CHECK_EQ(found.cost, oracle::best_plan(c, count));
        CHECK(found.complete && found.nodes.size() == std::size_t(count));
        CHECK(!capacity::verify(c.tables(), found.nodes, found.cost));
        CHECK(capacity::verify(c.tables(), found.nodes, found.cost + 1));
    }
}

TEST(a_start_is_kept_or_improved_and_one_that_is_no_plan_refused) {
    const Capacity c = example();
    const capacity::Problem problem(c.tables());
    std::vector<capacity::Node> start{{1, {{0, 1}, {1, 1}}, 0}};
    capacity::SearchParams params;
    params.start = start;
    params.rounds = params.price_steps = 0;
    CHECK_EQ(capacity::search(problem, params).cost, 2.0 + 1 + 1 + 3 + 5);
    start[0].jobs[1].gpus = 2;
    CHECK_EQ(capacity::check(problem, params).value_or(""),
             "start[0] gives away more GPUs than it has, or none");
    start[0] = {0, {{2, 1}}, 0};
    CHECK_EQ(capacity::check(problem, params).value_or(""), "start[0] has a job that cannot run there");
    params.num_nodes = 4;
    CHECK_EQ(capacity::check(problem, params).value_or(""), "num_nodes = 4 is not in 0..3");
}

TEST(a_deadline_leaves_a_plan) {
    const Capacity c = example();
    const capacity::Problem problem(c.tables());
    capacity::SearchParams params;
    params.num_nodes = 2;
    params.rounds = ~std::uint64_t(0);
    params.stop.max_nodes = 2000;
    const auto found = capacity::search(problem, params);
    CHECK(!found.complete && found.knapsacks < 4000);
    CHECK(!capacity::verify(c.tables(), found.nodes, found.cost));
}

}  // namespace
