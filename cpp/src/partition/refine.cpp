// Fiduccia-Mattheyses passes: single moves by descending gain, taken back to the best state met.
//
// Reference: Fiduccia and Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982.
#include "partition/refine.hpp"

#include <algorithm>

#include "graph/index.hpp"

namespace topoplace::partition {
namespace {
// A pass ends after a quarter of the vertices, within these bounds, moved without a new best.
constexpr std::size_t kLeastPatience = 15;
constexpr std::size_t kMostPatience = 300;

[[maybe_unused]] std::int64_t measured_cut(const IntegerGraph& graph, std::span<const std::int8_t> side) {
    std::int64_t twice = 0;
    for (std::size_t v = 0; v < graph.size(); ++v) {
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            if (side[v] != side[index(graph.neighbors[arc])]) twice += graph.weights[arc];
        }
    }
    return twice / 2;
}

std::array<std::int64_t, 2> held_by(const RefineTask& task, std::span<const std::int8_t> side) {
    std::array<std::int64_t, 2> held{};
    for (std::size_t v = 0; v < side.size(); ++v) held[index(side[v])] += task.vertex_weight(v);
    return held;
}

enum State : std::uint8_t {
    kUnknown,  // far from the boundary: its gain is not kept
    kKnown,
    kQueued,
    kLocked,
};

// The passes over one division. Queue s holds free vertices of side s: those at the boundary, or all where a
// side holds too much.
template <GainQueue Queue>
class Refiner {
  public:
    Refiner(const RefineTask& task, Division& division, RefineMemory& memory, std::array<Queue, 2>& queues)
        : task_(task),
          division_(division),
          memory_(memory),
          queues_(queues),
          slack_(task.is_balanced(division.held) ? 0 : task.slack),
          patience_(std::clamp(task.graph.size() / 4, kLeastPatience, kMostPatience)) {
        const std::size_t n = task_.graph.size();
        memory_.gains.resize(n);
        memory_.external.resize(n);
        memory_.state.assign(n, kUnknown);
        memory_.known.clear();
        for (Queue& queue : queues_) queue.reset(n, task_.largest_gain);
        TOPOPLACE_ASSERT(measured_cut(task_.graph, division_.side) == division_.score.cut);
        TOPOPLACE_ASSERT(held_by(task_, division_.side) == division_.held);
    }

    void run(WorkMeter& meter, BipartitionResult& result) {
        for (const std::int32_t v : division_.boundary) {
            know(v);
            if (meter.pass_time(8 * task_.graph.degree(index(v)))) return;
        }
        while (!meter.stopped() && pass(meter, result)) {
        }
        division_.boundary.clear();
        for (const std::int32_t v : memory_.known) {
            if (memory_.external[index(v)] > 0) division_.boundary.push_back(v);
        }
        TOPOPLACE_ASSERT(boundary_is_complete());
    }

  private:
    // Kept incrementally, counted again.
    bool gains_are_right() const {
        const IntegerGraph& graph = task_.graph;
        return std::all_of(memory_.known.begin(), memory_.known.end(), [&](std::int32_t known) {
            const std::size_t v = index(known);
            std::int64_t external = 0;
            std::int64_t internal = 0;
            for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
                const bool crosses = division_.side[v] != division_.side[index(graph.neighbors[arc])];
                external += crosses ? graph.weights[arc] : 0;
                internal += crosses ? 0 : graph.weights[arc];
            }
            return memory_.external[v] == external && memory_.gains[v] == external - internal;
        });
    }

    // Every vertex with a neighbor on the other side is in it.
    bool boundary_is_complete() const {
        std::vector<bool> listed(task_.graph.size(), false);
        for (const std::int32_t v : division_.boundary) listed[index(v)] = true;
        for (std::size_t v = 0; v < listed.size(); ++v) {
            for (std::size_t arc = task_.graph.begin(v); arc < task_.graph.end(v); ++arc) {
                const std::size_t other = index(task_.graph.neighbors[arc]);
                const bool crosses =
                    division_.side[v] != division_.side[other] && task_.graph.weights[arc] > 0;
                if (crosses && !listed[v]) return false;
            }
        }
        return true;
    }

