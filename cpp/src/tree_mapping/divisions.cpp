// Recursive bipartition with exact sizes, by the Fiduccia-Mattheyses kernel of cpp/src/partition.
#include "tree_mapping/divisions.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace topoplace::tree_mapping {
namespace {

constexpr std::int32_t kExactUpTo = 16;  // items whose best division is proven
// Coarser than the kernel's own rule: what exchanges much is to be one cluster, as starts look at no weights.
constexpr std::int32_t kCoarsest = 8;
constexpr std::uint64_t kStepsPerDivided = 1500;  // of `WorkMeter`: about a third of a microsecond

}  // namespace

Divider::Divider(const Problem& problem, Index phase, std::uint64_t seed, WorkMeter& meter)
    : problem_(problem), seed_(seed), meter_(meter), number_(at(problem.items), -1) {
    std::vector<double> sums(at(problem.items), 0.0);
    for (Index item = 0; item < problem.items; ++item) {
        first_.push_back(edges_.size());
        for (const Neighbour& one : problem.around(item)) {
            if (one.item > item && (phase < 0 || one.phase == phase)) sums[at(one.item)] += one.half;
        }
        for (const Neighbour& one : problem.around(item)) {
            double& sum = sums[at(one.item)];
            if (sum > 0.0) edges_.push_back({item, one.item, sum});
            sum = 0.0;
        }
    }
    first_.push_back(edges_.size());
}

std::uint64_t Divider::work(const Plan& plan) const {
    std::size_t leaves = 1;
    for (std::size_t i = 1; i < plan.size(); ++i) leaves += plan[i] != plan[i - 1] ? 1 : 0;
    return (edges_.size() + plan.size()) * static_cast<std::uint64_t>(std::bit_width(leaves - 1));
}

Order Divider::order(const Plan& plan) {
    order_.resize(at(problem_.items));
    std::iota(order_.begin(), order_.end(), 0);
    divide(plan, 0, plan.size());
    return meter_.stopped() ? Order{} : order_;
}

void Divider::divide(const Plan& plan, std::size_t begin, std::size_t end) {
    const std::size_t between = middle(plan, begin, end);
    if (between == end || !divide_at(begin, between, end)) return;
    divide(plan, begin, between);
    divide(plan, between, end);
}

// The place nearest to the middle where a domain of the least possible depth begins; the end if one leaf
// takes all.
std::size_t Divider::middle(const Plan& plan, std::size_t begin, std::size_t end) const {
    std::size_t found = end;
    Index depth = problem_.depth;
    const auto off = [&](std::size_t place) { return std::max(place - begin, end - place); };
    for (std::size_t i = begin + 1; i < end; ++i) {
        if (plan[i] == plan[i - 1]) continue;
        const Index meeting = problem_.meeting(plan[i - 1], plan[i]);
        if (meeting < depth || (meeting == depth && off(i) < off(found))) {
            depth = meeting;
            found = i;
        }
    }
    return found;
}

void Divider::list_edges(std::size_t begin, std::size_t end) {
    const auto part = std::span(order_).subspan(begin, end - begin);
    for (std::size_t i = 0; i < part.size(); ++i) number_[at(part[i])] = static_cast<Index>(i);
    inside_.clear();
    for (const Index item : part) {
        for (std::size_t i = first_[at(item)]; i < first_[at(item) + 1]; ++i) {
            const Edge& edge = edges_[i];
            const Index u = number_[at(edge.u)], v = number_[at(edge.v)];
            if (v >= 0) inside_.push_back({u, v, edge.weight});
        }
    }
    for (const Index item : part) number_[at(item)] = -1;
}

// False if the search has to stop.
bool Divider::divide_at(std::size_t begin, std::size_t middle, std::size_t end) {
    list_edges(begin, end);
    if (meter_.spend(kStepsPerDivided * (inside_.size() + end - begin))) return false;
    const auto part = std::span(order_).subspan(begin, end - begin);
    const Graph graph(static_cast<Index>(part.size()), inside_);
    partition::BipartitionParams params;
    params.fraction = static_cast<double>(middle - begin) / static_cast<double>(part.size());
    params.exact_up_to = kExactUpTo;
    params.coarsest = kCoarsest;
    params.seed = seed_;
    params.stop = meter_.deadline();
    const auto found = partition::bipartition(graph, params, &workspace_);
    if (found.side.empty() || meter_.look_at_clock()) return false;
    for (auto& side : sides_) side.clear();
    for (std::size_t i = 0; i < part.size(); ++i) sides_[found.side[i] == 0 ? 0 : 1].push_back(part[i]);
    if (sides_[0].size() != middle - begin) return false;
    std::ranges::copy(sides_[1], std::ranges::copy(sides_[0], part.begin()).out);
    return true;
}

}  // namespace topoplace::tree_mapping
