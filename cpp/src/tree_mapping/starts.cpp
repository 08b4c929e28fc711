// Orders of the items along plans of the leaves.
#include "tree_mapping/starts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tree_mapping/use.hpp"

namespace topoplace::tree_mapping {
namespace {

constexpr std::size_t kMostOrders = 48;
constexpr std::size_t kMostPlans = 64;
constexpr std::size_t kFirstOrders = 4;       // that are laid along all plans
constexpr std::size_t kMostDivided = 4;       // plans along which items are divided
constexpr std::size_t kMostLaid = 8;          // plans along which an order by division is laid
constexpr std::uint64_t kStartsPerMove = 16;  // an edge of a start costs a part of a move
constexpr std::uint64_t kDividedPerMove = 4;  // an edge of a division as well
constexpr std::uint64_t kMostCredit = std::uint64_t{1} << 40;

}  // namespace

Starts::Starts(const Problem& problem, Loads& loads, WorkMeter& meter, std::uint64_t moves)
    : problem_(problem),
      loads_(loads),
      meter_(meter),
      credit_(std::min(moves / 4, kMostCredit) * kStartsPerMove),
      credit_of_divisions_(moves / 4) {}

std::uint64_t Starts::steps() const {
    return kStepsPerPort * loads_.size() + kStepsPerEdge * problem_.from.size();
}

bool Starts::has_credit() {
    if (!found_.empty() && (credit_ < cost() || meter_.spend(steps()))) return false;
    credit_ -= std::min(credit_, cost());
    return true;
}

Found Starts::laid(const Order& order, const Plan& plan) {
    std::vector<Index> leaf_of(at(problem_.items));
    for (std::size_t i = 0; i < order.size(); ++i) leaf_of[at(order[i])] = plan[i];
    loads_.set(leaf_of);
    Found found = found_in(loads_);
    found.leaf_of = std::move(leaf_of);
    return found;
}

void Starts::lay(const Order& order, std::size_t plan) {
    found_.push_back(laid(order, plans_[plan]));
    plan_of_.push_back(plan);
}

void Starts::lay_orders() {
    const std::vector<Order> orders = orders_of(problem_, kMostOrders, meter_);
    plans_ = plans_of(problem_, kMostPlans, meter_);
    const std::uint64_t kept = credit_ / 2;
    for (std::size_t plan = 0; plan < plans_.size() && credit_ >= kept; ++plan) {
        for (std::size_t i = 0; i < std::min(kFirstOrders, orders.size()); ++i) {
            if (has_credit()) lay(orders[i], plan);
        }
    }
    for (const std::size_t plan : promising_plans(plans_.size())) {
        for (std::size_t i = kFirstOrders; i < orders.size(); ++i) {
            if (has_credit()) lay(orders[i], plan);
        }
    }
}

// The plans of the fastest starts, then of those of least excess, each once.
std::vector<std::size_t> Starts::promising_plans(std::size_t most) const {
    std::vector<std::size_t> order(found_.size()), plans;
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto add = [&](std::size_t end) {
        for (const std::size_t i : order) {
            if (plans.size() < end && std::ranges::find(plans, plan_of_[i]) == plans.end())
                plans.push_back(plan_of_[i]);
        }
    };
    std::ranges::stable_sort(
        order, [&](std::size_t one, std::size_t other) { return found_[one].is_better_than(found_[other]); });
    add((most + 1) / 2);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return found_[i].excess; });
    add(most);
    return plans;
}

// All at once, then the two of most GB.
std::vector<Index> Starts::heavy_phases() const {
    std::vector<Index> phases{-1};
    if (problem_.phases < 2) return phases;
    for (const Index phase : main_phases(problem_)) {
        if (phases.size() < 3) phases.push_back(phase);
    }
    return phases;
}

std::uint64_t Starts::lay_divisions(std::uint64_t seed) {
    const std::uint64_t all = credit_of_divisions_;
    if (problem_.neighbours == nullptr) return 0;
    credit_ = std::max(credit_, cost() * kMostDivided * 3);
    const std::vector<std::size_t> plans = promising_plans(kMostDivided);
    for (const Index phase : heavy_phases()) {
        if (credit_of_divisions_ < cost() / kDividedPerMove || meter_.stopped()) break;
        Divider divider(problem_, phase, seed, meter_);
        for (const std::size_t plan : plans) lay_division(divider, plan);
    }
    return all - credit_of_divisions_;
}

void Starts::lay_division(Divider& divider, std::size_t plan) {
    const std::uint64_t moves = divider.work(plans_[plan]) / kDividedPerMove;
    if (moves > credit_of_divisions_ || !has_credit()) return;
    credit_of_divisions_ -= moves;
    const Order order = divider.order(plans_[plan]);
    if (order.empty()) return;
    lay(order, plan);
    for (std::size_t other = 0; other < std::min(kMostLaid, plans_.size()); ++other) {
        if (other != plan && has_credit()) lay(order, other);
    }
}

void Starts::refill(Found& best) {
    const auto& domains = problem_.above[at(std::max(0, problem_.depth - 1))];
    Order order(at(problem_.items));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](Index item) {
        const Index leaf = best.leaf_of[at(item)];
        return std::pair(domains[at(leaf)], leaf);
    });
    std::vector<Found> found;
    const auto try_plan = [&](const Plan& plan) {
        if (has_credit()) found.push_back(laid(order, plan));
    };
    credit_ = std::max(credit_, cost() * kMostLaid);
    try_plan(compacted(problem_, best.leaf_of));
    for (const Plan& plan : plans_) try_plan(plan);
    for (const Found& one : found) {
        if (one.is_better_than(best)) best = one;
    }
    keep_fullest(found, best);
}

// Of those as fast as the best one.
void Starts::keep_fullest(const std::vector<Found>& found, Found& best) {
    Use least(problem_, best.leaf_of);
    for (const Found& one : found) {
        if (one.seconds > best.seconds * kEqual || meter_.spend(steps())) continue;
        Use use(problem_, one.leaf_of);
        if (!use.is_fuller_than(least)) continue;
        best = one;
        least = std::move(use);
    }
}

}  // namespace topoplace::tree_mapping
