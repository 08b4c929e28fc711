#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "partition/exact.hpp"
#include "partition/levels.hpp"
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
            for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc)
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
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) degree += graph.weights[arc];
        task.largest_gain = std::max(task.largest_gain, degree);
    }
    const auto linear = static_cast<std::int64_t>(graph.size() + graph.neighbors.size() / 2);
    task.buckets = wanted == GainStructure::automatic && scale == 1 && task.largest_gain <= linear;
}

// The best division so far, in `memory.best`, from the coarsest level's starts to the graph itself.
class Refinement {
  public:
    Refinement(const BipartitionParams& params, double scale, BipartitionWorkspace::Impl& memory,
               BipartitionResult& result)
        : scale_(scale), memory_(memory), result_(result), counter_(params.deadline) {
        result_.start_cut = std::numeric_limits<double>::infinity();
        memory_.best.score = {std::numeric_limits<std::int64_t>::max(), 0};
    }

    void start(const RefineTask& task, std::int32_t starts, std::int64_t share, Random& random) {
        for (std::int32_t i = 0; i < starts && !counter_.stopped(); ++i) {
            Random own(random.next());
            Growth(task, share, memory_).run(own);
            improve(task);
        }
    }

    // Takes the best of a coarser level to this one's graph and refines it there.
    void project(const RefineTask& task, const std::vector<std::int32_t>& coarse_of) {
        Division& fine = memory_.division;
        fine.side.resize(coarse_of.size());
        for (std::size_t v = 0; v < coarse_of.size(); ++v)
            fine.side[v] = memory_.best.side[static_cast<std::size_t>(coarse_of[v])];
        std::swap(fine, memory_.best);
        measure(task, memory_.best);
        refine(task, memory_.best, memory_.refine, counter_, result_);
    }

    // Where nothing was balanced, one more start from the packing.
    void finish(const RefineTask& task) {
        if (memory_.best.score.excess > 0) {
            pack(task, memory_);
            improve(task);
        }
        result_.complete = !counter_.stopped();
    }

  private:
    void improve(const RefineTask& task) {
        measure(task, memory_.division);
        const Score start = memory_.division.score;
        refine(task, memory_.division, memory_.refine, counter_, result_);
        if (!(memory_.division.score < memory_.best.score)) return;
        std::swap(memory_.division, memory_.best);
        result_.start_cut = start.excess > 0 ? std::numeric_limits<double>::infinity()
                                             : static_cast<double>(start.cut) / scale_;
    }

    double scale_;
    BipartitionWorkspace::Impl& memory_;
    BipartitionResult& result_;
    NodeCounter counter_;
};

// The graph itself and its coarser levels; tasks[i + 1] is that of levels[i].
struct Hierarchy {
    std::deque<Level> levels;
    std::deque<RefineTask> tasks;

    void build(const BipartitionParams& params, double scale, std::int64_t total, Random& random) {
        // No pair much heavier than the mean of the coarsest level, or it could not be balanced.
        const std::int64_t heaviest = std::max<std::int64_t>(2, total / params.coarsest * 3 / 2);
        const auto coarsest = static_cast<std::size_t>(params.coarsest);
        choose_gains(tasks.back(), params.gains, scale);
        while (tasks.back().graph.size() > coarsest) {
            Level next = coarsen(tasks.back(), heaviest, random);
            if (20 * next.graph.size() > 19 * tasks.back().graph.size()) return;
            const Level& level = levels.emplace_back(std::move(next));
            tasks.push_back({level.graph, level.vertex_weights, level.fixed, tasks.back().limits});
            choose_gains(tasks.back(), params.gains, scale);
        }
    }
};

void search(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
            std::int64_t total, BipartitionWorkspace::Impl& memory, BipartitionResult& result) {
    const double scale = scale_of(graph);
    fill(memory.graph, graph, scale);
    Random random(params.seed);
    Hierarchy hierarchy;
    hierarchy.tasks.push_back({memory.graph, params.vertex_weights, params.fixed, limits});
    hierarchy.build(params, scale, total, random);
    // In the middle of what the limits allow side 0, so that refinement has room on both sides.
    const std::int64_t share = (limits[0] + std::max<std::int64_t>(0, total - limits[1]) + 1) / 2;
    Refinement refinement(params, scale, memory, result);
    refinement.start(hierarchy.tasks.back(), params.starts, share, random);
    for (std::size_t i = hierarchy.levels.size(); i-- > 0;)
        refinement.project(hierarchy.tasks[i], hierarchy.levels[i].coarse_of);
    refinement.finish(hierarchy.tasks.front());
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
