// The network simplex method with strongly feasible trees (Cunningham, "A network simplex method",
// Mathematical Programming 11, 1976; Ahuja, Magnanti and Orlin, 1993, chapter 11).
//
// A basis is a spanning tree over the nodes and a root; every arc outside the tree is empty or full.
// Potentials make the reduced costs of tree arcs zero. A pivot takes in an arc outside that would pay, sends
// around the cycle it closes what fits, and drops the last arc on it to block, counted from the cycle's
// topmost node: then from every node something can always be sent towards the root, and no basis comes twice.
// The entering arc is the best of a block of about sqrt(m) arcs that has one; blocks follow each other (block
// search).
//
// The tree is kept as parents, subtree sizes and a thread: all nodes in preorder, in which a subtree is one
// stretch. A pivot touches the path between the two arcs' ends and the potentials of the subtree that moves.
// What a tree arc can still carry up and down is kept at its lower node, so that a walk towards the root
// reads one array; flow of other arcs is not kept at all.
//
// The first tree joins every node to the root by an artificial arc of cost `big` (at demands) or 0, larger
// than what any path costs: where one ends with flow, the supplies cannot be sent. Potentials stay within big
// + n * cost, so all numbers fit Cost where 4 (n + 1) * (cost + 1) does.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "flow/problem.hpp"

namespace topoplace::flow {
namespace {

using Id = std::int32_t;

enum State : std::int8_t { kFull = -1, kInTree = 0, kEmpty = 1 };

template <class Number>
class NetworkSimplex {
  public:
    NetworkSimplex(const Problem& problem, NodeCounter& counter)
        : problem_(problem),
          counter_(counter),
          root_(problem.num_nodes),
          num_arcs_(static_cast<Id>(problem.tail.size())),
          block_(std::max<Id>(10, static_cast<Id>(std::sqrt(static_cast<double>(num_arcs_))))) {
        for (Id arc = 0; arc < num_arcs_; ++arc) {
            const auto i = static_cast<std::size_t>(arc);
            add_arc(problem.tail[i], problem.head[i], static_cast<Number>(problem.capacity[i]),
                    static_cast<Number>(problem.cost[i]));
        }
        join_all_to_root();
    }

    Solution solve() {
        for (Id arc = entering(); arc != kNone && !counter_.visit(); arc = entering()) pivot(arc);
        if (counter_.stopped()) return {};
        if (needs_artificial_arc()) return {.status = Status::infeasible, .flow = {}, .potential = {}};
        return {.status = Status::optimal,
                .flow = flow(),
                .potential = {potential_.begin(), potential_.end() - 1}};
    }

  private:
    static constexpr Id kNone = -1;

    struct Arc {
        Id tail;
        Id head;
        Number cost;
    };
    struct Link {  // to the parent
        Id parent;
        Id size;      // nodes of the subtree
        Number up;    // what the tree arc can still carry towards the root
        Number down;  // and away from it
    };
    struct Place {  // in the thread
        Id next;
        Id previous;
        Id last;  // of the subtree
        Id arc;   // to the parent
    };

    static std::size_t at(Id id) { return static_cast<std::size_t>(id); }

    void add_arc(Id tail, Id head, Number capacity, Number cost) {
        arcs_.push_back({tail, head, cost});
        capacity_.push_back(capacity);
        state_.push_back(kEmpty);
    }

    void join_all_to_root() {
        Number dearest = 0;
        for (const Arc& arc : arcs_) dearest = std::max(dearest, std::abs(arc.cost));
        const Number big = (dearest + 1) * (root_ + 1);
        links_.resize(at(root_) + 1);
        places_.resize(at(root_) + 1);
        potential_.resize(at(root_) + 1);
        links_[at(root_)] = {kNone, root_ + 1, 0, 0};
        for (Id node = 0; node <= root_; ++node) {
            const Id next = node == root_ ? 0 : node + 1, previous = node == 0 ? root_ : node - 1;
            places_[at(node)] = {next, previous, node == root_ ? previous : node, num_arcs_ + node};
            if (node != root_) join_to_root(node, static_cast<Number>(problem_.supply[at(node)]), big);
        }
    }

    void join_to_root(Id node, Number supply, Number big) {
        constexpr Number kMost = std::numeric_limits<Number>::max() / 2;
        if (supply >= 0) {
            add_arc(node, root_, kMost, 0);
            links_[at(node)] = {root_, 1, kMost - supply, supply};
        } else {
            add_arc(root_, node, kMost, big);
            links_[at(node)] = {root_, 1, -supply, kMost + supply};
            potential_[at(node)] = big;
        }
        state_.back() = kInTree;
    }

    // ---- pivots ----

