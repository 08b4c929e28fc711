// Exchange between blocks: a task moves to a block with room, or swaps with a task there.
#pragma once

#include <cstdint>
#include <vector>

#include "mapping/blocks/block_problem.hpp"

namespace topoplace::mapping {

class BlockExchange {
  public:
    explicit BlockExchange(const BlockProblem& problem);

    // False where the search was stopped: then nothing is known of `block_of`.
    bool start(const BlockOf& block_of, WorkMeter& meter);
    // Until no exchange of a task that would gain by itself lowers the cost, or the search is stopped.
    void improve(WorkMeter& meter);

    const BlockOf& block_of() const { return block_of_; }
    double cost() const { return cost_; }
    std::uint64_t exchanges() const { return exchanges_; }

  private:
    // A block that `task` goes to, and the task that comes from there; kAbsent for none.
    struct Exchanged {
        double change = 0;
        std::int32_t block = kAbsent;
        std::int32_t other = kAbsent;
    };

    bool is_consistent() const;
    bool improve(std::int32_t task);
    void best_in(std::int32_t block, std::int32_t task, double gain, Exchanged& best) const;
    void exchange(std::int32_t task, std::int32_t block, std::int32_t other);
    void put(std::int32_t task, std::int32_t block);
    bool has_room(std::int32_t block) const {
        return std::ssize(tasks_in_[index(block)]) < problem_.room[index(block)];
    }
    double* ties(std::int32_t task) { return ties_.data() + index(task) * problem_.room.size(); }
    const double* ties(std::int32_t task) const { return ties_.data() + index(task) * problem_.room.size(); }

    const BlockProblem& problem_;
    const Graph& graph_;
    BlockOf block_of_;
    std::vector<std::vector<std::int32_t>> tasks_in_;  // by block
    std::vector<double> ties_;                         // by task and block: what the task would cost there
    std::vector<double> weight_to_;                    // by task, of the one looked at
    double cost_ = 0;
    std::uint64_t exchanges_ = 0;
};

}  // namespace topoplace::mapping