    // True if the division is better than it was.
    bool pass(WorkMeter& meter, BipartitionResult& result) {
        fill_queues();
        const Score before = division_.score;
        Score best = before;
        std::size_t kept = 0;
        TOPOPLACE_ASSERT(gains_are_right());
        for (std::int32_t vertex = choose(meter); vertex != kAbsent && !meter.visit();
             vertex = choose(meter)) {
            if (meter.pass_time(16 * task_.graph.degree(index(vertex)))) break;
            move(vertex);
            if (division_.score < best) {
                best = division_.score;
                kept = memory_.moved.size();
            } else if (memory_.moved.size() - kept > patience_) {
                break;
            }
        }
        ++result.passes;
        result.moves += memory_.moved.size();
        result.rollbacks += memory_.moved.size() - kept;
        roll_back(kept);
        division_.score = best;
        TOPOPLACE_ASSERT(measured_cut(task_.graph, division_.side) == division_.score.cut);
        TOPOPLACE_ASSERT(held_by(task_, division_.side) == division_.held);
        TOPOPLACE_ASSERT(task_.excess(division_.held, slack_) == division_.score.excess);
        TOPOPLACE_ASSERT(best <= before);
        return best < before;
    }

    void fill_queues() {
        memory_.moved.clear();
        for (const std::int32_t v : memory_.known) {
            if (memory_.external[index(v)] == 0 || !task_.is_free(index(v))) continue;
            memory_.state[index(v)] = kQueued;
            queue_of(v).append(v, memory_.gains[index(v)]);
        }
        for (Queue& queue : queues_) queue.arrange();
    }

    // The first of a side that holds too much. Where its boundary is used up, all of it is entered.
    std::int32_t first_of(std::size_t side, WorkMeter& meter) {
        if (queues_[side].top() == kAbsent) enter_all(side, meter);
        return queues_[side].top();
    }

    // Those whose move makes a neighbor's free come last: of equal gains, buckets yield what came last.
    void enter_all(std::size_t side, WorkMeter& meter) {
        for (std::size_t v = 0; v < task_.graph.size(); ++v) {
            const bool is_there = index(division_.side[v]) == side && task_.is_free(v);
            if (is_there && memory_.state[v] == kUnknown) know(static_cast<std::int32_t>(v));
            if (is_there && meter.pass_time(16 * task_.graph.degree(v))) return;
        }
        for (const bool frees : {false, true}) {
            for (std::size_t v = 0; v < task_.graph.size(); ++v) {
                if (index(division_.side[v]) != side || memory_.state[v] != kKnown || !task_.is_free(v))
                    continue;
                if (!frees && frees_neighbor(v)) continue;
                memory_.state[v] = kQueued;
                queues_[side].insert(static_cast<std::int32_t>(v), memory_.gains[v]);
            }
        }
    }

