#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "partition/exact.hpp"
#include "partition/levels.hpp"
#include "partition/problem.hpp"
#include "partition/refine.hpp"
#include "partition/starts.hpp"
#include "topoplace/partition.hpp"
#include "topoplace/random.hpp"

namespace topoplace::partition {

struct BipartitionWorkspace::Impl {
    IntegerGraph graph;
    CoarsenMemory coarsen;
    StartMemory start;
    RefineMemory refine;
    std::vector<std::uint8_t> marked;  // of a coarser level's vertices
    std::vector<std::int8_t> side;     // while one is replaced by that of another level
    std::vector<std::int32_t> boundary;
};

BipartitionWorkspace::BipartitionWorkspace() : impl_(std::make_unique<Impl>()) {}
BipartitionWorkspace::~BipartitionWorkspace() = default;
BipartitionWorkspace::BipartitionWorkspace(BipartitionWorkspace&&) noexcept = default;
BipartitionWorkspace& BipartitionWorkspace::operator=(BipartitionWorkspace&&) noexcept = default;

namespace {

// Divisions kept while levels are small; half as many from a sixteenth of the graph on, one from a quarter
// on.
constexpr std::size_t kPool = 4;
// Cycles are run on levels of up to this part of the graph, where all of them cost less than the first
// descent.
constexpr std::size_t kCycleShare = 6;

// The coarser levels of a task; tasks[i] is that of levels[i].
struct Hierarchy {
    std::deque<Level> levels;
    std::deque<RefineTask> tasks;
};

class Search {
  public:
    Search(const BipartitionParams& params, double scale, std::int64_t total,
           BipartitionWorkspace::Impl& memory, BipartitionResult& result)
        : params_(params),
          buckets_allowed_(params.gains == GainStructure::automatic && scale == 1),
          scale_(scale),
          total_(total),
          memory_(memory),
          result_(result),
          counter_(params.deadline),
          random_(params.seed) {}

    Division run(RefineTask& task) {
        task.measure_gains(buckets_allowed_);
        Hierarchy hierarchy;
        build(hierarchy, task, {});
        std::vector<Division> pool = start(hierarchy.tasks.empty() ? task : hierarchy.tasks.back());
        for (std::size_t i = hierarchy.levels.size(); i-- > 0;) {
            const RefineTask& fine = i == 0 ? task : hierarchy.tasks[i - 1];
            for (Division& division : pool) descend(fine, hierarchy.levels[i], division);
            keep_best(pool, kept_at(fine, task));
            if (kCycleShare * fine.graph.size() <= task.graph.size()) cycle(fine, pool);
        }
        if (pool.front().score.excess > 0) try_packing(task, pool.front());
        result_.complete = !counter_.stopped();
        result_.start_cut = pool.front().start_cut < 0 ? std::numeric_limits<double>::infinity()
                                                       : static_cast<double>(pool.front().start_cut) / scale_;
        return std::move(pool.front());
    }

  private:
    // With `side`, levels on which it still is a side vector; it becomes that of the coarsest.
    void build(Hierarchy& hierarchy, const RefineTask& finest, std::vector<std::int8_t>* side) {
        // No cluster much heavier than the mean of the coarsest level, or it could not be balanced.
        const std::int64_t heaviest = std::max<std::int64_t>(2, total_ / params_.coarsest * 3 / 2);
        const RefineTask* task = &finest;
        while (task->graph.size() > static_cast<std::size_t>(params_.coarsest)) {
            Level next;
            if (!coarsen(next, *task, heaviest, side, random_, counter_, memory_.coarsen)) return;
            if (20 * next.graph.size() > 19 * task->graph.size()) return;
            const Level& level = hierarchy.levels.emplace_back(std::move(next));
            task = &hierarchy.tasks.emplace_back(level.task(finest.limits, buckets_allowed_));
            if (side != nullptr) *side = lifted(level, *side);
        }
    }

