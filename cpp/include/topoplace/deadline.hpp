// When a search has to stop: a point in time, a caller's wish, or never.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace topoplace {

struct Deadline {
    std::chrono::steady_clock::time_point when = std::chrono::steady_clock::time_point::max();
    // Asked now and then, from the thread that searches; true stops the search.
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
        if (interrupted != nullptr && interrupted()) return true;
        return when != std::chrono::steady_clock::time_point::max() && std::chrono::steady_clock::now() >= when;
    }
};

// Counts the nodes of a search and looks at the clock once every kStride of them.
class NodeCounter {
  public:
    explicit NodeCounter(const Deadline& deadline) : deadline_(deadline) {}

    // True when the search has to stop; stays true from then on.
    bool visit() {
        if ((++nodes_ & (kStride - 1)) == 0 && !stopped_) stopped_ = deadline_.passed();
        return stopped_;
    }
    void add(std::uint64_t nodes) { nodes_ += nodes; }
    bool stopped() const { return stopped_; }
    std::uint64_t nodes() const { return nodes_; }

  private:
    static constexpr std::uint64_t kStride = 1024;
    Deadline deadline_;
    std::uint64_t nodes_ = 0;
    bool stopped_ = false;
};

}  // namespace topoplace
