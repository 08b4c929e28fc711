#include "partition/starts.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace topoplace::partition {
namespace {

class Growth {
  public:
    Growth(const RefineTask& task, std::int64_t share, StartMemory& memory, std::vector<std::int8_t>& side)
        : task_(task), share_(share), memory_(memory), side_(side) {}

    void run(Random& random) {
        const std::size_t n = task_.graph.size();
        side_.assign(n, 1);
        memory_.reached.assign(n, 0);
        memory_.queue.clear();
        for (std::size_t v = 0; v < n; ++v) {
            if (task_.is_free(v)) continue;
            memory_.reached[v] = 1;
            if (task_.fixed[v] == 0) take(v);
        }
        const std::int32_t first = n == 0 ? 0 : random.below(static_cast<std::int32_t>(n));
        for (std::size_t i = 0; i < n && held_ < share_; ++i) {
            spread();
            reach((static_cast<std::size_t>(first) + i) % n);
        }
        spread();
    }

  private:
    void take(std::size_t v) {
        side_[v] = 0;
        held_ += task_.vertex_weight(v);
        memory_.queue.push_back(static_cast<std::int32_t>(v));
    }

    // A vertex too heavy for what is left of the side's room stays where it is.
    void reach(std::size_t v) {
        if (memory_.reached[v] != 0 || held_ >= share_) return;
        memory_.reached[v] = 1;
        if (held_ + task_.vertex_weight(v) <= task_.limits[0]) take(v);
    }

    void spread() {
        const IntegerGraph& graph = task_.graph;
        for (; next_ < memory_.queue.size() && held_ < share_; ++next_) {
            const auto v = static_cast<std::size_t>(memory_.queue[next_]);
            for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc)
                reach(static_cast<std::size_t>(graph.neighbors[arc]));
        }
    }

    const RefineTask& task_;
    std::int64_t share_;
    StartMemory& memory_;
    std::vector<std::int8_t>& side_;
    std::int64_t held_ = 0;
    std::size_t next_ = 0;  // in the queue
};

}  // namespace

void grow(const RefineTask& task, std::int64_t share, Random& random, StartMemory& memory,
          std::vector<std::int8_t>& side) {
    Growth(task, share, memory, side).run(random);
}

void pack(const RefineTask& task, StartMemory& memory, std::vector<std::int8_t>& side) {
    std::vector<std::int32_t>& order = memory.queue;
    order.resize(task.graph.size());
    std::iota(order.begin(), order.end(), 0);
    const auto weight = [&](std::int32_t v) { return task.vertex_weight(static_cast<std::size_t>(v)); };
    const auto is_free = [&](std::int32_t v) { return task.is_free(static_cast<std::size_t>(v)); };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        if (is_free(a) != is_free(b)) return is_free(b);
        return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
    });
    std::array<std::int64_t, 2> room = task.limits;
    side.resize(task.graph.size());
    for (const std::int32_t vertex : order) {
        const auto v = static_cast<std::size_t>(vertex);
        side[v] = is_free(vertex) ? std::int8_t{room[0] < room[1]} : task.fixed[v];
        room[static_cast<std::size_t>(side[v])] -= weight(vertex);
    }
}

}  // namespace topoplace::partition
