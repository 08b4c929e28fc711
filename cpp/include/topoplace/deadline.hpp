// When a search has to stop: a point in time, a caller's wish, or never.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace topoplace {

struct Deadline {
    std::chrono::steady_clock::time_point when = std::chrono::steady_clock::time_point::max();
    // Asked a few times a second, from the thread that searches; true stops the search.
    bool (*interrupted)() = nullptr;

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
    explicit NodeCounter(const Deadline& deadline) : deadline_(deadline) {}

    // True when the search has to stop; stays true from then on.
    bool visit() {
        if ((++nodes_ & (kClockStride - 1)) == 0 && !stopped_) stopped_ = deadline_.passed() || interrupted();
        return stopped_;
    }
    bool stopped() const { return stopped_; }
    std::uint64_t nodes() const { return nodes_; }

  private:
    bool interrupted() const {
        return (nodes_ & (kInterruptStride - 1)) == 0 && deadline_.interrupted != nullptr &&
               deadline_.interrupted();
    }

    static constexpr std::uint64_t kClockStride = 1U << 10;
    static constexpr std::uint64_t kInterruptStride = 1U << 20;
    Deadline deadline_;
    std::uint64_t nodes_ = 0;
    bool stopped_ = false;
};

}  // namespace topoplace
