#include "partition/levels.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace topoplace::partition {
namespace {

constexpr std::int32_t kNone = -1;

std::size_t at(std::int32_t v) { return static_cast<std::size_t>(v); }

// In random order, but never far from where they were, so that memory is read in order.
void shuffle(std::vector<std::int32_t>& order, Random& random) {
    constexpr std::size_t kBlock = 1024;
    const std::size_t n = order.size();
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t size = std::min(kBlock, n - begin);
        for (std::size_t i = size; i > 1; --i)
            std::swap(order[begin + i - 1], order[begin + at(random.below(static_cast<std::int32_t>(i)))]);
    }
}

class Clustering {
  public:
    Clustering(const RefineTask& task, std::int64_t heaviest, const std::vector<std::int8_t>* side,
               Level& level, CoarsenMemory& memory)
        : task_(task), heaviest_(heaviest), side_(side), cluster_(level.coarse_of), weight_(memory.weight) {
        cluster_.assign(task.graph.size(), kNone);
        weight_.clear();
    }

    // False where the deadline passed before all vertices were asked.
    bool run(const std::vector<std::int32_t>& order, NodeCounter& counter) {
        for (const std::int32_t v : order) {
            if (counter.visit()) return false;
            if (cluster_[at(v)] != kNone) continue;
            const std::int32_t other = choose(at(v));
            if (other == kNone) {
                open(v);
                continue;
            }
            if (cluster_[at(other)] == kNone) open(other);
            cluster_[at(v)] = cluster_[at(other)];
            weight_[at(cluster_[at(v)])] += task_.vertex_weight(at(v));
        }
        return true;
    }

  private:
    void open(std::int32_t v) {
        cluster_[at(v)] = static_cast<std::int32_t>(weight_.size());
        weight_.push_back(task_.vertex_weight(at(v)));
    }

    bool may_join(std::size_t v, std::size_t other) const {
        return (task_.fixed.empty() || task_.fixed[v] == task_.fixed[other]) &&
               (side_ == nullptr || (*side_)[v] == (*side_)[other]);
    }

    std::int32_t choose(std::size_t v) const {
        const IntegerGraph& graph = task_.graph;
        const std::int64_t own = task_.vertex_weight(v);
        std::int32_t best = kNone;
        double rating = -1;
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            const std::size_t other = at(graph.neighbors[arc]);
            const std::int32_t cluster = cluster_[other];
            const std::int64_t held = cluster == kNone ? task_.vertex_weight(other) : weight_[at(cluster)];
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
    renamed.assign(clusters, kNone);
    level.vertex_weights.reserve(clusters);
    memory.end.assign(clusters + 1, 0);
    for (std::size_t v = 0; v < n; ++v) {
        std::int32_t& name = renamed[at(level.coarse_of[v])];
        if (name == kNone) {
            name = static_cast<std::int32_t>(level.vertex_weights.size());
            level.vertex_weights.push_back(memory.weight[at(level.coarse_of[v])]);
            if (!task.fixed.empty()) level.fixed.push_back(task.fixed[v]);
        }
        level.coarse_of[v] = name;
        ++memory.end[at(name)];
    }
    std::int32_t sum = 0;
    for (std::int32_t& end : memory.end) sum += std::exchange(end, sum);
    memory.members.resize(n);
    for (std::size_t v = 0; v < n; ++v)
        memory.members[at(memory.end[at(level.coarse_of[v])]++)] = static_cast<std::int32_t>(v);
}

// Adds the edges of one fine vertex to the last row, summing those that fall together. Returns its new end.
std::int64_t add_row(Level& level, const IntegerGraph& fine, std::size_t v, std::int64_t start,
                     std::int64_t end, std::vector<std::int64_t>& place) {
    IntegerGraph& graph = level.graph;
    const std::int32_t own = level.coarse_of[v];
    for (std::size_t arc = fine.begin(v); arc < fine.end(v); ++arc) {
        const std::int32_t to = level.coarse_of[at(fine.neighbors[arc])];
        if (to == own) continue;
        std::int64_t& where = place[at(to)];
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

void contract(Level& level, const IntegerGraph& fine, CoarsenMemory& memory) {
    const std::size_t clusters = level.vertex_weights.size();
    IntegerGraph& graph = level.graph;
    graph.reserve(clusters, fine.num_arcs());
    memory.place.assign(clusters, -1);
    std::int64_t end = 0;
    std::int32_t member = 0;
    for (std::size_t cluster = 0; cluster < clusters; ++cluster) {
        const std::int64_t start = graph.offsets[cluster] = end;
        for (; member < memory.end[cluster]; ++member)
            end = add_row(level, fine, at(memory.members[at(member)]), start, end, memory.place);
    }
    graph.offsets[clusters] = end;
}

}  // namespace

RefineTask Level::task(const std::array<std::int64_t, 2>& limits, bool buckets_allowed) const {
    RefineTask task{graph, vertex_weights, fixed, limits};
    task.slack = *std::max_element(vertex_weights.begin(), vertex_weights.end());
    task.measure_gains(buckets_allowed);
    return task;
}

bool coarsen(Level& level, const RefineTask& task, std::int64_t heaviest,
             const std::vector<std::int8_t>* side, Random& random, NodeCounter& counter,
             CoarsenMemory& memory) {
    memory.order.resize(task.graph.size());
    std::iota(memory.order.begin(), memory.order.end(), 0);
    if (side != nullptr) shuffle(memory.order, random);
    if (!Clustering(task, heaviest, side, level, memory).run(memory.order, counter)) return false;
    number(level, task, memory);
    contract(level, task.graph, memory);
    return true;
}

std::vector<std::int8_t> lifted(const Level& level, const std::vector<std::int8_t>& side) {
    std::vector<std::int8_t> coarse(level.graph.size());
    for (std::size_t v = 0; v < side.size(); ++v) coarse[at(level.coarse_of[v])] = side[v];
    return coarse;
}

}  // namespace topoplace::partition
