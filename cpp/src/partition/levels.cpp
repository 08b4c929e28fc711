#include "partition/levels.hpp"

#include <numeric>
#include <utility>

namespace topoplace::partition {
namespace {

constexpr std::int32_t kNone = -1;

std::vector<std::int32_t> shuffled(std::size_t n, Random& random) {
    std::vector<std::int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = n; i > 1; --i)
        std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int32_t>(i)))]);
    return order;
}

class Matching {
  public:
    Matching(const RefineTask& task, std::int64_t heaviest)
        : task_(task), heaviest_(heaviest), partner_(task.graph.size(), kNone) {}

    // The partner of each vertex; its own number where it has none.
    std::vector<std::int32_t> run(Random& random) {
        for (const std::int32_t v : shuffled(task_.graph.size(), random)) {
            if (partner_[at(v)] != kNone) continue;
            const std::int32_t other = choose(at(v));
            partner_[at(v)] = other == kNone ? v : other;
            if (other != kNone) partner_[at(other)] = v;
        }
        return std::move(partner_);
    }

  private:
    static std::size_t at(std::int32_t v) { return static_cast<std::size_t>(v); }

    bool may_join(std::size_t v, std::size_t other) const {
        return partner_[other] == kNone && (task_.fixed.empty() || task_.fixed[v] == task_.fixed[other]) &&
               task_.vertex_weight(v) + task_.vertex_weight(other) <= heaviest_;
    }

    std::int32_t choose(std::size_t v) const {
        const IntegerGraph& graph = task_.graph;
        std::int32_t best = kNone;
        std::int64_t edge = -1;
        std::int64_t weight = 0;
        for (std::size_t arc = graph.begin(v); arc < graph.end(v); ++arc) {
            const std::size_t other = at(graph.neighbors[arc]);
            const bool better = graph.weights[arc] > edge ||
                                (graph.weights[arc] == edge && task_.vertex_weight(other) < weight);
            if (!better || !may_join(v, other)) continue;
            best = graph.neighbors[arc];
            edge = graph.weights[arc];
            weight = task_.vertex_weight(other);
        }
        return best;
    }

    const RefineTask& task_;
    std::int64_t heaviest_;
    std::vector<std::int32_t> partner_;
};

// Gives pairs their numbers in the order of their first vertices.
void number(Level& level, const RefineTask& task, const std::vector<std::int32_t>& partner) {
    level.coarse_of.assign(partner.size(), kNone);
    for (std::size_t v = 0; v < partner.size(); ++v) {
        const auto other = static_cast<std::size_t>(partner[v]);
        if (other < v) {
            level.coarse_of[v] = level.coarse_of[other];
            level.vertex_weights[static_cast<std::size_t>(level.coarse_of[v])] += task.vertex_weight(v);
            continue;
        }
        level.coarse_of[v] = static_cast<std::int32_t>(level.vertex_weights.size());
        level.vertex_weights.push_back(task.vertex_weight(v));
        if (!task.fixed.empty()) level.fixed.push_back(task.fixed[v]);
    }
}

// Adds the edges of one fine vertex to the last row, summing those that fall together.
void add_row(Level& level, const IntegerGraph& fine, std::size_t v, std::vector<std::int64_t>& place) {
    IntegerGraph& graph = level.graph;
    const std::int64_t start = graph.offsets.back();
    for (std::size_t arc = fine.begin(v); arc < fine.end(v); ++arc) {
        const std::int32_t to = level.coarse_of[static_cast<std::size_t>(fine.neighbors[arc])];
        if (to == level.coarse_of[v]) continue;
        std::int64_t& where = place[static_cast<std::size_t>(to)];
        if (where < start) {
            where = static_cast<std::int64_t>(graph.neighbors.size());
            graph.neighbors.push_back(to);
            graph.weights.push_back(0);
        }
        graph.weights[static_cast<std::size_t>(where)] += fine.weights[arc];
    }
}

}  // namespace

Level coarsen(const RefineTask& task, std::int64_t heaviest, Random& random) {
    const std::vector<std::int32_t> partner = Matching(task, heaviest).run(random);
    Level level;
    number(level, task, partner);
    level.graph.offsets.assign(1, 0);
    std::vector<std::int64_t> place(level.vertex_weights.size(), -1);  // of each neighbor in the last row
    for (std::size_t v = 0; v < partner.size(); ++v) {
        const auto other = static_cast<std::size_t>(partner[v]);
        if (other < v) continue;
        add_row(level, task.graph, v, place);
        if (other != v) add_row(level, task.graph, other, place);
        level.graph.offsets.push_back(static_cast<std::int64_t>(level.graph.neighbors.size()));
    }
    return level;
}

}  // namespace topoplace::partition
