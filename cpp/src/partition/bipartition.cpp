// Bipartition: the proof where the graph is small, else levels, starts, refinement and cycles.
//
// Up to `exact_up_to` vertices a branch and bound proves the minimum cut, and of all minimum cuts returns the
// lexicographically smallest side vector. Vertices are placed in a fixed order, most strongly tied to those
// placed before first; what each open vertex costs on its cheaper side bounds from below; where the numbers
// of vertices on both sides are given, the smallest weight of all pairs is taken off every pair first, for it
// crosses the same number of times whatever the sides. Worst case 2^n nodes.
//
// Above that, coarser levels are made until `coarsest` vertices are left: each vertex joins a neighbor, or
// the cluster a neighbor is in, along an edge that is heavy for what the cluster weighs. At the coarsest,
// several seeded starts are grown breadth first; the best are carried back level by level: four while levels
// are small, one at the end. A level of up to a sixth of the graph is made coarser again, in clusters that
// keep the sides apart, and what was found refined again from there (`cycles` times; all cycles of one round
// cost about half of making the levels). A coarse vertex may be too heavy for the balance: on coarse levels a
// side may hold one vertex too many, where the start was not balanced without.
//
// Wherever a division is refined, Fiduccia-Mattheyses passes move one vertex at a time, each at most once a
// pass, always the largest gain the balance allows (one vertex too many on a side is allowed for a moment),
// and return to the best balanced state met. Only vertices at the boundary are asked, and those that come to
// it. A pass ends after a number of moves that led nowhere; pass follows pass until one gains nothing. A pass
// takes time linear in the edges of what it moves with buckets, with a heap a logarithm more; buckets serve
// where the weights are integers and no vertex's weighted degree exceeds the number of vertices and edges. So
// a run takes the time of making the levels, which is linear in the edges as long as levels shrink by a
// constant. What a level costs is counted in edges as much as in vertices, for levels of random graphs and of
// graphs with hubs lose hardly an edge.
//
// Hubs and what hangs on them become one cluster, but the best sides may be a dense core and the loose ends
// around it. Where the degrees promise that, one more division is refined at the finest level, from all
// vertices on one side: it moves off the loosest until both sides are balanced. Isolated vertices are set
// aside first and fill the sides in the end, so that these may differ in all else.
//
// References: Fiduccia and Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982;
// Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J.
// Sci. Comput. 20 (1998); Holtgrewe, Sanders and Schulz, "Engineering a scalable high quality graph
// partitioner", IPDPS 2010, for what makes an edge heavy; Walshaw, "Multilevel refinement for combinatorial
// optimisation problems", Annals of Operations Research 131 (2004), for cycles; Land and Doig, Econometrica
// 28 (1960), for branch and bound.
#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "graph/index.hpp"
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

// A gathered start is refined where shedding costs less than this many times the cut: neighbors that move
// together cost less.
constexpr double kPromising = 1.5;

// Both in vertices and in edges: levels of random graphs lose vertices, but hardly an edge.
bool is_within(const RefineTask& level, const RefineTask& finest, std::size_t share) {
    return share * level.graph.size() <= finest.graph.size() &&
           share * level.graph.num_arcs() <= finest.graph.num_arcs();
}

// The coarser levels of a task; tasks[i] is that of levels[i].
struct Hierarchy {
    std::deque<Level> levels;
    std::deque<RefineTask> tasks;
};

