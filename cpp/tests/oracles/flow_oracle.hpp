// Brute force over every flow of a small network with finite capacities.
#pragma once

#include <optional>
#include <vector>

#include "topoplace/flow.hpp"

namespace oracle {

// A network that owns its arrays.
struct Network {
    std::int32_t num_nodes = 0;
    std::vector<std::int32_t> tail;
    std::vector<std::int32_t> head;
    std::vector<std::int64_t> lower;
    std::vector<std::int64_t> capacity;
    std::vector<std::int64_t> cost;
    std::vector<std::int64_t> supply;

    topoplace::flow::Network view() const {
        return {.num_nodes = num_nodes,
                .tail = tail,
                .head = head,
                .lower = lower,
                .capacity = capacity,
                .cost = cost,
                .supply = supply};
    }
    void add(std::int32_t from, std::int32_t to, std::int64_t units, std::int64_t unit_cost,
             std::int64_t least = 0) {
        tail.push_back(from);
        head.push_back(to);
        lower.push_back(least);
        capacity.push_back(units);
        cost.push_back(unit_cost);
    }
};

class Flows {
  public:
    explicit Flows(const Network& network) : network_(network), left_(network.supply) {
        for (const std::int64_t supply : network.supply) sum_ += supply;
        choose(0, 0);
    }
    std::optional<std::int64_t> best() const { return best_; }

  private:
    bool conserved() const {
        for (std::size_t v = 0; v < left_.size(); ++v) {
            const bool takes_less = sum_ < 0 && network_.supply[v] < 0 && left_[v] < 0;
            if (left_[v] != 0 && !takes_less) return false;
        }
        return true;
    }
    void choose(std::size_t arc, std::int64_t cost) {
        if (arc == network_.tail.size()) {
            if (conserved() && (!best_ || cost < *best_)) best_ = cost;
            return;
        }
        std::int64_t& from = left_[static_cast<std::size_t>(network_.tail[arc])];
        std::int64_t& to = left_[static_cast<std::size_t>(network_.head[arc])];
        for (std::int64_t units = network_.lower[arc]; units <= network_.capacity[arc]; ++units) {
            from -= units;
            to += units;
            choose(arc + 1, cost + units * network_.cost[arc]);
            from += units;
            to -= units;
        }
    }

    const Network& network_;
    std::vector<std::int64_t> left_;
    std::int64_t sum_ = 0;
    std::optional<std::int64_t> best_;
};

// The least cost of any flow; nothing where there is none.
inline std::optional<std::int64_t> least_cost(const Network& network) { return Flows(network).best(); }

}  // namespace oracle
