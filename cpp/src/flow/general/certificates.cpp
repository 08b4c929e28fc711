// What proves that there is no optimum: a cut no flow gets across, found by Dinic's maximum flow from all
// supplies to all demands at once, and a cycle that pays without end, found by Bellman and Ford's rounds.
//
// References: Dinic, Soviet Mathematics Doklady 11 (1970); Cherkassky and Goldberg, "Negative-cycle detection
// algorithms", Mathematical Programming 85 (1999).
#include <algorithm>

#include "flow/general/problem.hpp"

namespace topoplace::flow {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// Arc a of the problem is 2a forward and 2a + 1 backward.
class Dinic {
  public:
    Dinic(const Problem& problem, NodeCounter& counter);

    // Nodes reached from supplies that cannot be sent.
    std::vector<std::int32_t> cut();

  private:
    std::int32_t head(std::int32_t half) const {
        return half % 2 == 0 ? problem_.head[at(half / 2)] : problem_.tail[at(half / 2)];
    }
    bool layer();
    void send(std::int32_t source);
    void push(std::int32_t source, std::int32_t target);

    const Problem& problem_;
    NodeCounter& counter_;
    std::vector<std::int32_t> first_;
    std::vector<std::int32_t> halves_;  // by node, the arcs that leave it
    std::vector<std::int64_t> residual_;
    std::vector<std::int64_t> excess_;
    std::vector<std::int32_t> level_;
    std::vector<std::int32_t> current_;
    std::vector<std::int32_t> queue_;
    std::vector<std::int32_t> path_;
};

Dinic::Dinic(const Problem& problem, NodeCounter& counter)
    : problem_(problem),
      counter_(counter),
      first_(at(problem.num_nodes) + 1),
      halves_(2 * problem.tail.size()),
      residual_(2 * problem.tail.size()),
      excess_(problem.supply) {
    for (std::size_t a = 0; a < problem.tail.size(); ++a) {
        residual_[2 * a] = problem.capacity[a];
        ++first_[at(problem.tail[a])];
        ++first_[at(problem.head[a])];
    }
    std::int32_t sum = 0;
    for (std::int32_t& first : first_) first = sum += first;
    for (std::int32_t half = static_cast<std::int32_t>(halves_.size()); half-- > 0;)
        halves_[at(--first_[at(head(half ^ 1))])] = half;
}

bool Dinic::layer() {
    level_.assign(at(problem_.num_nodes), -1);
    queue_.clear();
    for (std::int32_t v = 0; v < problem_.num_nodes; ++v) {
        if (excess_[at(v)] <= 0) continue;
        level_[at(v)] = 0;
        queue_.push_back(v);
    }
    bool reached = false;
    for (std::size_t i = 0; i < queue_.size() && !counter_.visit(); ++i) {
        const std::int32_t v = queue_[i];
        reached = reached || excess_[at(v)] < 0;
        for (std::int32_t i_half = first_[at(v)]; i_half < first_[at(v) + 1]; ++i_half) {
            const std::int32_t half = halves_[at(i_half)];
            if (residual_[at(half)] == 0 || level_[at(head(half))] >= 0) continue;
            level_[at(head(half))] = level_[at(v)] + 1;
            queue_.push_back(head(half));
        }
    }
    return reached;
}

void Dinic::push(std::int32_t source, std::int32_t target) {
    std::int64_t units = std::min(excess_[at(source)], -excess_[at(target)]);
    for (const std::int32_t half : path_) units = std::min(units, residual_[at(half)]);
    for (const std::int32_t half : path_) {
        residual_[at(half)] -= units;
        residual_[at(half ^ 1)] += units;
    }
    excess_[at(source)] -= units;
    excess_[at(target)] += units;
}

void Dinic::send(std::int32_t source) {
    path_.clear();
    std::int32_t v = source;
    while (excess_[at(source)] > 0 && !counter_.visit()) {
        if (excess_[at(v)] < 0) {
            push(source, v);
            path_.clear();
            v = source;
            continue;
        }
        std::int32_t& i = current_[at(v)];
        const auto useful = [&](std::int32_t half) {
            return residual_[at(half)] > 0 && level_[at(head(half))] == level_[at(v)] + 1;
        };
        while (i < first_[at(v) + 1] && !useful(halves_[at(i)])) ++i;
        if (i < first_[at(v) + 1]) {
            path_.push_back(halves_[at(i)]);
            v = head(path_.back());
        } else {
            if (path_.empty()) return;
            v = head(path_.back() ^ 1);
            path_.pop_back();
            ++current_[at(v)];
        }
    }
}

std::vector<std::int32_t> Dinic::cut() {
    while (layer() && !counter_.stopped()) {
        current_.assign(first_.begin(), first_.end() - 1);
        for (std::int32_t v = 0; v < problem_.num_nodes; ++v) {
            if (excess_[at(v)] > 0) send(v);
        }
    }
    std::vector<std::int32_t> reached;
    if (counter_.stopped()) return reached;
    for (std::int32_t v = 0; v < problem_.num_nodes; ++v) {
        if (level_[at(v)] >= 0) reached.push_back(v);
    }
    return reached;
}

// The cycle among the arcs over which distances were found last, if there is one.
std::vector<std::int32_t> cycle_among(const Network& network, const std::vector<std::int32_t>& arc_to) {
    std::vector<std::int32_t> seen(arc_to.size(), -1);  // by node: from where it was seen first
    for (std::int32_t start = 0; start < network.num_nodes; ++start) {
        std::int32_t v = start;
        while (seen[at(v)] < 0 && arc_to[at(v)] >= 0) {
            seen[at(v)] = start;
            v = network.tail[at(arc_to[at(v)])];
        }
        if (arc_to[at(v)] < 0 || seen[at(v)] != start) continue;
        std::vector<std::int32_t> cycle;
        const std::int32_t closing = v;
        do {
            cycle.push_back(arc_to[at(v)]);
            v = network.tail[at(cycle.back())];
        } while (v != closing);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
    }
    return {};
}

}  // namespace

std::vector<std::int32_t> blocking_cut(const Problem& problem, NodeCounter& counter) {
    return Dinic(problem, counter).cut();
}

std::vector<std::int32_t> endless_cycle(const Network& network, NodeCounter& counter) {
    std::vector<std::int32_t> arcs;
    bool negative = false;
    for (std::int32_t a = 0; at(a) < network.tail.size(); ++a) {
        if (network.capacity[at(a)] != kInfinite) continue;
        arcs.push_back(a);
        negative = negative || network.cost[at(a)] < 0;
    }
    if (!negative) return {};
    std::vector<std::int64_t> distance(at(network.num_nodes));
    std::vector<std::int32_t> arc_to(at(network.num_nodes), -1);
    for (bool shorter = true; shorter && !counter.visit(1 + arcs.size());) {
        shorter = false;
        for (const std::int32_t a : arcs) {
            const std::size_t v = at(network.tail[at(a)]);
            const std::size_t w = at(network.head[at(a)]);
            if (distance[v] + network.cost[at(a)] >= distance[w]) continue;
            distance[w] = distance[v] + network.cost[at(a)];
            arc_to[w] = a;
            shorter = true;
        }
        if (auto cycle = cycle_among(network, arc_to); !cycle.empty()) return cycle;
    }
    return {};
}

}  // namespace topoplace::flow
