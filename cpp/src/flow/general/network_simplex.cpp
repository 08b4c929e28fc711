// The network simplex method with strongly feasible trees (Cunningham, "A network simplex method",
// Mathematical Programming 11, 1976; Ahuja, Magnanti and Orlin, 1993, chapter 11).
//
// A basis is a spanning tree over the nodes and a root; every arc outside the tree is empty or full.
// Potentials make the reduced costs of tree arcs zero. A pivot takes in an arc outside that would pay, sends
// around the cycle it closes what fits, and drops the last arc on it to block, counted from the cycle's
// topmost node: then from every node something can always be sent towards the root, and no basis comes twice.
//
// Nearly all time goes into three loops, which is why things are stored as they are:
// - The search for the entering arc, the best of a block (block search), reads the arcs alone. A full arc is
//   stored turned around, so that every arc pays whose reduced cost is below zero, and tree arcs never do.
//   A node's arcs stand together, but neighbouring nodes' do not: a block samples all of the network.
// - The walks along the cycle read one array: what a tree arc can still carry is kept at its lower node. The
//   flow of other arcs is not kept at all.
// - The potentials of the subtree that moves change. All nodes in preorder are a thread, in which a
//   subtree is one stretch; its links are an array of their own. Numbers have 32 bits where they fit.
//
// The first tree joins every node to the root by an artificial arc of cost `big` (at demands) or 0, larger
// than what any path costs: where one ends with flow, the supplies cannot be sent. Potentials stay between
// -n * cost and big + n * cost, so that no sum exceeds 3 (n + 1) (cost + 1): less than 2^63 for whatever
// `check` passes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "flow/general/algorithms.hpp"
#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {
namespace {

using Id = std::int32_t;

// Blocks, in roots of the number of arcs: larger ones take fewer pivots, but each arc that is searched costs
// more where the network is larger than the caches.
constexpr double kBlock = 2.5;
constexpr double kLargeBlock = 2;
constexpr Id kLarge = 1 << 16;  // arcs
constexpr Id kTogether = 16;    // limit on arcs of one node next to each other

Id block_for(Id arcs) {
    return static_cast<Id>(10 +
                           (arcs < kLarge ? kBlock : kLargeBlock) * std::sqrt(static_cast<double>(arcs)));
}

// Where arcs go in the order in which they are searched: runs of one tail's arcs, and between two runs that
// follow each other about a root of all runs that come elsewhere.
class SearchOrder {
  public:
    explicit SearchOrder(const Problem& problem) : next_(index(problem.num_nodes)), first_run_(next_.size()) {
        for (const Id tail : problem.tail) ++next_[index(tail)];
        std::vector<Id> length;  // of each run, by tail
        for (std::size_t tail = 0; tail < next_.size(); ++tail) {
            first_run_[tail] = static_cast<Id>(length.size());
            for (; next_[tail] > 0; next_[tail] -= length.back()) {
                length.push_back(std::min(next_[tail], kTogether));
            }
        }
        const auto step = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(length.size()))));
        begin_.resize(length.size());
        Id end = 0;
        for (std::size_t first = 0; first < step; ++first) {
            for (std::size_t run = first; run < length.size(); run += step) {
                begin_[run] = std::exchange(end, end + length[run]);
            }
        }
    }

    // The place of the next arc of `tail`.
    std::size_t next(Id tail) {
        const Id count = next_[index(tail)]++;
        return index(begin_[index(first_run_[index(tail)] + count / kTogether)] + count % kTogether);
    }

  private:
    std::vector<Id> next_;       // arcs placed, by tail
    std::vector<Id> first_run_;  // by tail
    std::vector<Id> begin_;      // by run
};

template <FlowNumber Number>
class NetworkSimplex {
  public:
    NetworkSimplex(const Problem& problem, WorkMeter& meter)
        : problem_(problem),
          meter_(meter),
          root_(problem.num_nodes),
          num_arcs_(static_cast<Id>(problem.tail.size())),
          block_(block_for(num_arcs_)),
          order_(problem.tail.size()),
          turned_(problem.tail.size()),
          arcs_(problem.tail.size() + index(root_)),
          links_(index(root_) + 1),
          places_(index(root_) + 1),
          next_(index(root_) + 1),
          potential_(index(root_) + 1) {
        SearchOrder order(problem);
        for (std::size_t arc = 0; arc < order_.size(); ++arc) {
            const std::size_t to = order.next(problem.tail[arc]);
            order_[to] = static_cast<Id>(arc);
            arcs_[to] = {problem.tail[arc], problem.head[arc], static_cast<Number>(problem.cost[arc])};
        }
        join_all_to_root();
        assert_basis();
    }