    // Below zero where it pays to fill an empty arc or to empty a full one.
    Number violation(Id arc) const {
        const Arc& a = arcs_[at(arc)];
        return state_[at(arc)] * (a.cost + potential_[at(a.tail)] - potential_[at(a.head)]);
    }

    Id entering() {
        Id best = kNone, left = block_;
        Number least = 0;
        for (Id seen = 0; seen < num_arcs_; ++seen) {
            if (next_arc_ == num_arcs_) next_arc_ = 0;
            const Number found = violation(next_arc_);
            if (found < least) least = found, best = next_arc_;
            ++next_arc_;
            if (--left == 0) {
                if (best != kNone) return best;
                left = block_;
            }
        }
        return best;
    }

    // Which tree arc blocks a cycle, and after how many units.
    struct Blocking {
        Number units;
        Id node = kNone;      // below the arc; kNone: the entering arc
        bool at_end = false;  // on the way from the end of the entering arc, not from its beginning
    };

    Blocking find_blocking(Id from, Id to, Id top, Number capacity) const {
        Blocking found{capacity};
        for (Id node = from; node != top; node = links_[at(node)].parent) {
            if (links_[at(node)].down < found.units) found = {links_[at(node)].down, node, false};
        }
        for (Id node = to; node != top; node = links_[at(node)].parent) {
            if (links_[at(node)].up <= found.units) found = {links_[at(node)].up, node, true};
        }
        return found;
    }

    void pivot(Id arc) {
        const Arc& a = arcs_[at(arc)];
        const bool fills = state_[at(arc)] == kEmpty;
        const Id from = fills ? a.tail : a.head, to = fills ? a.head : a.tail;
        const Id top = join(from, to);
        const Blocking blocking = find_blocking(from, to, top, capacity_[at(arc)]);
        send(from, top, -blocking.units);
        send(to, top, blocking.units);
        if (blocking.node == kNone) {
            state_[at(arc)] = fills ? kFull : kEmpty;
            return;
        }
        drop(blocking.node);
        const Id inner = blocking.at_end ? to : from, outer = blocking.at_end ? from : to;
        resize(links_[at(blocking.node)].parent, outer, top, links_[at(blocking.node)].size);
        const Number left = capacity_[at(arc)] - blocking.units;
        const Link link =
            blocking.at_end ? Link{outer, 0, blocking.units, left} : Link{outer, 0, left, blocking.units};
        move_subtree(blocking.node, inner, link, arc);
    }

    Id join(Id a, Id b) const {
        while (a != b) {
            if (links_[at(a)].size < links_[at(b)].size) {
                a = links_[at(a)].parent;
            } else {
                b = links_[at(b)].parent;
            }
        }
        return a;
    }

    void send(Id node, Id top, Number units) {
        if (units == 0) return;
        for (; node != top; node = links_[at(node)].parent) {
            links_[at(node)].up -= units;
            links_[at(node)].down += units;
        }
    }

    bool leads_up(Id node) const { return arcs_[at(places_[at(node)].arc)].tail == node; }
    Number carried(Id node) const { return leads_up(node) ? links_[at(node)].down : links_[at(node)].up; }

    void drop(Id node) { state_[at(places_[at(node)].arc)] = carried(node) == 0 ? kEmpty : kFull; }

    // A subtree of `size` nodes leaves its parent `old` for the parent `now`; both are below `top`.
    void resize(Id old, Id now, Id top, Id size) {
        for (Id node = old; node != top; node = links_[at(node)].parent) links_[at(node)].size -= size;
        for (Id node = now; node != top; node = links_[at(node)].parent) links_[at(node)].size += size;
    }

    // The subtree below `cut` hangs from now on by `arc` at its node `inner`, whose link that becomes.
    void move_subtree(Id cut, Id inner, const Link& link, Id arc) {
        const Arc& a = arcs_[at(arc)];
        const Number reduced = a.cost + potential_[at(a.tail)] - potential_[at(a.head)];
        take_out(cut);
        const Id last = turn(cut, inner);
        put_in(inner, last, link.parent);
        turn_links(cut, inner, last, link, arc);
        shift(inner, last, a.tail == inner ? -reduced : reduced);
        state_[at(arc)] = kInTree;
    }

    void shift(Id node, Id last, Number by) {
        for (; node != last; node = places_[at(node)].next) potential_[at(node)] += by;
        potential_[at(last)] += by;
    }

    void connect(Id node, Id next) {
        places_[at(node)].next = next;
        places_[at(next)].previous = node;
    }

