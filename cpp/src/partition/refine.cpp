#include "partition/refine.hpp"

#include <algorithm>
#include <cassert>

namespace topoplace::partition {
namespace {

std::size_t at(std::int32_t vertex) { return static_cast<std::size_t>(vertex); }

std::int64_t measured_cut(const IntegerGraph& graph, std::span<const std::int8_t> side) {
    std::int64_t twice = 0;
    for (std::size_t v = 0; v < graph.size(); ++v) {
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            if (side[v] != side[at(graph.neighbors[arc])]) twice += graph.weights[arc];
        }
    }
    return twice / 2;
}

// One pass. Queue s holds the free vertices of side s.
template <class Queue>
class Pass {
  public:
    Pass(const RefineTask& task, Division& division, RefineMemory& memory, std::array<Queue, 2>& queues)
        : task_(task), division_(division), memory_(memory), queues_(queues) {}

    // Whether the division is better than it was.
    bool run(NodeCounter& counter, BipartitionResult& result) {
        prepare();
        const Score before = division_.score;
        Score best = before;
        std::size_t kept = 0;
        for (std::int32_t vertex = choose(); vertex != Queue::kNone && !counter.visit(); vertex = choose()) {
            move(vertex);
            if (division_.score < best) {
                best = division_.score;
                kept = memory_.moved.size();
            }
        }
        ++result.passes;
        result.moves += memory_.moved.size();
        result.rollbacks += memory_.moved.size() - kept;
        roll_back(kept);
        division_.score = best;
        assert(measured_cut(task_.graph, division_.side) == division_.score.cut);
        return best < before;
    }

  private:
    void prepare() {
        const std::size_t n = task_.graph.size();
        memory_.gains.resize(n);
        memory_.locked.resize(n);
        memory_.moved.clear();
        for (Queue& queue : queues_) queue.reset(n, task_.largest_gain);
        for (std::size_t v = 0; v < n; ++v) {
            memory_.gains[v] = gain(v);
            memory_.locked[v] = task_.is_free(v) ? 0 : 1;
            if (memory_.locked[v] == 0)
                queues_[division_.side[v] == 0 ? 0 : 1].append(static_cast<std::int32_t>(v),
                                                               memory_.gains[v]);
        }
        for (Queue& queue : queues_) queue.arrange();
    }

    std::int64_t gain(std::size_t v) const {
        const IntegerGraph& graph = task_.graph;
        std::int64_t sum = 0;
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            const bool crosses = division_.side[v] != division_.side[at(graph.neighbors[arc])];
            sum += crosses ? graph.weights[arc] : -graph.weights[arc];
        }
        return sum;
    }

    // The vertex to move: off an overloaded side if one is, else the larger gain; of equal gains the one from
    // the side that has less room left. kNone where no vertex may.
    std::int32_t choose() {
        const std::array<std::int64_t, 2> room{task_.limits[0] - division_.held[0],
                                               task_.limits[1] - division_.held[1]};
        if (room[0] < 0) return queues_[0].top();
        if (room[1] < 0) return queues_[1].top();
        const std::int32_t zero = queues_[0].top();
        const std::int32_t one = queues_[1].top();
        if (zero == Queue::kNone || one == Queue::kNone) return zero == Queue::kNone ? one : zero;
        const std::int64_t difference = memory_.gains[at(zero)] - memory_.gains[at(one)];
        if (difference != 0) return difference > 0 ? zero : one;
        return room[0] <= room[1] ? zero : one;
    }

    void move(std::int32_t vertex) {
        const IntegerGraph& graph = task_.graph;
        const std::int8_t from = division_.side[at(vertex)];
        queues_[static_cast<std::size_t>(from)].remove(vertex);
        memory_.locked[at(vertex)] = 1;
        memory_.moved.push_back(vertex);
        division_.score.cut -= memory_.gains[at(vertex)];
        flip(vertex);
        division_.score.excess = task_.excess(division_.held);
        for (std::size_t arc = graph.begin(at(vertex)); arc < graph.end(at(vertex)); ++arc) {
            const std::int32_t other = graph.neighbors[arc];
            if (memory_.locked[at(other)] != 0) continue;
            const std::int8_t side = division_.side[at(other)];
            memory_.gains[at(other)] += side == from ? 2 * graph.weights[arc] : -2 * graph.weights[arc];
            queues_[static_cast<std::size_t>(side)].change(other, memory_.gains[at(other)]);
        }
    }

    void flip(std::int32_t vertex) {
        std::int8_t& side = division_.side[at(vertex)];
        division_.held[static_cast<std::size_t>(side)] -= task_.vertex_weight(at(vertex));
        side = static_cast<std::int8_t>(1 - side);
        division_.held[static_cast<std::size_t>(side)] += task_.vertex_weight(at(vertex));
    }

    void roll_back(std::size_t kept) {
        for (std::size_t i = memory_.moved.size(); i-- > kept;) flip(memory_.moved[i]);
    }

    const RefineTask& task_;
    Division& division_;
    RefineMemory& memory_;
    std::array<Queue, 2>& queues_;
};

template <class Queue>
void refine_with(std::array<Queue, 2>& queues, const RefineTask& task, Division& division,
                 RefineMemory& memory, NodeCounter& counter, BipartitionResult& result) {
    while (!counter.stopped() && Pass<Queue>(task, division, memory, queues).run(counter, result)) {
    }
}

}  // namespace

void measure(const RefineTask& task, Division& division) {
    division.held = {};
    for (std::size_t v = 0; v < task.graph.size(); ++v)
        division.held[static_cast<std::size_t>(division.side[v])] += task.vertex_weight(v);
    division.score.excess = task.excess(division.held);
    division.score.cut = measured_cut(task.graph, division.side);
}

void refine(const RefineTask& task, Division& division, RefineMemory& memory, NodeCounter& counter,
            BipartitionResult& result) {
    if (task.buckets) {
        refine_with(memory.buckets, task, division, memory, counter, result);
    } else {
        refine_with(memory.heaps, task, division, memory, counter, result);
    }
}

}  // namespace topoplace::partition