    Solution solve() {
        for (Id arc = entering(); arc != kAbsent && !stopped(); arc = entering()) pivot(arc);
        if (meter_.stopped()) return {};
        assert_basis();
        if (needs_artificial_arc()) return {.status = Status::infeasible, .flow = {}, .potential = {}};
        return {.status = Status::optimal,
                .flow = flow(),
                .potential = {potential_.begin(), potential_.end() - 1}};
    }

  private:
    static constexpr std::uint64_t kMostWork = 1 << 20;  // arcs and nodes between two looks at the clock

    // Counts pivots. On large networks many of them take long.
    bool stopped() {
        if (work_ >= kMostWork) {
            work_ = 0;
            meter_.look_at_clock();
        }
        return meter_.visit();
    }

    struct Arc {  // turned around where it is full
        Id tail;
        Id head;
        Number cost;
    };
    struct Link {  // of a node to its parent
        Id parent;
        Id size;      // nodes of the subtree
        Number up;    // what the tree arc can still carry towards the root
        Number down;  // and away from it
    };
    struct Place {
        Id previous;  // in the thread
        Id last;      // of the subtree
        Id arc;       // to the parent
    };

    void join_all_to_root() {
        Number dearest = 0;
        for (const Arc& arc : arcs_) dearest = std::max(dearest, std::abs(arc.cost));
        TOPOPLACE_ASSERT(3 * (Total{dearest} + 1) * (root_ + 1) <= std::numeric_limits<Number>::max());
        const Number big = (dearest + 1) * (root_ + 1);
        links_[index(root_)] = {.parent = kAbsent, .size = root_ + 1, .up = 0, .down = 0};
        for (Id node = 0; node <= root_; ++node) {
            connect(node, node == root_ ? 0 : node + 1);
            places_[index(node)].last = node == root_ ? root_ - 1 : node;
            places_[index(node)].arc = num_arcs_ + node;
            if (node != root_) join_to_root(node, static_cast<Number>(problem_.supply[index(node)]), big);
        }
    }

    void join_to_root(Id node, Number supply, Number big) {
        constexpr Number kMost = std::numeric_limits<Number>::max() / 2;
        TOPOPLACE_ASSERT(-kMost < supply && supply < kMost);
        if (supply >= 0) {
            arcs_[index(num_arcs_ + node)] = {.tail = node, .head = root_, .cost = 0};
            links_[index(node)] = {.parent = root_, .size = 1, .up = kMost - supply, .down = supply};
        } else {
            arcs_[index(num_arcs_ + node)] = {.tail = root_, .head = node, .cost = big};
            links_[index(node)] = {.parent = root_, .size = 1, .up = -supply, .down = kMost + supply};
            potential_[index(node)] = big;
        }
    }

    // ---- pivots ----

    // Below zero where it pays to send something; zero for arcs of the tree.
    Number reduced_cost(const Arc& arc) const {
        return arc.cost + potential_[index(arc.tail)] - potential_[index(arc.head)];
    }

    // The best arc of the next block that has one that pays, or kAbsent.
    Id entering() {
        for (Id seen = 0; seen < num_arcs_;) {
            const Id begin = std::exchange(next_arc_, std::min(next_arc_ + block_, num_arcs_));
            const Id best = best_of(begin, next_arc_);
            if (best != kAbsent) return best;
            seen += next_arc_ - begin;
            work_ += index(next_arc_ - begin);
            if (next_arc_ == num_arcs_) next_arc_ = 0;
        }
        return kAbsent;
    }

    Id best_of(Id begin, Id end) const {
        Id best = kAbsent;
        Number least = 0;
        for (Id arc = begin; arc < end; ++arc) {
            const Number reduced = reduced_cost(arcs_[index(arc)]);
            if (reduced < least) {
                least = reduced;
                best = arc;
            }
        }
        return best;
    }

    // Which tree arc blocks a cycle, and after how many units.
    struct Blocking {
        Number units = 0;
        Id node = kAbsent;     // below the arc; kAbsent: the entering arc itself
        bool at_head = false;  // on the way up from the entering arc's head, not from its tail
    };

    Blocking find_blocking(const Arc& arc, Id top, Number capacity) const {
        Blocking found{.units = capacity};
        for (Id node = arc.tail; node != top; node = links_[index(node)].parent) {
            if (links_[index(node)].down < found.units)
                found = {.units = links_[index(node)].down, .node = node, .at_head = false};
        }
        for (Id node = arc.head; node != top; node = links_[index(node)].parent) {
            if (links_[index(node)].up <= found.units)
                found = {.units = links_[index(node)].up, .node = node, .at_head = true};
        }
        return found;
    }

