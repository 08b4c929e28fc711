// Orders of tasks on sets of vertices, improved by swaps of two tasks.
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>

#include "topoplace/port_network.hpp"

namespace topoplace::ports {
namespace {

constexpr int kMostPasses = 8;
constexpr std::size_t kAllOrders = 4;  // of so many vertices, all orders are tried
constexpr double kEqual = 1 + 1e-9;

struct Value {
    double seconds = 0.0;
    double port_seconds = 0.0;

    bool is_better_than(const Value& other) const {
        if (seconds * kEqual < other.seconds) return true;
        return seconds <= other.seconds * kEqual && port_seconds * kEqual < other.port_seconds;
    }
};

class Orders {
  public:
    Orders(const PortNetwork& network, std::span<const std::int64_t> phase_ends, const Flows& flows)
        : network_(network),
          phase_ends_(phase_ends),
          flows_(flows),
          gigabytes_(2 * static_cast<std::size_t>(network.num_ports()), 0.0) {}

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
            for (; i < static_cast<std::size_t>(end); ++i) add(i);
            double longest = has_path_ ? 0.0 : std::numeric_limits<double>::infinity();
            for (const Hop hop : used_) {
                double& gigabytes = gigabytes_[static_cast<std::size_t>(hop)];
                const double seconds = gigabytes / network_.gb_per_s(hop / 2);
                longest = std::max(longest, seconds);
                sum.port_seconds += seconds;
                gigabytes = 0.0;
            }
            used_.clear();
            has_path_ = true;
            sum.seconds += longest;
        }
        return sum;
    }

    void add(std::size_t i) {
        hops_.clear();
        const auto from = order_[static_cast<std::size_t>(flows_.from[i])];
        const auto to = order_[static_cast<std::size_t>(flows_.to[i])];
        has_path_ = network_.route(from, to, hops_) && has_path_;
        for (const Hop hop : hops_) {
            put(hop, flows_.there[i]);
            put(hop ^ 1, flows_.back[i]);
        }
    }
    void put(Hop hop, double gigabytes) {
        if (gigabytes <= 0.0) return;
        double& sum = gigabytes_[static_cast<std::size_t>(hop)];
        if (sum == 0.0) used_.push_back(hop);
        sum += gigabytes;
    }

    const PortNetwork& network_;
    std::span<const std::int64_t> phase_ends_;
    const Flows& flows_;
    std::vector<double> gigabytes_;
    std::vector<Hop> used_, hops_;
    std::vector<std::int32_t> order_;
    bool has_path_ = true;
};

void check(const PortNetwork& network, const Flows& flows, std::int32_t size,
           std::span<const std::int32_t> sets) {
    if (size < 1 || sets.size() % static_cast<std::size_t>(size) != 0) {
        throw std::invalid_argument("sets are not rows of " + std::to_string(size));
    }
    for (const auto& [values, most, name] :
         {std::tuple(flows.from, size, "from"), std::tuple(flows.to, size, "to"),
          std::tuple(sets, network.num_vertices(), "sets")}) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] >= 0 && values[i] < most) continue;
            throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) +
                                        "] = " + std::to_string(values[i]) + ": out of range");
        }
    }
    const std::size_t count = flows.from.size();
    if (flows.to.size() != count || flows.there.size() != count || flows.back.size() != count) {
        throw std::invalid_argument("from, to, there and back differ in length");
    }
}

}  // namespace

std::vector<Order> best_orders(const PortNetwork& network, std::span<const std::int64_t> phase_ends,
                               const Flows& flows, std::int32_t size, std::span<const std::int32_t> sets) {
    check(network, flows, size, sets);
    std::int64_t last = 0;
    for (const std::int64_t end : phase_ends) {
        if (end < last || static_cast<std::size_t>(end) > flows.from.size()) {
            throw std::invalid_argument("phase_ends are not ascending numbers of flows");
        }
        last = end;
    }
    Orders orders(network, phase_ends, flows);
    std::vector<Order> found;
    for (std::size_t i = 0; i < sets.size(); i += static_cast<std::size_t>(size)) {
        found.push_back(orders.improved(sets.subspan(i, static_cast<std::size_t>(size))));
    }
    return found;
}

}  // namespace topoplace::ports
