// Starts of the heuristic: breadth-first growth, all on one side, and packing by weight.
#include "partition/starts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "graph/index.hpp"

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
            reach((index(first) + i) % n);
        }
        spread();
        TOPOPLACE_ASSERT(std::is_permutation(memory_.queue.begin(), memory_.queue.end(), zeros().begin()));
    }

  private:
    std::vector<std::int32_t> zeros() const {
        std::vector<std::int32_t> found;
        for (std::size_t v = 0; v < side_.size(); ++v) {
            if (side_[v] == 0) found.push_back(static_cast<std::int32_t>(v));
        }
        TOPOPLACE_ASSERT(found.size() == memory_.queue.size());
        return found;
    }

    void take(std::size_t v) {
        TOPOPLACE_ASSERT(side_[v] == 1);
        side_[v] = 0;
        held_ += task_.vertex_weight(v);
        memory_.queue.push_back(static_cast<std::int32_t>(v));
    }

    // A vertex too heavy for what is left of the side's room stays where it is.
    void reach(std::size_t v) {
        if (memory_.reached[v] != 0 || held_ >= share_) return;
        TOPOPLACE_ASSERT(task_.is_free(v));
        memory_.reached[v] = 1;
        if (held_ + task_.vertex_weight(v) <= task_.limits[0]) take(v);
    }

    void spread() {
        const IntegerGraph& graph = task_.graph;
        for (; next_ < memory_.queue.size() && held_ < share_; ++next_) {
            const auto v = index(memory_.queue[next_]);
            for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc)
                reach(index(graph.neighbors[arc]));
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

namespace {

std::int8_t roomier(const RefineTask& task) { return std::int8_t{task.limits[0] < task.limits[1]}; }

}  // namespace

std::vector<std::int8_t> gathered(const RefineTask& task) {
    std::vector<std::int8_t> side(task.graph.size(), roomier(task));
    for (std::size_t v = 0; v < side.size(); ++v) {
        if (!task.is_free(v)) side[v] = task.fixed[v];
    }
    return side;
}

double shedding_cost(const RefineTask& task) {
    std::array<std::int64_t, 64> degrees{};  // of the vertices by the bits of their degree: the sums
    std::array<std::int64_t, 64> weights{};
    std::int64_t too_much = -task.limits[index(roomier(task))];
    for (std::size_t v = 0; v < task.graph.size(); ++v) {
        if (!task.is_free(v) && task.fixed[v] != roomier(task)) continue;
        too_much += task.vertex_weight(v);
        if (!task.is_free(v)) continue;
        const std::int64_t* arcs = task.graph.weights.get();
        const std::int64_t degree =
            std::accumulate(arcs + task.graph.begin(v), arcs + task.graph.end(v), std::int64_t{0});
        const auto bits = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(degree)));
        degrees[bits] += degree;
        weights[bits] += task.vertex_weight(v);
    }
    double cost = 0;
    for (std::size_t bits = 0; bits < weights.size() && too_much > 0; ++bits) {
        if (weights[bits] == 0) continue;
        const std::int64_t moved = std::min(too_much, weights[bits]);
        cost += static_cast<double>(degrees[bits]) *
                (static_cast<double>(moved) / static_cast<double>(weights[bits]));
        too_much -= moved;
    }
    return cost;
}

std::vector<std::int8_t> packed(const RefineTask& task) {
    std::vector<std::int32_t> order(task.graph.size());
    std::iota(order.begin(), order.end(), 0);
    const auto weight = [&](std::int32_t v) { return task.vertex_weight(index(v)); };
    const auto is_free = [&](std::int32_t v) { return task.is_free(index(v)); };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        if (is_free(a) != is_free(b)) return is_free(b);
        return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
    });
    std::array<std::int64_t, 2> room = task.limits;
    std::vector<std::int8_t> side(task.graph.size());
    for (const std::int32_t vertex : order) {
        const auto v = index(vertex);
        side[v] = is_free(vertex) ? std::int8_t{room[0] < room[1]} : task.fixed[v];
        room[index(side[v])] -= weight(vertex);
    }
    return side;
}

}  // namespace topoplace::partition
