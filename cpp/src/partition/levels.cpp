// Coarser levels: vertices join along heavy edges, clusters are numbered and the graph is contracted.
//
// Reference: Karypis and Kumar, SIAM J. Sci. Comput. 20 (1998); the rating of edges is that of Holtgrewe,
// Sanders and Schulz, IPDPS 2010.
#include "partition/levels.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/index.hpp"

namespace topoplace::partition {
namespace {

// In random order, but never far from where they were, so that memory is read in order.
void shuffle(std::vector<std::int32_t>& order, Random& random) {
    constexpr std::size_t kBlock = 1024;
    const std::size_t n = order.size();
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t size = std::min(kBlock, n - begin);
        for (std::size_t i = size; i > 1; --i)
            std::swap(order[begin + i - 1], order[begin + index(random.below(static_cast<std::int32_t>(i)))]);
    }
}

class Clustering {
  public:
    Clustering(const RefineTask& task, std::int64_t heaviest, const std::vector<std::int8_t>* side,
               Level& level, CoarsenMemory& memory)
        : task_(task), heaviest_(heaviest), side_(side), cluster_(level.coarse_of), weight_(memory.weight) {
        cluster_.assign(task.graph.size(), kAbsent);
        weight_.clear();
    }

    // False where the search was stopped before all vertices were asked.
    bool run(const std::vector<std::int32_t>& order, WorkMeter& meter) {
        for (const std::int32_t v : order) {
            if (meter.visit()) return false;
            if (cluster_[index(v)] != kAbsent) continue;
            if (meter.pass_time(16 * task_.graph.degree(index(v)))) return false;
            const std::int32_t other = choose(index(v));
            if (other == kAbsent) {
                open(v);
                continue;
            }
            TOPOPLACE_ASSERT(other != v && may_join(index(v), index(other)));
            if (cluster_[index(other)] == kAbsent) open(other);
            cluster_[index(v)] = cluster_[index(other)];
            weight_[index(cluster_[index(v)])] += task_.vertex_weight(index(v));
            TOPOPLACE_ASSERT(weight_[index(cluster_[index(v)])] <= heaviest_);
        }
        return true;
    }

  private:
    void open(std::int32_t v) {
        cluster_[index(v)] = static_cast<std::int32_t>(weight_.size());
        weight_.push_back(task_.vertex_weight(index(v)));
    }

    bool may_join(std::size_t v, std::size_t other) const {
        return (task_.fixed.empty() || task_.fixed[v] == task_.fixed[other]) &&
               (side_ == nullptr || (*side_)[v] == (*side_)[other]);
    }

    std::int32_t choose(std::size_t v) const {
        const IntegerGraph& graph = task_.graph;
        const std::int64_t own = task_.vertex_weight(v);
        std::int32_t best = kAbsent;
        double rating = -1;
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            const std::size_t other = index(graph.neighbors[arc]);
            const std::int32_t cluster = cluster_[other];
            const std::int64_t held =
                cluster == kAbsent ? task_.vertex_weight(other) : weight_[index(cluster)];
            if (held + own > heaviest_) continue;
            const auto weight = static_cast<double>(graph.weights[arc]);
            const double rated = weight * weight / static_cast<double>(std::max<std::int64_t>(1, held));
            if (rated <= rating || !may_join(v, other)) continue;
            best = graph.neighbors[arc];
            rating = rated;
        }
        return best;
    }

    const RefineTask& task_;
    std::int64_t heaviest_;
    const std::vector<std::int8_t>* side_;
    std::vector<std::int32_t>& cluster_;
    std::vector<std::int64_t>& weight_;
};

// Gives clusters numbers in the order of their first vertices, and lists their members.
void number(Level& level, const RefineTask& task, CoarsenMemory& memory) {
    const std::size_t n = level.coarse_of.size();
    const std::size_t clusters = memory.weight.size();
    std::vector<std::int32_t>& renamed = memory.order;
    renamed.assign(clusters, kAbsent);
    level.vertex_weights.reserve(clusters);
    memory.end.assign(clusters + 1, 0);
    for (std::size_t v = 0; v < n; ++v) {
        std::int32_t& name = renamed[index(level.coarse_of[v])];
        if (name == kAbsent) {
            name = static_cast<std::int32_t>(level.vertex_weights.size());
            level.vertex_weights.push_back(memory.weight[index(level.coarse_of[v])]);
            if (!task.fixed.empty()) level.fixed.push_back(task.fixed[v]);
        }
        level.coarse_of[v] = name;
        ++memory.end[index(name)];
    }
    std::int32_t sum = 0;
    for (std::int32_t& end : memory.end) sum += std::exchange(end, sum);
    TOPOPLACE_ASSERT(level.vertex_weights.size() == clusters && index(sum) == n);
    memory.members.resize(n);
    for (std::size_t v = 0; v < n; ++v)
        memory.members[index(memory.end[index(level.coarse_of[v])]++)] = static_cast<std::int32_t>(v);
}

