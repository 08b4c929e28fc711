// When a search has to stop: a point in time, a caller's wish, or never.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace topoplace {

struct Deadline {
    std::chrono::steady_clock::time_point when = std::chrono::steady_clock::time_point::max();
    // Asked a few times a second, from the thread that searches; true stops the search.
    bool (*interrupted)() = nullptr;
    // Nodes after which the search stops: the same place on every machine.
    std::uint64_t max_nodes = std::numeric_limits<std::uint64_t>::max();

    static Deadline in(double seconds) {
        Deadline deadline;
        if (seconds < 1e9) {
            deadline.when = std::chrono::steady_clock::now() +
                            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                std::chrono::duration<double>(seconds));
        }
        return deadline;
    }
    bool passed() const {
        return when != std::chrono::steady_clock::time_point::max() &&
               std::chrono::steady_clock::now() >= when;
    }
};

// Counts the nodes of a search; looks at the clock and asks for interruption once every so many of them.
class NodeCounter {
  public:
    explicit NodeCounter(const Deadline& deadline) : deadline_(deadline) { schedule(); }

    // True when the search has to stop; stays true from then on. `nodes`: how many usual ones this one is
    // worth.
    bool visit(std::uint64_t nodes = 1) {
        nodes_ += nodes;
        if (nodes_ >= next_look_) look();
        return stopped_;
    }
    // After a step of more than some microseconds, whatever it counts for.
    bool look_at_clock() { return stopped_ = stopped_ || deadline_.passed() || interrupted(); }
    bool stopped() const { return stopped_; }
    std::uint64_t nodes() const { return nodes_; }

  private:
    void look() {
        stopped_ = look_at_clock() || nodes_ >= deadline_.max_nodes;
        schedule();
    }
    bool interrupted() {
        if (deadline_.interrupted == nullptr) return false;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_question_ < kBetweenQuestions) return false;
        last_question_ = now;
        return deadline_.interrupted();
    }
    void schedule() {
        const std::uint64_t left = deadline_.max_nodes > nodes_ ? deadline_.max_nodes - nodes_ : kClockStride;
        next_look_ = nodes_ + std::min(kClockStride, left);
    }

    static constexpr std::uint64_t kClockStride = 1U << 10;
    static constexpr std::chrono::milliseconds kBetweenQuestions{100};
    Deadline deadline_;
    std::uint64_t nodes_ = 0;
    std::uint64_t next_look_ = 0;
    std::chrono::steady_clock::time_point last_question_ = std::chrono::steady_clock::now();
    bool stopped_ = false;
};

}  // namespace topoplace