    void pivot(Id arc) {
        const Arc a = arcs_[index(arc)];
        TOPOPLACE_ASSERT(reduced_cost(a) < 0);
        const Id top = join(a.tail, a.head);
        const Number capacity = capacity_of(arc);
        const auto [units, leaving, at_head] = find_blocking(a, top, capacity);
        TOPOPLACE_ASSERT(0 <= units && units <= capacity);
        send(a.tail, top, -units);
        send(a.head, top, units);
        if (leaving == kAbsent) {
            turn_arc(arc);
            return;
        }
        TOPOPLACE_ASSERT(links_[index(leaving)].up == 0 || links_[index(leaving)].down == 0);
        if (carried(leaving) != 0) turn_arc(places_[index(leaving)].arc);
        const Id inner = at_head ? a.head : a.tail, outer = at_head ? a.tail : a.head;
        work_ += index(links_[index(leaving)].size);
        resize(links_[index(leaving)].parent, outer, top, links_[index(leaving)].size);
        Link link{.parent = outer, .size = 0, .up = capacity - units, .down = units};
        if (at_head) std::swap(link.up, link.down);
        move_subtree(leaving, inner, link, arc);
    }

    Number capacity_of(Id arc) const {
        return static_cast<Number>(problem_.capacity[index(order_[index(arc)])]);
    }

    void turn_arc(Id arc) {
        Arc& a = arcs_[index(arc)];
        a = {.tail = a.head, .head = a.tail, .cost = -a.cost};
        turned_[index(arc)] = !turned_[index(arc)];
    }

    Id join(Id a, Id b) const {
        while (a != b) {
            Id& lower = links_[index(a)].size < links_[index(b)].size ? a : b;
            lower = links_[index(lower)].parent;
        }
        return a;
    }

    void send(Id node, Id top, Number units) {
        if (units == 0) return;
        for (; node != top; node = links_[index(node)].parent) {
            links_[index(node)].up -= units;
            links_[index(node)].down += units;
            TOPOPLACE_ASSERT(links_[index(node)].up >= 0 && links_[index(node)].down >= 0);
        }
    }

    // What the arc above a node carries in the direction in which it is stored.
    Number carried(Id node) const {
        const bool leads_up = arcs_[index(places_[index(node)].arc)].tail == node;
        return leads_up ? links_[index(node)].down : links_[index(node)].up;
    }

    // A subtree of `size` nodes leaves its parent `old` for the parent `now`; both are below `top`.
    void resize(Id old, Id now, Id top, Id size) {
        for (Id node = old; node != top; node = links_[index(node)].parent) {
            links_[index(node)].size -= size;
            TOPOPLACE_ASSERT(links_[index(node)].size > 0);
        }
        for (Id node = now; node != top; node = links_[index(node)].parent) links_[index(node)].size += size;
    }

    // ---- the tree ----

    // The subtree below `cut` hangs from now on by `arc` at its node `inner`, whose link that becomes.
    void move_subtree(Id cut, Id inner, const Link& link, Id arc) {
        const Number reduced = reduced_cost(arcs_[index(arc)]);
        take_out(cut);
        const Id last = turn(cut, inner);
        put_in(inner, last, link.parent);
        turn_links(cut, inner, last, link, arc);
        shift(inner, last, arcs_[index(arc)].tail == inner ? -reduced : reduced);
    }

    void shift(Id node, Id last, Number by) {
        for (; node != last; node = next_[index(node)]) potential_[index(node)] += by;
        potential_[index(last)] += by;
    }

    void connect(Id node, Id next) {
        next_[index(node)] = next;
        places_[index(next)].previous = node;
    }

    // Takes the subtree's stretch out of the thread.
    void take_out(Id cut) {
        const Id last = places_[index(cut)].last, previous = places_[index(cut)].previous;
        connect(previous, next_[index(last)]);
        for (Id node = links_[index(cut)].parent; node != kAbsent && places_[index(node)].last == last;
             node = links_[index(node)].parent) {
            places_[index(node)].last = previous;
        }
    }