    // Whether moving the vertex lets a neighbor follow at no cost.
    bool frees_neighbor(std::size_t v) const {
        const IntegerGraph& graph = task_.graph;
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            const std::size_t other = index(graph.neighbors[arc]);
            if (division_.side[other] != division_.side[v] || !task_.is_free(other)) continue;
            TOPOPLACE_ASSERT(memory_.state[other] != kUnknown);
            if (memory_.state[other] != kLocked && memory_.gains[other] + 2 * graph.weights[arc] >= 0)
                return true;
        }
        return false;
    }

    Queue& queue_of(std::int32_t v) { return queues_[index(division_.side[index(v)])]; }

    void know(std::int32_t v) {
        TOPOPLACE_ASSERT(memory_.state[index(v)] == kUnknown);
        const IntegerGraph& graph = task_.graph;
        std::int64_t external = 0;
        std::int64_t internal = 0;
        for (std::size_t arc = graph.begin(index(v)); arc < graph.end(index(v)); ++arc) {
            if (division_.side[index(v)] != division_.side[index(graph.neighbors[arc])]) {
                external += graph.weights[arc];
            } else {
                internal += graph.weights[arc];
            }
        }
        memory_.external[index(v)] = external;
        memory_.gains[index(v)] = external - internal;
        memory_.state[index(v)] = kKnown;
        memory_.known.push_back(v);
    }

    // The vertex to move: off an overloaded side if one is, else the larger gain; of equal gains the one from
    // the side that has less room left. kAbsent where no vertex may.
    std::int32_t choose(WorkMeter& meter) {
        const std::array<std::int64_t, 2> room{task_.limits[0] + slack_ - division_.held[0],
                                               task_.limits[1] + slack_ - division_.held[1]};
        if (room[0] < 0) return first_of(0, meter);
        if (room[1] < 0) return first_of(1, meter);
        const std::int32_t zero = queues_[0].top();
        const std::int32_t one = queues_[1].top();
        if (zero == kAbsent || one == kAbsent) return zero == kAbsent ? one : zero;
        const std::int64_t difference = memory_.gains[index(zero)] - memory_.gains[index(one)];
        if (difference != 0) return difference > 0 ? zero : one;
        return room[0] <= room[1] ? zero : one;
    }

    void move(std::int32_t vertex) {
        TOPOPLACE_ASSERT(task_.is_free(index(vertex)) && memory_.state[index(vertex)] == kQueued);
        queue_of(vertex).remove(vertex);
        memory_.state[index(vertex)] = kLocked;
        memory_.moved.push_back(vertex);
        division_.score.cut -= memory_.gains[index(vertex)];
        flip(vertex);
        division_.score.excess = task_.excess(division_.held, slack_);
        const IntegerGraph& graph = task_.graph;
        for (std::size_t arc = graph.begin(index(vertex)); arc < graph.end(index(vertex)); ++arc)
            neighbor_moved(graph.neighbors[arc], division_.side[index(vertex)], graph.weights[arc]);
    }

    // A neighbor has moved to `side`: enters it in the gain of `v`, and `v` in a queue.
    void neighbor_moved(std::int32_t v, std::int8_t side, std::int64_t weight) {
        std::uint8_t& state = memory_.state[index(v)];
        if (state == kUnknown) {
            know(v);
        } else {
            update(v, side, weight);
        }
        if (state == kQueued) {
            queue_of(v).change(v, memory_.gains[index(v)]);
        } else if (state == kKnown && task_.is_free(index(v))) {
            state = kQueued;
            queue_of(v).insert(v, memory_.gains[index(v)]);
        }
    }

    void update(std::int32_t v, std::int8_t side, std::int64_t weight) {
        const std::int64_t change = division_.side[index(v)] == side ? -weight : weight;
        memory_.external[index(v)] += change;
        TOPOPLACE_ASSERT(memory_.external[index(v)] >= 0);
        memory_.gains[index(v)] += 2 * change;
    }

    void flip(std::int32_t vertex) {
        std::int8_t& side = division_.side[index(vertex)];
        division_.held[index(side)] -= task_.vertex_weight(index(vertex));
        TOPOPLACE_ASSERT(division_.held[index(side)] >= 0);
        side = static_cast<std::int8_t>(1 - side);
        division_.held[index(side)] += task_.vertex_weight(index(vertex));
        memory_.external[index(vertex)] -= memory_.gains[index(vertex)];
        memory_.gains[index(vertex)] = -memory_.gains[index(vertex)];
    }

    // Takes back all moves but the first `kept`, and empties the queues.
    void roll_back(std::size_t kept) {
        TOPOPLACE_ASSERT(kept <= memory_.moved.size());
        const IntegerGraph& graph = task_.graph;
        for (std::size_t i = memory_.moved.size(); i-- > kept;) {
            const std::int32_t vertex = memory_.moved[i];
            flip(vertex);
            for (std::size_t arc = graph.begin(index(vertex)); arc < graph.end(index(vertex)); ++arc)
                update(graph.neighbors[arc], division_.side[index(vertex)], graph.weights[arc]);
        }
        for (const std::int32_t v : memory_.known) memory_.state[index(v)] = kKnown;
        for (Queue& queue : queues_) queue.clear();
    }

    const RefineTask& task_;
    Division& division_;
    RefineMemory& memory_;
    std::array<Queue, 2>& queues_;
    std::int64_t slack_;
    std::size_t patience_;
};

}  // namespace

void RefineTask::measure_gains(bool buckets_allowed) {
    for (std::size_t v = 0; v < graph.size(); ++v) {
        std::int64_t degree = 0;
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) degree += graph.weights[arc];
        largest_gain = std::max(largest_gain, degree);
    }
    buckets =
        buckets_allowed && largest_gain <= static_cast<std::int64_t>(graph.size() + graph.num_arcs() / 2);
}

void weigh(const RefineTask& task, Division& division) {
    division.held = held_by(task, division.side);
    division.score.excess = task.excess(division.held, task.slack);
}

void measure(const RefineTask& task, Division& division) {
    const IntegerGraph& graph = task.graph;
    weigh(task, division);
    division.boundary.clear();
    std::int64_t twice = 0;
    for (std::size_t v = 0; v < graph.size(); ++v) {
        const std::int64_t before = twice;
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            if (division.side[v] != division.side[index(graph.neighbors[arc])]) twice += graph.weights[arc];
        }
        if (twice != before) division.boundary.push_back(static_cast<std::int32_t>(v));
    }
    TOPOPLACE_ASSERT(twice % 2 == 0);
    division.score.cut = twice / 2;
}

void refine(const RefineTask& task, Division& division, RefineMemory& memory, WorkMeter& meter,
            BipartitionResult& result) {
    if (meter.stopped()) return;
    if (task.buckets) {
        Refiner<BucketQueue>(task, division, memory, memory.buckets).run(meter, result);
    } else {
        Refiner<HeapQueue>(task, division, memory, memory.heaps).run(meter, result);
    }
}

}  // namespace topoplace::partition
