// What searches prepare of a source graph: the order of placing, halved weights, and its symmetries.
#include "mapping/problem/source.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "graph/index.hpp"
#include "match/graphs/symmetry.hpp"

namespace topoplace::mapping {
namespace {

// Steps to enter a task among the waiting ones, or one weight among the sorted.
constexpr std::uint64_t kStepsPerEntry = 512;

// The largest tie first; of equal ones the heavier task, then the smaller number.
std::optional<std::vector<std::int32_t>> placing_order(const Graph& graph, const std::vector<double>& weight,
                                                       WorkMeter& meter) {
    using Entry = std::tuple<double, double, std::int32_t>;
    std::priority_queue<Entry> waiting;
    std::vector<double> tie(weight.size(), 0);
    std::vector<bool> placed(weight.size(), false);
    for (std::int32_t a = 0; a < graph.num_vertices(); ++a) waiting.push({0, weight[index(a)], -a});
    std::vector<std::int32_t> order;
    while (!waiting.empty()) {
        const auto [seen, unused, negative] = waiting.top();
        const std::int32_t a = -negative;
        waiting.pop();
        if (meter.pass_time(kStepsPerEntry)) return std::nullopt;
        if (placed[index(a)] || seen != tie[index(a)]) continue;
        placed[index(a)] = true;
        order.push_back(a);
        if (meter.pass_time(kStepsPerEntry * graph.neighbors(a).size())) return std::nullopt;
        for (std::size_t i = 0; i < graph.neighbors(a).size(); ++i) {
            const std::int32_t b = graph.neighbors(a)[i];
            if (placed[index(b)]) continue;
            tie[index(b)] += graph.weights(a)[i];
            waiting.push({tie[index(b)], weight[index(b)], -b});
        }
    }
    return order;
}

// Half the weights of `task` to tasks from `first` on.
std::vector<double> halves_of(const Graph& graph, std::int32_t task, std::int32_t first) {
    std::vector<double> halves;
    for (std::size_t i = 0; i < graph.neighbors(task).size(); ++i) {
        if (graph.neighbors(task)[i] >= first) halves.push_back(graph.weights(task)[i] / 2);
    }
    std::sort(halves.begin(), halves.end(), std::greater<>());
    return halves;
}

match::ColoredGraph colored(const Graph& graph) {
    const std::int32_t size = graph.num_vertices();
    std::map<double, std::uint32_t> color{{0.0, 0}};
    match::ColoredGraph result{size, std::vector<std::uint32_t>(index(size) * index(size), 0)};
    for (std::int32_t a = 0; a < size; ++a) {
        for (std::size_t i = 0; i < graph.neighbors(a).size(); ++i) {
            const auto next = static_cast<std::uint32_t>(color.size());
            const auto known = color.emplace(graph.weights(a)[i], next).first;
            result.color[index(a) * index(size) + index(graph.neighbors(a)[i])] = known->second;
        }
    }
    return result;
}

Graph renumbered(const Graph& graph, const std::vector<std::int32_t>& order) {
    TOPOPLACE_ASSERT(std::ssize(order) == graph.num_vertices());
    std::vector<std::int32_t> depth(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) depth[index(order[i])] = static_cast<std::int32_t>(i);
    std::vector<Edge> edges;
    for (std::int32_t a = 0; a < graph.num_vertices(); ++a) {
        for (std::size_t i = 0; i < graph.neighbors(a).size(); ++i) {
            const std::int32_t b = graph.neighbors(a)[i];
            if (a < b) edges.push_back({depth[index(a)], depth[index(b)], graph.weights(a)[i]});
        }
    }
    return {graph.num_vertices(), edges};
}

std::optional<Ranking> rank(const Graph& graph, WorkMeter& meter) {
    Ranking ranking;
    std::vector<double> weight;
    for (std::int32_t a = 0; a < graph.num_vertices(); ++a) {
        if (meter.pass_time(kStepsPerEntry * (1 + graph.neighbors(a).size()))) return std::nullopt;
        const auto& halves = ranking.halves.emplace_back(halves_of(graph, a, 0));
        weight.push_back(std::accumulate(halves.begin(), halves.end(), 0.0));
    }
    auto order = placing_order(graph, weight, meter);
    if (!order) return std::nullopt;
    ranking.order = std::move(*order);
    TOPOPLACE_ASSERT(std::ssize(ranking.order) == graph.num_vertices());
    return ranking;
}

std::optional<Proof> prepare(const Graph& given, const std::vector<std::int32_t>& order, WorkMeter& meter) {
    const std::int32_t size = given.num_vertices();
    Proof proof{renumbered(given, order), {}, {}};
    for (std::int32_t depth = 0; depth < size; ++depth) {
        if (meter.pass_time(256 * index(size - depth))) return std::nullopt;
        auto& row = proof.open_halves.emplace_back(index(size));
        for (std::int32_t task = depth; task < size; ++task)
            row[index(task)] = halves_of(proof.graph, task, depth);
    }
    std::vector<std::int32_t> base(index(size));
    std::iota(base.begin(), base.end(), 0);
    proof.above.resize(index(size));
    const auto chain = match::stabilizer_chain(colored(proof.graph), base, meter);
    if (!chain) return std::nullopt;
    for (std::int32_t i = 0; i < size; ++i) {
        for (const std::int32_t task : chain->orbit[index(i)]) {
            TOPOPLACE_ASSERT(task >= i);
            if (task != i) proof.above[index(task)].push_back(i);
        }
    }
    return proof;
}

}  // namespace

Source::Source(Graph graph) : impl_(std::make_shared<const Impl>(std::move(graph))) {}

std::int32_t Source::num_vertices() const { return impl_->size(); }

Source::Impl::Impl(Graph graph) : graph_(std::move(graph)) {
    for (std::int32_t a = 0; a < size(); ++a) {
        for (const double weight : graph_.weights(a)) total_weight_ += weight / 2;
    }
    TOPOPLACE_ASSERT(total_weight_ >= 0);
}

const Ranking* Source::Impl::ranking(WorkMeter& meter) const {
    return ranking_.get([&] { return rank(graph_, meter); });
}

const Proof* Source::Impl::proof(WorkMeter& meter) const {
    return proof_.get([&]() -> std::optional<Proof> {
        const Ranking* its = ranking(meter);
        if (its == nullptr) return std::nullopt;
        return prepare(graph_, its->order, meter);
    });
}

}  // namespace topoplace::mapping
