// The capacity kernel against the definition: the best node of each kind and all nodes below a limit, and the
// search between its bound and the best of all plans, on one small problem.
#include <array>
#include <cmath>

#include "fuzz.hpp"
#include "oracles/capacity_oracle.hpp"

namespace {

namespace capacity = topoplace::capacity;

oracle::Capacity read_case(fuzz::Bytes& bytes) {
    constexpr std::array<double, 6> kCost{0, 0.25, 1, 2.5, 7, 100};
    oracle::Capacity c;
    c.most_gpus = 1 + bytes.below(3);
    const std::int32_t types = 1 + bytes.below(3);
    const std::int32_t jobs = 1 + bytes.below(5);
    const auto cost = [&] { return kCost[std::size_t(bytes.below(kCost.size()))]; };
    for (std::int32_t v = 0; v < types; ++v) {
        c.gpus.push_back(1 + bytes.below(c.most_gpus));
        c.open.push_back(cost());
    }
    for (std::int32_t j = 0; j < jobs; ++j) {
        c.wait.push_back(cost());
        for (std::int32_t way = 0; way < types * c.most_gpus; ++way) {
            const bool runs = way == 0 || bytes.below(4) > 0;
            c.run.push_back(runs ? cost() - cost() : oracle::kNever);
            c.pay.push_back(runs ? cost() : oracle::kNever);
        }
    }
    return c;
}

void check_nodes(const oracle::Capacity& c, const capacity::Problem& problem,
                 const std::vector<double>& price, double limit) {
    std::size_t below = 0;
    std::vector<double> best(c.gpus.size() * std::size_t(c.most_gpus + 1), oracle::kNever);
    const auto kind = [&](const capacity::Node& node) {
        std::int32_t given = 0;
        for (const auto& placed : node.jobs) given += placed.gpus;
        return std::size_t(node.type * (c.most_gpus + 1) + given);
    };
    for (const auto& node : oracle::nodes(c)) {
        const double reduced = oracle::reduced(c, node, price);
        best[kind(node)] = std::min(best[kind(node)], reduced);
        below += reduced <= limit;
    }
    for (const auto& [node, reduced] : capacity::price(problem, price)) {
        REQUIRE(std::abs(reduced - best[kind(node)]) < 1e-9);
        REQUIRE(std::abs(oracle::reduced(c, node, price) - reduced) < 1e-9);
        best[kind(node)] = oracle::kNever;
    }
    for (const double left : best) REQUIRE(left == oracle::kNever);
    const auto listed = capacity::list(problem, price, limit, below);
    REQUIRE(listed && listed->size() == below);
    for (const auto& [node, reduced] : *listed) {
        REQUIRE(reduced <= limit && std::abs(oracle::reduced(c, node, price) - reduced) < 1e-9);
    }
    REQUIRE(below == 0 || !capacity::list(problem, price, limit, below - 1));
}

void check_search(const oracle::Capacity& c, const capacity::Problem& problem,
                  capacity::SearchParams params) {
    const auto found = capacity::search(problem, params);
    const double best = oracle::best_plan(c, params.num_nodes);
    REQUIRE(found.complete && found.nodes.size() == std::size_t(params.num_nodes));
    REQUIRE(!capacity::verify(c.tables(), found.nodes, found.cost));
    REQUIRE(capacity::verify(c.tables(), found.nodes, found.cost + 1));
    REQUIRE(found.bound <= best + 1e-9 && best <= found.cost + 1e-9);
    REQUIRE(capacity::search(problem, params).cost == found.cost);
    params.start = found.nodes;
    REQUIRE(capacity::search(problem, params).cost <= found.cost + 1e-9);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const oracle::Capacity c = read_case(bytes);
    const capacity::Problem problem(c.tables());
    std::vector<double> price;
    for (std::size_t j = 0; j < c.wait.size(); ++j) price.push_back(-double(bytes.below(8)));
    check_nodes(c, problem, price, double(bytes.below(12)) - 4.003);
    capacity::SearchParams params;
    params.num_nodes = 1 + bytes.below(c.jobs());
    params.price_steps = std::uint64_t(bytes.below(60));
    params.rounds = std::uint64_t(bytes.below(20));
    params.seed = std::uint64_t(bytes.below(256));
    check_search(c, problem, params);
    return 0;
}