// Adds the edges of one fine vertex to the last row, summing those that fall together. Returns its new end.
std::int64_t add_row(Level& level, const IntegerGraph& fine, std::size_t v, std::int64_t start,
                     std::int64_t end, std::vector<std::int64_t>& place) {
    IntegerGraph& graph = level.graph;
    const std::int32_t own = level.coarse_of[v];
    for (std::size_t arc = fine.begin(v); arc < fine.end(v); ++arc) {
        const std::int32_t to = level.coarse_of[index(fine.neighbors[arc])];
        if (to == own) continue;
        std::int64_t& where = place[index(to)];
        if (where < start) {
            where = end++;
            graph.neighbors[static_cast<std::size_t>(where)] = to;
            graph.weights[static_cast<std::size_t>(where)] = fine.weights[arc];
        } else {
            graph.weights[static_cast<std::size_t>(where)] += fine.weights[arc];
        }
    }
    return end;
}

// False where the search was stopped.
bool contract(Level& level, const IntegerGraph& fine, WorkMeter& meter, CoarsenMemory& memory) {
    const std::size_t clusters = level.vertex_weights.size();
    IntegerGraph& graph = level.graph;
    graph.reserve(clusters, fine.num_arcs());
    memory.place.assign(clusters, -1);
    std::int64_t end = 0;
    std::int32_t member = 0;
    for (std::size_t cluster = 0; cluster < clusters; ++cluster) {
        const std::int64_t start = graph.offsets[cluster] = end;
        for (; member < memory.end[cluster]; ++member) {
            const std::size_t v = index(memory.members[index(member)]);
            if (meter.pass_time(16 * fine.degree(v))) return false;
            end = add_row(level, fine, v, start, end, memory.place);
        }
    }
    graph.offsets[clusters] = end;
    TOPOPLACE_ASSERT(index(member) == memory.members.size() && graph.num_arcs() <= fine.num_arcs());
    TOPOPLACE_ASSERT(std::is_sorted(graph.offsets.begin(), graph.offsets.end()));
    return true;
}

// Clusters weigh what their members weigh, and hold none that is fixed otherwise than they are.
[[maybe_unused]] bool stands_for(const Level& level, const RefineTask& task) {
    std::vector<std::int64_t> weight(level.graph.size(), 0);
    for (std::size_t v = 0; v < level.coarse_of.size(); ++v) {
        const std::size_t cluster = index(level.coarse_of[v]);
        weight[cluster] += task.vertex_weight(v);
        if (!task.fixed.empty() && level.fixed[cluster] != task.fixed[v]) return false;
    }
    return weight == level.vertex_weights;
}

}  // namespace

RefineTask Level::task(const std::array<std::int64_t, 2>& limits, bool buckets_allowed) const {
    TOPOPLACE_ASSERT(!vertex_weights.empty() && vertex_weights.size() == graph.size());
    RefineTask task{.graph = graph, .vertex_weights = vertex_weights, .fixed = fixed, .limits = limits};
    task.slack = *std::max_element(vertex_weights.begin(), vertex_weights.end());
    task.measure_gains(buckets_allowed);
    return task;
}

bool coarsen(Level& level, const RefineTask& task, std::int64_t heaviest,
             const std::vector<std::int8_t>* side, Random& random, WorkMeter& meter, CoarsenMemory& memory) {
    memory.order.resize(task.graph.size());
    std::iota(memory.order.begin(), memory.order.end(), 0);
    if (side != nullptr) shuffle(memory.order, random);
    if (!Clustering(task, heaviest, side, level, memory).run(memory.order, meter)) return false;
    number(level, task, memory);
    if (!contract(level, task.graph, meter, memory)) return false;
    TOPOPLACE_ASSERT(stands_for(level, task));
    return true;
}

std::vector<std::int8_t> lifted(const Level& level, const std::vector<std::int8_t>& side) {
    std::vector<std::int8_t> coarse(level.graph.size());
    for (std::size_t v = 0; v < side.size(); ++v) coarse[index(level.coarse_of[v])] = side[v];
    TOPOPLACE_ASSERT(std::ranges::equal(side, level.coarse_of, {}, {},
                                        [&](std::int32_t cluster) { return coarse[index(cluster)]; }));
    return coarse;
}

}  // namespace topoplace::partition
