#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "partition/exact.hpp"
#include "partition/problem.hpp"
#include "partition/refine.hpp"
#include "topoplace/partition.hpp"
#include "topoplace/random.hpp"

namespace topoplace::partition {

struct BipartitionWorkspace::Impl {
    IntegerGraph graph;
    RefineMemory refine;
    Division division;
    Division best;
    std::vector<std::int32_t> queue;    // of the growing start
    std::vector<std::uint8_t> reached;  // by it
};

BipartitionWorkspace::BipartitionWorkspace() : impl_(std::make_unique<Impl>()) {}
BipartitionWorkspace::~BipartitionWorkspace() = default;
BipartitionWorkspace::BipartitionWorkspace(BipartitionWorkspace&&) noexcept = default;
BipartitionWorkspace& BipartitionWorkspace::operator=(BipartitionWorkspace&&) noexcept = default;

namespace {

// Grows side 0 breadth first from the vertices fixed to it, then from random ones, until it holds its share.
class Growth {
  public:
    Growth(const RefineTask& task, std::int64_t share, BipartitionWorkspace::Impl& memory)
        : task_(task), share_(share), memory_(memory) {}

    void run(Random& random) {
        const std::size_t n = task_.graph.size();
        memory_.division.side.assign(n, 1);
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
        memory_.division.side[v] = 0;
        held_ += task_.vertex_weight(v);
        memory_.queue.push_back(static_cast<std::int32_t>(v));
    }

    // A vertex too heavy for what is left of the share stays where it is.
    void reach(std::size_t v) {
        if (memory_.reached[v] != 0 || held_ >= share_) return;
        memory_.reached[v] = 1;
        if (held_ + task_.vertex_weight(v) <= task_.limits[0]) take(v);
    }

    void spread() {
        const IntegerGraph& graph = task_.graph;
        for (; next_ < memory_.queue.size() && held_ < share_; ++next_) {
            const auto v = static_cast<std::size_t>(memory_.queue[next_]);
            for (auto arc = static_cast<std::size_t>(graph.offsets[v]);
                 arc < static_cast<std::size_t>(graph.offsets[v + 1]); ++arc)
                reach(static_cast<std::size_t>(graph.neighbors[arc]));
        }
    }

    const RefineTask& task_;
    std::int64_t share_;
    BipartitionWorkspace::Impl& memory_;
    std::int64_t held_ = 0;
    std::size_t next_ = 0;  // in the queue
};

// Heaviest first, each to the side with more room: the start for weights that growing does not balance.
void pack(const RefineTask& task, BipartitionWorkspace::Impl& memory) {
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
    memory.division.side.resize(task.graph.size());
    for (const std::int32_t vertex : order) {
        const auto v = static_cast<std::size_t>(vertex);
        const std::int8_t side = is_free(vertex) ? std::int8_t{room[0] < room[1]} : task.fixed[v];
        memory.division.side[v] = side;
        room[static_cast<std::size_t>(side)] -= weight(vertex);
    }
}

// The largest weighted degree, and whether buckets serve: clearing one for each gain stays linear.
void choose_gains(RefineTask& task, GainStructure wanted, double scale) {
    const IntegerGraph& graph = task.graph;
    for (std::size_t v = 0; v < graph.size(); ++v) {
        std::int64_t degree = 0;
        for (auto arc = static_cast<std::size_t>(graph.offsets[v]);
             arc < static_cast<std::size_t>(graph.offsets[v + 1]); ++arc)
            degree += graph.weights[arc];
        task.largest_gain = std::max(task.largest_gain, degree);
    }
    const auto linear = static_cast<std::int64_t>(graph.size() + graph.neighbors.size() / 2);
    task.buckets = wanted == GainStructure::automatic && scale == 1 && task.largest_gain <= linear;
}

// The best of all starts, in `memory.best`; where none is balanced, one more from the packing.
class Starts {
  public:
    Starts(const RefineTask& task, const BipartitionParams& params, double scale,
           BipartitionWorkspace::Impl& memory, BipartitionResult& result)
        : task_(task), scale_(scale), memory_(memory), result_(result), counter_(params.deadline) {
        result_.start_cut = std::numeric_limits<double>::infinity();
        memory_.best.score = {std::numeric_limits<std::int64_t>::max(), 0};
    }

    void run(std::int32_t starts, std::uint64_t seed, std::int64_t share) {
        Random random(seed);
        for (std::int32_t start = 0; start < starts && !counter_.stopped(); ++start) {
            Random own(random.next());
            Growth(task_, share, memory_).run(own);
            improve();
        }
        if (memory_.best.score.excess > 0) {
            pack(task_, memory_);
            improve();
        }
        result_.complete = !counter_.stopped();
    }

  private:
    void improve() {
        measure(task_, memory_.division);
        const Score start = memory_.division.score;
        refine(task_, memory_.division, memory_.refine, counter_, result_);
        if (!(memory_.division.score < memory_.best.score)) return;
        std::swap(memory_.division, memory_.best);
        result_.start_cut = start.excess > 0 ? std::numeric_limits<double>::infinity()
                                             : static_cast<double>(start.cut) / scale_;
    }

    const RefineTask& task_;
    double scale_;
    BipartitionWorkspace::Impl& memory_;
    BipartitionResult& result_;
    NodeCounter counter_;
};

void search(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
            std::int64_t total, BipartitionWorkspace::Impl& memory, BipartitionResult& result) {
    const double scale = scale_of(graph);
    fill(memory.graph, graph, scale);
    RefineTask task{memory.graph, params.vertex_weights, params.fixed, limits};
    choose_gains(task, params.gains, scale);
    // In the middle of what the limits allow side 0, so that refinement has room on both sides.
    const std::int64_t share = (limits[0] + std::max<std::int64_t>(0, total - limits[1]) + 1) / 2;
    Starts(task, params, scale, memory, result).run(params.starts, params.seed, share);
    if (memory.best.score.excess > 0) return;
    result.side = memory.best.side;
    result.status = BipartitionStatus::feasible;
}

}  // namespace

BipartitionResult bipartition(const Graph& graph, const BipartitionParams& params,
                              BipartitionWorkspace* workspace) {
    check(graph, params);
    BipartitionResult result;
    const std::int64_t total = total_weight(graph, params);
    const std::array<std::int64_t, 2> limits = limits_of(params, total);
    if (graph.num_vertices() <= params.exact_up_to) {
        result.start_cut = std::numeric_limits<double>::infinity();
        prove(graph, params, limits, result);
    } else if (workspace != nullptr) {
        search(graph, params, limits, total, workspace->impl(), result);
    } else {
        search(graph, params, limits, total, BipartitionWorkspace().impl(), result);
    }
    if (!result.side.empty()) result.cut = cut_of(graph, result.side);
    return result;
}

}  // namespace topoplace::partition
