// Orders of tasks on sets of vertices: the best of a few vertices, else improved by swaps of two tasks.
#include <algorithm>
#include <numeric>
#include <string>

#include "ports/loads.hpp"

namespace topoplace::ports {
namespace {

constexpr int kMostPasses = 8;
constexpr std::size_t kAllOrders = 4;    // up to this many vertices, all orders are tried
constexpr std::size_t kMostTwins = 128;  // above this many tasks, none count as alike
constexpr double kEqual = 1 + 1e-9;
constexpr std::uint64_t kStepsPerFlow = 100;  // of `WorkMeter`, each a fifth of a nanosecond

struct Value {
    double seconds = 0.0;
    double port_seconds = 0.0;

    bool is_better_than(const Value& other) const {
        if (seconds * kEqual < other.seconds) return true;
        return seconds <= other.seconds * kEqual && port_seconds * kEqual < other.port_seconds;
    }
};

// What a task exchanges with another one in a phase.
struct Exchange {
    std::size_t phase;
    std::int32_t other;
    double sent;
    double received;

    auto operator<=>(const Exchange&) const = default;
};

// Tells which tasks are alike: swapping two of them changes no flow.
class Twins {
  public:
    Twins(std::span<const std::int64_t> phase_ends, const Flows& flows, std::size_t size) : kind_of_(size) {
        std::iota(kind_of_.begin(), kind_of_.end(), std::size_t{0});
        if (size > kMostTwins) return;
        std::vector<std::vector<Exchange>> exchanges(size);
        for (std::size_t phase = 0, i = 0; phase < phase_ends.size(); ++phase) {
            for (; i < static_cast<std::size_t>(phase_ends[phase]); ++i) {
                const auto [from, to] = std::pair{flows.from[i], flows.to[i]};
                exchanges[static_cast<std::size_t>(from)].push_back(
                    {phase, to, flows.there[i], flows.back[i]});
                exchanges[static_cast<std::size_t>(to)].push_back(
                    {phase, from, flows.back[i], flows.there[i]});
            }
        }
        for (std::size_t task = 0; task < size; ++task) {
            for (std::size_t earlier = 0; earlier < task; ++earlier) {
                if (kind_of_[earlier] != earlier || !are_alike(exchanges, earlier, task)) continue;
                kind_of_[task] = earlier;
                break;
            }
        }
    }

    bool are_twins(std::size_t a, std::size_t b) const { return kind_of_[a] == kind_of_[b]; }

  private:
    static bool are_alike(const std::vector<std::vector<Exchange>>& exchanges, std::size_t a, std::size_t b) {
        if (exchanges[a].size() != exchanges[b].size()) return false;
        std::vector<Exchange> of_a = exchanges[a];
        std::vector<Exchange> of_b = exchanges[b];
        for (Exchange& one : of_b) {
            if (one.other == static_cast<std::int32_t>(a)) one.other = static_cast<std::int32_t>(b);
        }
        std::ranges::sort(of_a);
        std::ranges::sort(of_b);
        return of_a == of_b;
    }

    std::vector<std::size_t> kind_of_;  // the first task of those alike
};

class Orders {
  public:
    Orders(const PortNetwork& network, std::span<const std::int64_t> phase_ends, const Flows& flows,
           std::size_t size, const StopCondition& stop)
        : phase_ends_(phase_ends),
          flows_(flows),
          twins_(phase_ends, flows, size),
          loads_(network),
          meter_(stop) {}

    Order improved(std::span<const std::int32_t> set) {
        order_.assign(set.begin(), set.end());
        Value best = value();
        if (order_.size() <= kAllOrders) return best_of_all(best);
        for (int pass = 0; pass < kMostPasses && swap_once_around(best); ++pass) {
        }
        return {order_, best.seconds, best.port_seconds};
    }

  private:
    Order best_of_all(Value best) {
        std::vector<std::int32_t> first = order_;
        std::vector<std::size_t> places(order_.size());
        std::iota(places.begin(), places.end(), std::size_t{0});
        std::vector<std::int32_t> found = order_;
        while (std::ranges::next_permutation(places).found) {
            for (std::size_t i = 0; i < places.size(); ++i) order_[i] = first[places[i]];
            const Value now = value();
            if (!now.is_better_than(best)) continue;
            best = now;
            found = order_;
        }
        return {found, best.seconds, best.port_seconds};
    }

    // Tries every swap of two tasks; true if one of them was worth it.
    bool swap_once_around(Value& best) {
        bool is_better = false;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            for (std::size_t j = i + 1; j < order_.size(); ++j) {
                if (twins_.are_twins(i, j)) continue;
                if (meter_.spend(kStepsPerFlow * (1 + flows_.from.size()))) return false;
                std::swap(order_[i], order_[j]);
                const Value now = value();
                if (now.is_better_than(best)) {
                    best = now;
                    is_better = true;
                } else {
                    std::swap(order_[i], order_[j]);
                }
            }
        }
        return is_better;
    }

    Value value() {
        Value sum;
        std::size_t i = 0;
        for (const std::int64_t end : phase_ends_) {
            for (; i < static_cast<std::size_t>(end); ++i) {
                loads_.add(vertex_of(flows_.from[i]), vertex_of(flows_.to[i]), flows_.there[i],
                           flows_.back[i]);
            }
            const Loads::Time time = loads_.take();
            sum.seconds += time.phase.seconds;
            sum.port_seconds += time.all_port_seconds;
        }
        return sum;
    }
    std::int32_t vertex_of(std::int32_t task) const { return order_[static_cast<std::size_t>(task)]; }

    std::span<const std::int64_t> phase_ends_;
    const Flows& flows_;
    Twins twins_;
    Loads loads_;
    WorkMeter meter_;
    std::vector<std::int32_t> order_;
};

}  // namespace

Fault check(const PortNetwork& network, std::span<const std::int64_t> phase_ends, const Flows& flows,
            std::int32_t size, std::span<const std::int32_t> sets) {
    if (size < 1 || sets.size() % static_cast<std::size_t>(size) != 0)
        return "sets are not rows of " + std::to_string(size);
    for (std::size_t i = 0; i < sets.size(); ++i) {
        if (sets[i] >= 0 && sets[i] < network.num_vertices()) continue;
        return "sets[" + std::to_string(i / static_cast<std::size_t>(size)) + ", " +
               std::to_string(i % static_cast<std::size_t>(size)) + "] = " + std::to_string(sets[i]) +
               ": out of range";
    }
    return check(phase_ends, flows, size);
}

std::vector<Order> best_orders(const PortNetwork& network, std::span<const std::int64_t> phase_ends,
                               const Flows& flows, std::int32_t size, std::span<const std::int32_t> sets,
                               const StopCondition& stop) {
    TOPOPLACE_ASSERT(!check(network, phase_ends, flows, size, sets));
    Orders orders(network, phase_ends, flows, static_cast<std::size_t>(size), stop);
    std::vector<Order> found;
    for (std::size_t i = 0; i < sets.size(); i += static_cast<std::size_t>(size)) {
        found.push_back(orders.improved(sets.subspan(i, static_cast<std::size_t>(size))));
    }
    return found;
}

}  // namespace topoplace::ports
