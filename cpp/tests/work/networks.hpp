// Networks for what flows of least cost take: a layered one, and a scheduling graph whose tasks come and go.
// Each draw is a statement: compilers evaluate the arguments of a call in different orders.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "oracles/flow_oracle.hpp"
#include "topoplace/flow_network.hpp"
#include "work/work.hpp"

namespace work {

// `rows` nodes in a column, all joined with a few of the next column; what enters on the left leaves on the
// right.
inline oracle::Network columns(std::int32_t rows, std::int32_t width, std::int32_t dearest) {
    Random random(1);
    oracle::Network network;
    network.num_nodes = rows * width;
    network.supply.assign(std::size_t(rows * width), 0);
    for (std::int32_t v = 0; v < rows * (width - 1); ++v) {
        const std::int32_t next = (v / rows + 1) * rows;
        network.add(v, next + v % rows, topoplace::flow::kInfinite, 2 * dearest);
        for (int i = 0; i < 4; ++i) {
            const std::int32_t cost = random.below(dearest);
            const std::int32_t capacity = 1 + random.below(6);
            network.add(v, next + random.below(rows), capacity, cost);
        }
    }
    for (std::int32_t row = 0; row < rows; ++row) {
        network.supply[std::size_t(row)] = 1 + random.below(5);
        network.supply[std::size_t(rows * (width - 1) + row)] = -network.supply[std::size_t(row)];
    }
    return network;
}

// Tasks that may go to some machines, to any machine of a rack, or wait; kept while they come and go.
class Scheduler {
  public:
    Scheduler(std::int32_t racks, std::int32_t machines, std::int64_t slots) : machines_(machines) {
        sink_ = node(0);
        waiting_ = node(0);
        arc(waiting_, sink_, topoplace::flow::kInfinite, 0);
        for (std::int32_t r = 0; r < racks; ++r) {
            racks_.push_back(node(0));
            for (std::int32_t m = 0; m < machines; ++m) {
                all_.push_back(node(0));
                exits_.push_back(arc(all_.back(), sink_, slots, random_.below(20)));
                arc(racks_.back(), all_.back(), slots, 0);
            }
        }
    }
    void submit(std::int32_t count) {
        for (std::int32_t i = 0; i < count; ++i) {
            tasks_.push_back(node(1));
            const std::int32_t through_rack = 40 + random_.below(60);
            arc(tasks_.back(), racks_[std::size_t(random_.below(std::int32_t(racks_.size())))], 1,
                through_rack);
            for (int k = 0; k < 3; ++k) {
                const std::int32_t direct = random_.below(100);
                arc(tasks_.back(), all_[std::size_t(random_.below(std::int32_t(all_.size())))], 1, direct);
            }
            arc(tasks_.back(), waiting_, 1, 150 + random_.below(100));
        }
        demand();
    }
    void end(std::int32_t count) {
        for (std::int32_t i = 0; i < count; ++i) {
            std::swap(tasks_[std::size_t(random_.below(std::int32_t(tasks_.size())))], tasks_.back());
            CHECK(!network_.remove_nodes(Rows{tasks_.back()}));
            tasks_.pop_back();
        }
        demand();
    }
    // Some machines lose a slot, others get dearer.
    void disturb(std::int32_t count) {
        for (std::int32_t i = 0; i < count; ++i) {
            const std::int32_t exit = exits_[std::size_t(random_.below(std::int32_t(exits_.size())))];
            if (i % 2 == 0) CHECK(!network_.set_capacity(Rows{exit}, Values{random_.below(5)}));
            if (i % 2 == 1) CHECK(!network_.set_cost(Rows{exit}, Values{random_.below(40)}));
        }
    }
    topoplace::flow::FlowResult solve(bool structure = true) {
        topoplace::flow::FlowParams params;
        params.structure = structure;
        return network_.solve(params);
    }
    std::uint64_t steps(bool structure = true) {
        const auto found = solve(structure);
        CHECK(!topoplace::flow::verify_flow(network_.network(), found.flow, found.potential, found.cost));
        return found.steps;
    }
    std::uint64_t steps_from_nothing(bool structure = true) const {
        topoplace::flow::FlowParams params;
        params.structure = structure;
        return topoplace::flow::min_cost_flow(network_.network(), params).steps;
    }

  private:
    using Rows = std::vector<std::int32_t>;
    using Values = std::vector<std::int64_t>;

    std::int32_t node(std::int64_t supply) {
        Rows added;
        CHECK(!network_.add_nodes(Values{supply}, added));
        return added.front();
    }
    std::int32_t arc(std::int32_t tail, std::int32_t head, std::int64_t capacity, std::int64_t cost) {
        Rows added;
        CHECK(!network_.add_arcs(Rows{tail}, Rows{head}, Values{capacity}, Values{cost}, added));
        return added.front();
    }
    void demand() { CHECK(!network_.set_supply(Rows{sink_}, Values{-std::int64_t(tasks_.size())})); }

    topoplace::flow::FlowNetwork network_;
    Random random_{3};
    std::int32_t machines_ = 0, sink_ = 0, waiting_ = 0;
    Rows racks_, all_, exits_, tasks_;
};

}  // namespace work
