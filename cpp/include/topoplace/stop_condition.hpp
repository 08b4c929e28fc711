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

// Measures the work of a search in nodes; reads the clock and asks for interruption once every 1,024 of them.
class WorkMeter {
  public:
    explicit WorkMeter(const StopCondition& stop) : stop_(stop) { schedule(); }

    // True when the search has to stop; stays true from then on. `nodes`: the number of usual nodes that this
    // one is worth.
    bool visit(std::uint64_t nodes = 1) {
        TOPOPLACE_ASSERT(next_look_ > nodes_ || stopped_);
        nodes_ += nodes;
        if (nodes_ >= next_look_) look();
        return stopped_;
    }
    // After a step of more than some microseconds, whatever it counts for.
    bool look_at_clock() {
        stopped_ = stopped_ || stop_.time_is_up() || interrupted();
        return stopped_;
    }
    bool stopped() const { return stopped_; }
    std::uint64_t nodes() const { return nodes_; }

  private:
    void look() {
        stopped_ = look_at_clock() || nodes_ >= stop_.max_nodes;
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
        const std::uint64_t left = stop_.max_nodes > nodes_ ? stop_.max_nodes - nodes_ : kClockStride;
        next_look_ = nodes_ + std::min(kClockStride, left);
    }

    static constexpr std::uint64_t kClockStride = 1U << 10;
    static constexpr std::chrono::milliseconds kBetweenQuestions{100};
    StopCondition stop_;
    std::uint64_t nodes_ = 0;
    std::uint64_t next_look_ = 0;
    std::chrono::steady_clock::time_point last_question_ = std::chrono::steady_clock::now();
    bool stopped_ = false;
};

}  // namespace topoplace
