// Successive shortest paths (Ahuja, Magnanti and Orlin, 1993, section 9.7): a node's excess moves along a
// shortest path of reduced costs to the nearest deficit, until none is left. At most one path for each unit;
// Dijkstra's algorithm finds one in O(m log n).
//
// Arcs of negative cost are filled before all else, so that potentials of zero fit the flow.
// Potentials only fall, and never below -n times the largest cost: a node with a deficit keeps 0, and where a
// node's potential falls, it is that of a deficit less what the path there costs.
#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "flow/general/algorithms.hpp"
#include "flow/general/residual.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

class ShortestPaths {
  public:
    ShortestPaths(const Problem& problem, NodeCounter& counter)
        : residual_(problem),
          counter_(counter),
          distance_(residual_.num_nodes(), kUnreached),
          settled_(residual_.num_nodes()),
          arc_into_(residual_.num_nodes(), kNowhere),
          potential_(residual_.num_nodes()) {
        residual_.fill_negative();
        residual_.assert_optimal_for(potential_);
    }

    Solution solve() {
        for (std::size_t source = 0; source < residual_.num_nodes(); ++source) {
            while (residual_.excess(source) > 0) {
                const std::size_t deficit = search(source);
                if (counter_.stopped()) return {};
                if (deficit == kNowhere) return {.status = Status::infeasible, .flow = {}, .potential = {}};
                lower_potentials(distance_[deficit]);
                residual_.augment(arc_into_, source, deficit);
            }
        }
        residual_.assert_optimal_for(potential_);
        return {.status = Status::optimal, .flow = residual_.flow(), .potential = potential_};
    }

  private:
    static constexpr Total kUnreached = -1;
    using Entry = std::pair<Total, std::size_t>;  // distance, node

    // Settles nodes by distance from `source` until one has a deficit; returns it, or kNowhere.
    std::size_t search(std::size_t source) {
        for (const std::size_t node : reached_) distance_[node] = kUnreached, settled_[node] = false;
        reached_ = {source};
        distance_[source] = 0;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
        open.emplace(0, source);
        while (!open.empty() && !counter_.visit()) {
            const std::size_t node = open.top().second;
            open.pop();
            if (std::exchange(settled_[node], true)) continue;
            if (residual_.excess(node) < 0) return node;
            for (const std::size_t arc : residual_.leaving(node)) {
                if (residual_.left(arc) > 0 && reach(arc)) {
                    open.emplace(distance_[residual_.head(arc)], residual_.head(arc));
                }
            }
        }
        return kNowhere;
    }

    bool reach(std::size_t arc) {
        const std::size_t tail = residual_.tail(arc), head = residual_.head(arc);
        const Total reduced = Total{residual_.cost(arc)} + potential_[tail] - potential_[head];
        const Total distance = distance_[tail] + reduced;
        TOPOPLACE_ASSERT(reduced >= 0);
        TOPOPLACE_ASSERT(!settled_[head] || distance >= distance_[head]);
        if (distance_[head] == kUnreached) reached_.push_back(head);
        if (distance_[head] != kUnreached && distance_[head] <= distance) return false;
        distance_[head] = distance;
        arc_into_[head] = arc;
        return true;
    }

    void lower_potentials(Total to_deficit) {
        for (const std::size_t node : reached_) {
            const Total less = to_deficit - distance_[node];
            if (less <= 0) continue;
            TOPOPLACE_ASSERT(residual_.excess(node) >= 0);  // a node with a deficit keeps 0
            potential_[node] = static_cast<std::int64_t>(potential_[node] - less);
            TOPOPLACE_ASSERT(-kMaxPotential <= potential_[node] && potential_[node] <= 0);
        }
    }

    Residual residual_;
    NodeCounter& counter_;
    std::vector<Total> distance_;
    std::vector<char> settled_;
    std::vector<std::size_t> reached_;
    std::vector<std::size_t> arc_into_;
    std::vector<std::int64_t> potential_;
};

}  // namespace

Solution successive_shortest_path(const Problem& problem, NodeCounter& counter) {
    return ShortestPaths(problem, counter).solve();
}

}  // namespace topoplace::flow
