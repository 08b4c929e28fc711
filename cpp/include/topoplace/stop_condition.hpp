// Ends searches: at a point in time, after an amount of work, or when the caller asks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "topoplace/assert.hpp"

namespace topoplace {

struct StopCondition {
    std::chrono::steady_clock::time_point when = std::chrono::steady_clock::time_point::max();
    // Asked a few times a second, from the thread that searches; true stops the search.
    bool (*interrupted)() = nullptr;
    // Nodes after which the search stops: the same place on every machine.
    std::uint64_t max_nodes = std::numeric_limits<std::uint64_t>::max();

    static StopCondition in(double seconds) {
        StopCondition stop;
        if (seconds < 1e9) {
            stop.when = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(seconds));
        }
        return stop;
    }
    bool time_is_up() const {
        return when != std::chrono::steady_clock::time_point::max() &&
               std::chrono::steady_clock::now() >= when;
    }
};

// Measures the work of a search in nodes, and within dear nodes in steps of about a fifth of a nanosecond.
// Reads the clock and asks for interruption after 1,024 nodes or 2^22 steps, whichever comes first.
class WorkMeter {
  public:
    static constexpr std::uint64_t kNodesPerLook = 1U << 10;
    static constexpr std::uint64_t kStepsPerLook = 1U << 22;
    // A node of more steps counts for several.
    static constexpr std::uint64_t kStepsPerNode = 1U << 12;

    explicit WorkMeter(const StopCondition& stop) : stop_(stop) { schedule(); }

    // True when the search has to stop; stays true from then on. `nodes`: the number of usual nodes that this
    // one is worth.
    bool visit(std::uint64_t nodes = 1) {
        TOPOPLACE_ASSERT(next_look_ > nodes_ || stopped_);
        nodes_ += nodes;
        if (nodes_ >= next_look_) look();
        return stopped_;
    }
    // As visit(), for work within a node or a preparation.
    bool spend(std::uint64_t steps) {
        steps_ += steps;
        if (steps_ >= next_look_in_steps_) look();
        return stopped_;
    }
    // As spend(), for steps that count for the clock alone: those of what is made once and kept, so that a
    // later search stops where the first one did.
    bool pass_time(std::uint64_t steps) {
        passed_ += steps;
        if (passed_ >= kStepsPerLook) {
            passed_ = 0;
            ++looks_;
            look_at_clock();
        }
        return stopped_;
    }
    // As pass_time(), but true where the clock or the caller ends the search, not where the nodes are spent:
    // for work that completes an answer then.
    bool is_late_after(std::uint64_t steps) {
        pass_time(steps);
        return late_;
    }
    // After a step of more than some microseconds, whatever it counts for.
    bool look_at_clock() {
        late_ = late_ || stop_.time_is_up() || interrupted();
        stopped_ = stopped_ || late_;
        return stopped_;
    }
    bool stopped() const { return stopped_; }
    // The same point in time and interruption, without a limit on nodes.
    StopCondition deadline() const { return {.when = stop_.when, .interrupted = stop_.interrupted}; }
    std::uint64_t nodes() const { return std::max(nodes_, steps_ / kStepsPerNode); }
    // How often the clock was read on account of the work.
    std::uint64_t looks() const { return looks_; }

  private:
    void look() {
        ++looks_;
        stopped_ = look_at_clock() || nodes() >= stop_.max_nodes;
        schedule();
    }
    bool interrupted() {
        if (stop_.interrupted == nullptr) return false;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_question_ < kBetweenQuestions) return false;
        last_question_ = now;
        return stop_.interrupted();
    }
    void schedule() {
        const std::uint64_t left = stop_.max_nodes > nodes() ? stop_.max_nodes - nodes() : kNodesPerLook;
        next_look_ = nodes_ + std::min(kNodesPerLook, left);
        next_look_in_steps_ = steps_ + std::min(kStepsPerLook / kStepsPerNode, left) * kStepsPerNode;
    }

    static constexpr std::chrono::milliseconds kBetweenQuestions{100};
    StopCondition stop_;
    std::uint64_t nodes_ = 0;
    std::uint64_t steps_ = 0;
    std::uint64_t passed_ = 0;  // since the last look
    std::uint64_t looks_ = 0;
    std::uint64_t next_look_ = 0;
    std::uint64_t next_look_in_steps_ = 0;
    std::chrono::steady_clock::time_point last_question_ = std::chrono::steady_clock::now();
    bool stopped_ = false;
    bool late_ = false;
};

}  // namespace topoplace