class Search {
  public:
    Search(const BipartitionParams& params, double scale, std::int64_t total,
           BipartitionWorkspace::Impl& memory, WorkMeter& meter, BipartitionResult& result)
        : params_(params),
          buckets_allowed_(params.gains == GainStructure::automatic && scale == 1),
          scale_(scale),
          total_(total),
          memory_(memory),
          result_(result),
          meter_(meter),
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
            if (is_within(fine, task, kCycleShare)) cycle(fine, pool);
        }
        TOPOPLACE_ASSERT(pool.size() == 1 || hierarchy.levels.empty());
        Division& best = pool.front();
        if (!meter_.stopped() && shedding_cost(task) < kPromising * static_cast<double>(best.score.cut))
            challenge(best, task, gathered(task));
        if (best.score.excess > 0) challenge(best, task, packed(task));
        result_.complete = !meter_.stopped();
        result_.start_cut = best.start_cut < 0 ? std::numeric_limits<double>::infinity()
                                               : static_cast<double>(best.start_cut) / scale_;
        return std::move(best);
    }

  private:
    // With `side`, levels on which it still is a side vector; it becomes that of the coarsest.
    void build(Hierarchy& hierarchy, const RefineTask& finest, std::vector<std::int8_t>* side) {
        // No cluster much heavier than the mean of the coarsest level, or it could not be balanced.
        const std::int64_t heaviest = std::max<std::int64_t>(2, total_ / params_.coarsest * 3 / 2);
        const RefineTask* task = &finest;
        while (task->graph.size() > index(params_.coarsest)) {
            Level next;
            if (!coarsen(next, *task, heaviest, side, random_, meter_, memory_.coarsen)) return;
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
        for (std::int32_t i = 0; i < params_.starts && (i == 0 || !meter_.stopped()); ++i) {
            Random own(random_.next());
            grow(task, share, own, memory_.start, division.side);
            if (meter_.look_at_clock() && i > 0) break;
            improve_start(task, division);
            const auto same = [&](const Division& other) { return other.score == division.score; };
            if (std::none_of(pool.begin(), pool.end(), same)) pool.push_back(division);
            keep_best(pool, kPool);
        }
        TOPOPLACE_ASSERT(!pool.empty());
        return pool;
    }

    void improve_start(const RefineTask& task, Division& division) {
        if (meter_.stopped()) return weigh(task, division);
        measure(task, division);
        division.start_cut = task.is_balanced(division.held) ? division.score.cut : -1;
        refine(task, division, memory_.refine, meter_, result_);
    }

    static void keep_best(std::vector<Division>& pool, std::size_t most) {
        std::stable_sort(pool.begin(), pool.end(),
                         [](const Division& a, const Division& b) { return a.score < b.score; });
        if (pool.size() > most) pool.resize(most);
    }

    static std::size_t kept_at(const RefineTask& level, const RefineTask& finest) {
        if (!is_within(level, finest, 4)) return 1;
        return is_within(level, finest, 16) ? kPool : kPool / 2;
    }

    // Takes a division of `level` to the graph it was made of, and refines it there.
    void descend(const RefineTask& fine, const Level& level, Division& division) {
        memory_.marked.assign(level.graph.size(), 0);
        for (const std::int32_t v : division.boundary) memory_.marked[index(v)] = 1;
        memory_.side.resize(level.coarse_of.size());
        memory_.boundary.clear();
        for (std::size_t v = 0; v < level.coarse_of.size(); ++v) {
            const auto coarse = index(level.coarse_of[v]);
            memory_.side[v] = division.side[coarse];
            if (memory_.marked[coarse] != 0) memory_.boundary.push_back(static_cast<std::int32_t>(v));
        }
        division.side.swap(memory_.side);
        division.boundary.swap(memory_.boundary);
        TOPOPLACE_ASSERT(division.side.size() == fine.graph.size());
        division.score.excess = fine.excess(division.held, fine.slack);
        refine(fine, division, memory_.refine, meter_, result_);
    }

    // Each division once more through its own coarser levels, whose clusters do not cross it.
    void cycle(const RefineTask& task, std::vector<Division>& pool) {
        for (std::int32_t i = 0; i < params_.cycles && !meter_.stopped(); ++i) {
            for (Division& division : pool) {
                Hierarchy hierarchy;
                build(hierarchy, task, &division.side);
                const RefineTask& coarsest = hierarchy.tasks.empty() ? task : hierarchy.tasks.back();
                measure(coarsest, division);
                refine(coarsest, division, memory_.refine, meter_, result_);
                for (std::size_t j = hierarchy.levels.size(); j-- > 0;)
                    descend(j == 0 ? task : hierarchy.tasks[j - 1], hierarchy.levels[j], division);
            }
        }
        keep_best(pool, kPool);
    }

    // Refines one more division, and keeps it if it is better.
    void challenge(Division& best, const RefineTask& task, std::vector<std::int8_t> side) {
        Division other;
        other.side = std::move(side);
        improve_start(task, other);
        if (other.score < best.score) best = std::move(other);
    }

    const BipartitionParams& params_;
    bool buckets_allowed_;
    double scale_;
    std::int64_t total_;
    BipartitionWorkspace::Impl& memory_;
    BipartitionResult& result_;
    WorkMeter& meter_;
    Random random_;
};

[[maybe_unused]] bool is_found(BipartitionStatus status) {
    return status == BipartitionStatus::optimal || status == BipartitionStatus::feasible;
}

void search(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
            std::int64_t total, BipartitionWorkspace::Impl& memory, BipartitionResult& result) {
    WorkMeter meter(params.stop);
    const Core core = core_of(graph, params, limits, total);
    memory.graph.reserve(index(core.size), 2 * static_cast<std::size_t>(graph.num_edges()));
    RefineTask task{.graph = memory.graph,
                    .vertex_weights = core.number.empty() ? params.vertex_weights : core.vertex_weights,
                    .fixed = core.number.empty() ? params.fixed : core.fixed,
                    .limits = limits};
    Division best;
    const auto scale = scale_of(graph, meter);
    if (scale && fill(memory.graph, graph, core, *scale, meter)) {
        best = Search(params, *scale, core.weight, memory, meter, result).run(task);
    } else {  // stopped before all edges were read
        best.side = packed(task);
        weigh(task, best);
        result.start_cut = std::numeric_limits<double>::infinity();
        result.complete = false;
    }
    if (best.score.excess > 0) return;
    if (!core.number.empty()) {
        best.side = extended(core, params, {limits[0] - best.held[0], limits[1] - best.held[1]}, best.side);
    }
    result.side = std::move(best.side);
    result.status = BipartitionStatus::feasible;
}

}  // namespace

BipartitionResult bipartition(const Graph& graph, const BipartitionParams& params,
                              BipartitionWorkspace* workspace) {
    TOPOPLACE_ASSERT(!check(graph, params));
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
    TOPOPLACE_ASSERT(result.rollbacks <= result.moves);
    TOPOPLACE_ASSERT(result.side.empty() == (graph.num_vertices() == 0 || !is_found(result.status)));
    return result;
}

}  // namespace topoplace::partition