    // The best of the starts, refined, none of the same cut as another.
    std::vector<Division> start(const RefineTask& task) {
        // In the middle of what the limits allow side 0, so that refinement has room on both sides.
        const std::int64_t least = std::max<std::int64_t>(0, total_ - task.limits[1]);
        const std::int64_t share = (task.limits[0] + least + 1) / 2;
        std::vector<Division> pool;
        Division division;
        for (std::int32_t i = 0; i < params_.starts && (i == 0 || !counter_.stopped()); ++i) {
            Random own(random_.next());
            grow(task, share, own, memory_.start, division.side);
            improve_start(task, division);
            const auto same = [&](const Division& other) { return other.score == division.score; };
            if (std::none_of(pool.begin(), pool.end(), same)) pool.push_back(division);
            keep_best(pool, kPool);
        }
        return pool;
    }

    void improve_start(const RefineTask& task, Division& division) {
        measure(task, division);
        division.start_cut = task.is_balanced(division.held) ? division.score.cut : -1;
        refine(task, division, memory_.refine, counter_, result_);
    }

    static void keep_best(std::vector<Division>& pool, std::size_t most) {
        std::stable_sort(pool.begin(), pool.end(),
                         [](const Division& a, const Division& b) { return a.score < b.score; });
        if (pool.size() > most) pool.resize(most);
    }

    static std::size_t kept_at(const RefineTask& level, const RefineTask& finest) {
        const std::size_t size = level.graph.size();
        if (4 * size > finest.graph.size()) return 1;
        return 16 * size > finest.graph.size() ? kPool / 2 : kPool;
    }

    // Takes a division of `level` to the graph it was made of, and refines it there.
    void descend(const RefineTask& fine, const Level& level, Division& division) {
        memory_.marked.assign(level.graph.size(), 0);
        for (const std::int32_t v : division.boundary) memory_.marked[static_cast<std::size_t>(v)] = 1;
        memory_.side.resize(level.coarse_of.size());
        memory_.boundary.clear();
        for (std::size_t v = 0; v < level.coarse_of.size(); ++v) {
            const auto coarse = static_cast<std::size_t>(level.coarse_of[v]);
            memory_.side[v] = division.side[coarse];
            if (memory_.marked[coarse] != 0) memory_.boundary.push_back(static_cast<std::int32_t>(v));
        }
        division.side.swap(memory_.side);
        division.boundary.swap(memory_.boundary);
        division.score.excess = fine.excess(division.held, fine.slack);
        refine(fine, division, memory_.refine, counter_, result_);
    }

    // Each division once more through coarser levels of its own, whose clusters do not cross it.
    void cycle(const RefineTask& task, std::vector<Division>& pool) {
        for (std::int32_t i = 0; i < params_.cycles && !counter_.stopped(); ++i) {
            for (Division& division : pool) {
                Hierarchy hierarchy;
                build(hierarchy, task, &division.side);
                const RefineTask& coarsest = hierarchy.tasks.empty() ? task : hierarchy.tasks.back();
                measure(coarsest, division);
                refine(coarsest, division, memory_.refine, counter_, result_);
                for (std::size_t j = hierarchy.levels.size(); j-- > 0;)
                    descend(j == 0 ? task : hierarchy.tasks[j - 1], hierarchy.levels[j], division);
            }
        }
        keep_best(pool, kPool);
    }

    // Where nothing was balanced, one more start from the packing.
    void try_packing(const RefineTask& task, Division& best) {
        Division division;
        pack(task, memory_.start, division.side);
        improve_start(task, division);
        if (division.score < best.score) best = std::move(division);
    }

    const BipartitionParams& params_;
    bool buckets_allowed_;
    double scale_;
    std::int64_t total_;
    BipartitionWorkspace::Impl& memory_;
    BipartitionResult& result_;
    NodeCounter counter_;
    Random random_;
};

void search(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
            std::int64_t total, BipartitionWorkspace::Impl& memory, BipartitionResult& result) {
    const double scale = scale_of(graph);
    fill(memory.graph, graph, scale);
    RefineTask task{memory.graph, params.vertex_weights, params.fixed, limits};
    Division best = Search(params, scale, total, memory, result).run(task);
    if (best.score.excess > 0) return;
    result.side = std::move(best.side);
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
