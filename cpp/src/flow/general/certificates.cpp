// A cut that no flow gets across is found by Dinic's maximum flow from all supplies to all demands at once, a
// cycle that pays without end by Bellman and Ford's rounds.
//
// References: Dinic, Soviet Mathematics Doklady 11 (1970); Cherkassky and Goldberg, "Negative-cycle detection
// algorithms", Mathematical Programming 85 (1999).
#include "flow/general/certificates.hpp"

#include <algorithm>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

// Arc a of the problem is 2a forward and 2a + 1 backward.
class Dinic {
  public:
    Dinic(const Problem& problem, NodeCounter& counter);

    // Nodes reached from supplies that cannot be sent.
    std::vector<std::int32_t> cut();

  private:
    std::int32_t head(std::int32_t half) const {
        return half % 2 == 0 ? problem_.head[index(half / 2)] : problem_.tail[index(half / 2)];
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
      first_(index(problem.num_nodes) + 1),
      halves_(2 * problem.tail.size()),
      residual_(2 * problem.tail.size()),
      excess_(problem.supply) {
    for (std::size_t a = 0; a < problem.tail.size(); ++a) {
        residual_[2 * a] = problem.capacity[a];
        ++first_[index(problem.tail[a])];
        ++first_[index(problem.head[a])];
    }
    std::int32_t sum = 0;
    for (std::int32_t& first : first_) first = sum += first;
    for (std::int32_t half = static_cast<std::int32_t>(halves_.size()); half-- > 0;)
        halves_[index(--first_[index(head(half ^ 1))])] = half;
}

bool Dinic::layer() {
    level_.assign(index(problem_.num_nodes), kAbsent);
    queue_.clear();
    for (std::int32_t v = 0; v < problem_.num_nodes; ++v) {
        if (excess_[index(v)] <= 0) continue;
        level_[index(v)] = 0;
        queue_.push_back(v);
    }
    bool reached = false;
    for (std::size_t i = 0; i < queue_.size() && !counter_.visit(); ++i) {
        const std::int32_t v = queue_[i];
        reached = reached || excess_[index(v)] < 0;
        for (std::int32_t i_half = first_[index(v)]; i_half < first_[index(v) + 1]; ++i_half) {
            const std::int32_t half = halves_[index(i_half)];
            if (residual_[index(half)] == 0 || level_[index(head(half))] >= 0) continue;
            level_[index(head(half))] = level_[index(v)] + 1;
            queue_.push_back(head(half));
        }
    }
    return reached;
}

void Dinic::push(std::int32_t source, std::int32_t target) {
    std::int64_t units = std::min(excess_[index(source)], -excess_[index(target)]);
    for (const std::int32_t half : path_) units = std::min(units, residual_[index(half)]);
    TOPOPLACE_ASSERT(units > 0);  // so that every search in a layered network ends
    for (const std::int32_t half : path_) {
        residual_[index(half)] -= units;
        residual_[index(half ^ 1)] += units;
        TOPOPLACE_ASSERT(residual_[index(half)] >= 0);
    }
    excess_[index(source)] -= units;
    excess_[index(target)] += units;
    TOPOPLACE_ASSERT(excess_[index(source)] >= 0 && excess_[index(target)] <= 0);
}

void Dinic::send(std::int32_t source) {
    path_.clear();
    std::int32_t v = source;
    while (excess_[index(source)] > 0 && !counter_.visit()) {
        if (excess_[index(v)] < 0) {
            TOPOPLACE_ASSERT(path_.size() == index(level_[index(v)]));
            push(source, v);
            path_.clear();
            v = source;
            continue;
        }
        std::int32_t& i = current_[index(v)];
        const auto useful = [&](std::int32_t half) {
            return residual_[index(half)] > 0 && level_[index(head(half))] == level_[index(v)] + 1;
        };
        while (i < first_[index(v) + 1] && !useful(halves_[index(i)])) ++i;
        if (i < first_[index(v) + 1]) {
            path_.push_back(halves_[index(i)]);
            v = head(path_.back());
        } else {
            if (path_.empty()) return;
            v = head(path_.back() ^ 1);
            path_.pop_back();
            ++current_[index(v)];
        }
    }
}

std::vector<std::int32_t> Dinic::cut() {
    while (layer() && !counter_.stopped()) {
        current_.assign(first_.begin(), first_.end() - 1);
        for (std::int32_t v = 0; v < problem_.num_nodes; ++v) {
            if (excess_[index(v)] > 0) send(v);
        }
    }
    std::vector<std::int32_t> reached;
    if (counter_.stopped()) return reached;
    for (std::int32_t v = 0; v < problem_.num_nodes; ++v) {
        if (level_[index(v)] < 0) continue;
        TOPOPLACE_ASSERT(excess_[index(v)] >= 0);  // a demand in reach would have been served
        reached.push_back(v);
    }
    return reached;
}

// The cycle among the arcs over which distances were found last, if there is one.
std::vector<std::int32_t> cycle_among(const Network& network, const std::vector<std::int32_t>& arc_to) {
    std::vector<std::int32_t> seen(arc_to.size(), kAbsent);  // by node: from where it was seen first
    for (std::int32_t start = 0; start < network.num_nodes; ++start) {
        std::int32_t v = start;
        while (seen[index(v)] < 0 && arc_to[index(v)] >= 0) {
            seen[index(v)] = start;
            v = network.tail[index(arc_to[index(v)])];
        }
        if (arc_to[index(v)] < 0 || seen[index(v)] != start) continue;
        std::vector<std::int32_t> cycle;
        const std::int32_t closing = v;
        do {
            cycle.push_back(arc_to[index(v)]);
            v = network.tail[index(cycle.back())];
        } while (v != closing);
        std::reverse(cycle.begin(), cycle.end());
        TOPOPLACE_ASSERT(network.head[index(cycle.back())] == network.tail[index(cycle.front())]);
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
    for (std::int32_t a = 0; index(a) < network.tail.size(); ++a) {
        if (network.capacity[index(a)] != kInfinite) continue;
        arcs.push_back(a);
        negative = negative || network.cost[index(a)] < 0;
    }
    if (!negative) return {};
    // Beyond 64 bits: within one round, a cycle that is found only at its end may be passed for every arc.
    std::vector<Total> distance(index(network.num_nodes));
    std::vector<std::int32_t> arc_to(index(network.num_nodes), kAbsent);
    for (bool shorter = true; shorter && !counter.visit(1 + arcs.size());) {
        shorter = false;
        for (const std::int32_t a : arcs) {
            const std::size_t v = index(network.tail[index(a)]);
            const std::size_t w = index(network.head[index(a)]);
            if (distance[v] + network.cost[index(a)] >= distance[w]) continue;
            distance[w] = distance[v] + network.cost[index(a)];
            arc_to[w] = a;
            shorter = true;
        }
        if (auto cycle = cycle_among(network, arc_to); !cycle.empty()) return cycle;
    }
    return {};
}

}  // namespace topoplace::flow