    // Takes the subtree's stretch out of the thread.
    void take_out(Id cut) {
        const Id last = places_[at(cut)].last, previous = places_[at(cut)].previous;
        connect(previous, places_[at(last)].next);
        for (Id node = links_[at(cut)].parent; node != kNone && places_[at(node)].last == last;
             node = links_[at(node)].parent) {
            places_[at(node)].last = previous;
        }
    }

    // Puts the stretch of a subtree taken out in the preorder it has with `inner` as its root: the subtree of
    // `inner`, then what is left of its parent's, and so on up to `cut`. Returns the last node.
    Id turn(Id cut, Id inner) {
        Place old = places_[at(inner)];
        Id last = old.last, after = places_[at(last)].next;  // after the stretch of `old`
        for (Id node = inner; node != cut;) {
            node = links_[at(node)].parent;
            const Place place = places_[at(node)];
            const bool at_end = place.last == old.last;
            const Id place_after = at_end ? after : places_[at(place.last)].next;
            if (!at_end) connect(old.previous, after);
            connect(last, node);
            last = at_end ? old.previous : place.last;
            old = place;
            after = place_after;
        }
        return last;
    }

    // Puts the stretch in behind `outer`, its new parent.
    void put_in(Id inner, Id last, Id outer) {
        const Id next = places_[at(outer)].next;
        connect(outer, inner);
        connect(last, next);
        for (Id node = outer; node != kNone && places_[at(node)].last == outer;
             node = links_[at(node)].parent) {
            places_[at(node)].last = last;
        }
    }

    // Turns the links between `cut` and `inner` around; `link` and `arc` are those of `inner` from now on.
    void turn_links(Id cut, Id inner, Id last, Link link, Id arc) {
        const Id size = links_[at(cut)].size;
        Id below = 0;
        for (Id node = inner;;) {
            const Link old = links_[at(node)];
            link.size = size - below;
            links_[at(node)] = link;
            std::swap(places_[at(node)].arc, arc);
            places_[at(node)].last = last;
            if (node == cut) break;
            below = old.size;
            link = {node, 0, old.down, old.up};
            node = old.parent;
        }
    }

    // ---- what comes out ----

    bool needs_artificial_arc() const {
        for (Id node = 0; node < root_; ++node) {
            if (places_[at(node)].arc >= num_arcs_ && carried(node) > 0) return true;
        }
        return false;
    }

    std::vector<std::int64_t> flow() const {
        std::vector<std::int64_t> flow(problem_.capacity);
        for (std::size_t arc = 0; arc < flow.size(); ++arc) {
            if (state_[arc] != kFull) flow[arc] = 0;
        }
        for (Id node = 0; node < root_; ++node) {
            if (places_[at(node)].arc < num_arcs_) flow[at(places_[at(node)].arc)] = carried(node);
        }
        return flow;
    }

    const Problem& problem_;
    NodeCounter& counter_;
    Id root_;
    Id num_arcs_;
    Id block_;
    Id next_arc_ = 0;
    std::vector<Arc> arcs_;
    std::vector<Number> capacity_;
    std::vector<std::int8_t> state_;
    std::vector<Link> links_;
    std::vector<Place> places_;
    std::vector<Number> potential_;
};

constexpr Total kNarrow = Total{1} << 29, kWide = Total{1} << 61;

// 4 (n + 1) (cost + 1) for the dearest arc: no sum the algorithm makes of costs is larger.
Total largest_sum(const Problem& problem) {
    Total dearest = 0;
    for (const std::int64_t cost : problem.cost) {
        dearest = std::max({dearest, Total{cost}, -Total{cost}});
    }
    if (4 * (dearest + 1) * (problem.num_nodes + 1) > std::numeric_limits<std::int64_t>::max()) {
        throw std::invalid_argument("cost = " + std::to_string(static_cast<std::int64_t>(dearest)) +
                                    " is too large for " + std::to_string(problem.num_nodes) +
                                    " nodes: 4 (nodes + 1) (cost + 1) has to fit 64 bits");
    }
    return 4 * (dearest + 1) * (problem.num_nodes + 1);
}

bool fits_32_bits(const Problem& problem) {
    Total supplied = 0;
    for (const std::int64_t supply : problem.supply) supplied += std::max<std::int64_t>(supply, 0);
    const std::int64_t widest = problem.capacity.empty() ? 0 : std::ranges::max(problem.capacity);
    return supplied <= kNarrow && widest <= kNarrow;
}

}  // namespace

Solution network_simplex(const Problem& problem, NodeCounter& counter) {
    if (largest_sum(problem) <= std::numeric_limits<std::int32_t>::max() && fits_32_bits(problem)) {
        return NetworkSimplex<std::int32_t>(problem, counter).solve();
    }
    return NetworkSimplex<std::int64_t>(problem, counter).solve();
}

}  // namespace topoplace::flow