    // Puts the stretch taken out into the preorder it has with `inner` as its root: the subtree of `inner`,
    // then the rest of its parent's, and so on up to `cut`. Returns the last node.
    Id turn(Id cut, Id inner) {
        Place old = places_[index(inner)];
        Id last = old.last, after = next_[index(last)];  // after the stretch of `old`
        for (Id node = inner; node != cut;) {
            node = links_[index(node)].parent;
            const Place place = places_[index(node)];
            const bool at_end = place.last == old.last;
            const Id place_after = at_end ? after : next_[index(place.last)];
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
        const Id after = next_[index(outer)];
        connect(outer, inner);
        connect(last, after);
        for (Id node = outer; node != kAbsent && places_[index(node)].last == outer;
             node = links_[index(node)].parent) {
            places_[index(node)].last = last;
        }
    }

    // Turns the links between `inner` and `cut` around; `link` and `arc` are those of `inner` from now on.
    void turn_links(Id cut, Id inner, Id last, Link link, Id arc) {
        const Id size = links_[index(cut)].size;
        Id below = 0;
        for (Id node = inner;;) {
            const Link old = links_[index(node)];
            link.size = size - below;
            TOPOPLACE_ASSERT(link.size > 0);
            TOPOPLACE_ASSERT(link.up > 0);  // the tree stays strongly feasible
            links_[index(node)] = link;
            std::swap(places_[index(node)].arc, arc);
            places_[index(node)].last = last;
            if (node == cut) break;
            below = old.size;
            link = {.parent = node, .size = 0, .up = old.down, .down = old.up};
            node = old.parent;
        }
    }

    // Checks that the basis is a strongly feasible tree with potentials that fit it, and that the thread is
    // its preorder. Does nothing unless assertions are on.
    void assert_basis() const {
        if constexpr (!kAssertionsOn) return;
        Id previous = root_;
        std::vector<Id> size(index(root_) + 1, 1);
        for (Id node = next_[index(root_)]; node != root_; node = next_[index(node)]) {
            TOPOPLACE_ASSERT(places_[index(node)].previous == previous);
            assert_tree_arc(node);
            previous = node;
        }
        for (Id node = previous; node != root_; node = places_[index(node)].previous) {
            TOPOPLACE_ASSERT(links_[index(node)].size == size[index(node)]);
            size[index(links_[index(node)].parent)] += size[index(node)];
        }
        TOPOPLACE_ASSERT(size[index(root_)] == root_ + 1);  // the thread passes every node
    }

    void assert_tree_arc(Id node) const {
        const Link& link = links_[index(node)];
        const Arc& arc = arcs_[index(places_[index(node)].arc)];
        TOPOPLACE_ASSERT((arc.tail == node && arc.head == link.parent) ||
                         (arc.head == node && arc.tail == link.parent));
        TOPOPLACE_ASSERT(reduced_cost(arc) == 0);
        TOPOPLACE_ASSERT(link.up > 0 && link.down >= 0);
    }

    // ---- result ----

    bool needs_artificial_arc() const {
        for (Id node = 0; node < root_; ++node) {
            if (places_[index(node)].arc >= num_arcs_ && carried(node) > 0) return true;
        }
        return false;
    }

    std::vector<std::int64_t> flow() const {
        std::vector<std::int64_t> flow(order_.size());
        for (Id arc = 0; arc < num_arcs_; ++arc) {
            if (turned_[index(arc)]) flow[index(order_[index(arc)])] = capacity_of(arc);
        }
        for (Id node = 0; node < root_; ++node) {
            const Id arc = places_[index(node)].arc;
            if (arc >= num_arcs_) continue;
            TOPOPLACE_ASSERT(carried(node) <= capacity_of(arc));
            flow[index(order_[index(arc)])] =
                turned_[index(arc)] ? capacity_of(arc) - carried(node) : carried(node);
        }
        return flow;
    }

    const Problem& problem_;
    WorkMeter& meter_;
    Id root_;
    Id num_arcs_;  // the artificial ones follow
    Id block_;
    Id next_arc_ = 0;
    std::uint64_t work_ = 0;
    std::vector<Id> order_;  // the problem's arcs in ours
    std::vector<bool> turned_;
    std::vector<Arc> arcs_;
    std::vector<Link> links_;
    std::vector<Place> places_;
    std::vector<Id> next_;  // in the thread
    std::vector<Number> potential_;
};

constexpr Total kNarrow = Total{1} << 29;  // sums of two still fit 32 bits

bool fits_32_bits(const Problem& problem) {
    Total supplied = 0, dearest = 0;
    for (const std::int64_t supply : problem.supply) supplied += std::max<std::int64_t>(supply, 0);
    for (const std::int64_t cost : problem.cost) dearest = std::max({dearest, Total{cost}, -Total{cost}});
    const std::int64_t widest = problem.capacity.empty() ? 0 : std::ranges::max(problem.capacity);
    return supplied <= kNarrow && widest <= kNarrow &&
           3 * (dearest + 1) * (problem.num_nodes + 1) <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

Solution network_simplex(const Problem& problem, WorkMeter& meter) {
    if (fits_32_bits(problem)) return NetworkSimplex<std::int32_t>(problem, meter).solve();
    return NetworkSimplex<std::int64_t>(problem, meter).solve();
}

}  // namespace topoplace::flow
