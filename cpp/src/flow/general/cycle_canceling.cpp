// Cycle canceling (Klein, "A primal method for minimal cost flows", Management Science 14, 1967): any flow
// that meets the supplies, then as much as fits around each residual cycle of negative cost, until there is
// none.
//
// Bellman and Ford's algorithm looks for cycles, from distance 0 everywhere; where it finds none, its
// distances are potentials, between -n times the largest cost and 0. O(n m) for a cycle, of which there may
// be as many as cost can fall by 1.
#include <algorithm>
#include <deque>
#include <optional>

#include "flow/general/algorithms.hpp"
#include "flow/general/residual.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

class CycleCanceling {
  public:
    CycleCanceling(const Problem& problem, NodeCounter& counter)
        : residual_(problem), counter_(counter), arc_into_(residual_.num_nodes()) {}

    Solution solve() {
        for (std::size_t node = 0; node < residual_.num_nodes(); ++node) {
            while (residual_.excess(node) > 0) {
                if (!send(node)) return {.status = failure(), .flow = {}, .potential = {}};
            }
        }
        while (const auto on_cycle = find_cycle()) cancel(*on_cycle);
        if (counter_.stopped()) return {};
        const std::vector<std::int64_t> potential(distance_.begin(), distance_.end());
        residual_.assert_optimal_for(potential);
        return {.status = Status::optimal, .flow = residual_.flow(), .potential = potential};
    }

  private:
    Status failure() const { return counter_.stopped() ? Status::timeout : Status::infeasible; }

    // Moves excess of `source` along a path of fewest arcs to a deficit. False: there is none, or `counter`
    // stops.
    bool send(std::size_t source) {
        std::vector<char> reached(residual_.num_nodes());
        std::deque<std::size_t> open{source};
        reached[source] = true;
        for (; !open.empty() && !counter_.visit(); open.pop_front()) {
            if (residual_.excess(open.front()) < 0) {
                residual_.augment(arc_into_, source, open.front());
                return true;
            }
            for (const std::size_t arc : residual_.leaving(open.front())) {
                const std::size_t head = residual_.head(arc);
                if (residual_.left(arc) == 0 || reached[head]) continue;
                reached[head] = true;
                arc_into_[head] = arc;
                open.push_back(head);
            }
        }
        return false;
    }

    // A node of a residual cycle of negative cost, around which `arc_into_` leads. Nothing: there is none,
    // and distances prove it, or `counter` stops.
    std::optional<std::size_t> find_cycle() {
        distance_.assign(residual_.num_nodes(), 0);
        std::ranges::fill(arc_into_, kNowhere);
        while (relax_all() && !counter_.stopped()) {
            if (const auto node = node_on_cycle()) return node;
        }
        return std::nullopt;
    }

    bool relax_all() {
        bool changed = false;
        for (std::size_t node = 0; node < residual_.num_nodes() && !counter_.visit(); ++node) {
            for (const std::size_t arc : residual_.leaving(node)) {
                const Total distance = distance_[node] + residual_.cost(arc);
                if (residual_.left(arc) == 0 || distance >= distance_[residual_.head(arc)]) continue;
                distance_[residual_.head(arc)] = distance;
                arc_into_[residual_.head(arc)] = arc;
                changed = true;
            }
        }
        return changed;
    }

    std::optional<std::size_t> node_on_cycle() const {
        std::vector<std::size_t> seen_from(residual_.num_nodes(), kNowhere);
        for (std::size_t start = 0; start < residual_.num_nodes(); ++start) {
            std::size_t node = start;
            while (seen_from[node] == kNowhere && arc_into_[node] != kNowhere) {
                seen_from[node] = start;
                node = residual_.tail(arc_into_[node]);
            }
            if (seen_from[node] == start && arc_into_[node] != kNowhere) return node;
        }
        return std::nullopt;
    }

    Total total_cost(const std::vector<std::size_t>& arcs) const {
        Total sum = 0;
        for (const std::size_t arc : arcs) sum += residual_.cost(arc);
        return sum;
    }

    void cancel(std::size_t on_cycle) {
        std::vector<std::size_t> cycle;
        std::size_t node = on_cycle;
        do {
            cycle.push_back(arc_into_[node]);
            node = residual_.tail(cycle.back());
        } while (node != on_cycle);
        const auto narrowest =
            std::ranges::min(cycle, {}, [this](std::size_t arc) { return residual_.left(arc); });
        const std::int64_t units = residual_.left(narrowest);
        TOPOPLACE_ASSERT(units > 0);
        TOPOPLACE_ASSERT(total_cost(cycle) < 0);  // so that this ends
        for (const std::size_t arc : cycle) residual_.push(arc, units);
    }

    Residual residual_;
    NodeCounter& counter_;
    std::vector<std::size_t> arc_into_;
    std::vector<Total> distance_;
};

}  // namespace

Solution cycle_canceling(const Problem& problem, NodeCounter& counter) {
    return CycleCanceling(problem, counter).solve();
}

}  // namespace topoplace::flow
