// Packs spanning trees: the bound says how many, edge splitting removes vertices that only forward, and trees
// grow hop by hop.
//
// Trees of a root grow together, as one batch, and part where a hop has no room for all of them. A hop x-y
// may be taken by as many trees as the cuts between x and y can spare: every other batch that is not finished
// has to leave the set of what it reached, so with a source that feeds x without limit and every other
// batch's number into what it reached, the maximum flow to y less these numbers is what is spare (Berczi and
// Frank 2010, as ForestColl uses it).
#include "topoplace/tree_packing.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "collective/max_flow.hpp"
#include "collective/switch_free_graph.hpp"
#include "graph/index.hpp"

namespace topoplace::collective {

namespace {

constexpr std::int32_t kMaxVertices = 512;
constexpr std::int64_t kPlenty = std::int64_t{1} << 60;

// The vertices that take part: the chosen terminals first, then those that forward.
class Members {
  public:
    Members(const TerminalGraph& graph, const CutParams& params)
        : number_(index(graph.num_vertices()), kAbsent) {
        for (const std::int32_t v : params.chosen) add(v);
        for (std::int32_t v = 0; v < graph.num_vertices(); ++v) {
            const bool forwards = v >= graph.num_terminals() || params.relay_others;
            if (forwards && number_[index(v)] == kAbsent) add(v);
        }
    }
    std::int32_t size() const { return static_cast<std::int32_t>(names_.size()); }
    std::int32_t number(std::int32_t vertex) const { return number_[index(vertex)]; }
    std::int32_t name(std::int32_t number) const { return names_[index(number)]; }
    bool has(const Arc& arc) const {
        return number(arc.tail) != kAbsent && number(arc.head) != kAbsent && arc.capacity > 0;
    }

  private:
    void add(std::int32_t vertex) {
        number_[index(vertex)] = size();
        names_.push_back(vertex);
    }
    std::vector<std::int32_t> number_;
    std::vector<std::int32_t> names_;
};

Fault check_balance(const TerminalGraph& graph, const Members& members, std::size_t terminals) {
    std::vector<std::int64_t> surplus(index(members.size()), 0);
    for (const Arc& arc : graph.arcs()) {
        if (!members.has(arc)) continue;
        surplus[index(members.number(arc.head))] += arc.capacity;
        surplus[index(members.number(arc.tail))] -= arc.capacity;
    }
    for (std::size_t v = terminals; v < surplus.size(); ++v) {
        if (surplus[v] == 0) continue;
        return "vertex " + std::to_string(members.name(static_cast<std::int32_t>(v))) +
               " only forwards, and " + std::to_string(surplus[v]) +
               " more of capacity lead into it than out of it";
    }
    return std::nullopt;
}

// Trees of one root that have the same hops so far.
struct Batch {
    std::int32_t root = 0;
    std::int64_t count = 0;
    std::vector<std::int32_t> depth{};  // hops from the root, absent where it has not been
    std::vector<std::pair<std::int32_t, std::int32_t>> hops{};
    std::vector<bool> refused{};  // pairs that have nothing to spare
};

class Growth {
  public:
    Growth(SwitchFreeGraph& graph, std::int64_t per_root, WorkMeter& meter)
        : graph_(graph), size_(graph.terminals()), per_root_(per_root), meter_(meter), flow_(2 * size_ + 1) {
        for (std::int32_t v = 0; v < size_; ++v) feeds_.push_back(flow_.add(source(), v));
        for (std::int32_t u = 0; u < size_; ++u) {
            for (std::int32_t v = 0; v < size_; ++v) {
                if (u != v && graph.capacity(u, v) > 0) arcs_.push_back({u, v, flow_.add(u, v)});
            }
        }
    }

    // Trees of all roots; none when the search was stopped.
    std::vector<Tree> run() {
        if (!grow_all(true) && !grow_all(false)) return {};
        std::vector<Tree> trees;
        for (const Batch& batch : grown_) {
            Tree tree{batch.root, batch.count, {}};
            for (const auto& [from, to] : batch.hops) {
                tree.hops.push_back({from, to, graph_.take(from, to, batch.count)});
            }
            trees.push_back(std::move(tree));
        }
        return trees;
    }
    std::uint64_t flows() const { return flows_; }

  private:
    struct FlowArc {
        std::int32_t from = 0;
        std::int32_t to = 0;
        std::int32_t arc = 0;
    };
    struct Door {
        std::int32_t feed = 0;
        std::vector<std::int32_t> out{};
    };

    // Trusting takes hops without a look at what they leave to other trees, which often goes well; without it
    // only a stop ends the growth early.
    bool grow_all(bool trusting) {
        trusting_ = trusting;
        grown_.clear();
        used_.assign(index(size_) * index(size_), 0);
        for (root_ = 0; root_ < size_; ++root_) {
            waiting_.assign(1, {root_, per_root_, std::vector<std::int32_t>(index(size_), kAbsent), {}, {}});
            waiting_.back().depth[index(root_)] = 0;
            while (!waiting_.empty()) {
                Batch batch = std::move(waiting_.back());
                waiting_.pop_back();
                batch.refused.assign(index(size_) * index(size_), false);
                while (static_cast<std::int32_t>(batch.hops.size()) < size_ - 1) {
                    if (meter_.visit() || !extend(batch)) return false;
                }
                grown_.push_back(std::move(batch));
            }
        }
        return true;
    }

    std::int32_t source() const { return 2 * size_; }
    std::size_t pair(std::int32_t from, std::int32_t to) const { return index(from * size_ + to); }

    // Takes a hop for as many trees as can be; the others wait. False if there is none, which the bound rules
    // out.
    bool extend(Batch& batch) {
        for (;;) {
            const auto [from, to] = widest(batch);
            if (from == kAbsent) return false;
            const std::int64_t most = std::min(left(from, to), batch.count);
            const std::int64_t count = trusting_ ? most : spare(from, to, most);
            if (count == 0) {
                batch.refused[pair(from, to)] = true;
                continue;
            }
            if (count < batch.count) {
                waiting_.push_back({root_, batch.count - count, batch.depth, batch.hops, {}});
                batch.count = count;
            }
            batch.depth[index(to)] = batch.depth[index(from)] + 1;
            batch.hops.emplace_back(from, to);
            used_[pair(from, to)] += count;
            return true;
        }
    }
    std::int64_t left(std::int32_t from, std::int32_t to) const {
        return graph_.capacity(from, to) - used_[pair(from, to)];
    }
    // Of the hops out of what is reached that were not refused, the one with the most capacity left for the
    // batch; of equal ones that nearest to the root.
    std::pair<std::int32_t, std::int32_t> widest(const Batch& batch) const {
        std::pair<std::int32_t, std::int32_t> best{kAbsent, kAbsent};
        std::pair<std::int64_t, std::int32_t> most{0, 0};
        for (const FlowArc& arc : arcs_) {
            if (batch.depth[index(arc.from)] == kAbsent || batch.depth[index(arc.to)] != kAbsent) continue;
            const std::pair key{left(arc.from, arc.to), -batch.depth[index(arc.from)]};
            if (key > most && key.first > 0 && !batch.refused[pair(arc.from, arc.to)]) {
                best = {arc.from, arc.to};
                most = key;
            }
        }
        return best;
    }
    std::int64_t spare(std::int32_t from, std::int32_t to, std::int64_t most) {
        for (const FlowArc& arc : arcs_) flow_.reset(arc.arc, left(arc.from, arc.to));
        for (std::int32_t v = 0; v < size_; ++v) flow_.reset(feeds_[index(v)], v > root_ ? per_root_ : 0);
        std::int64_t others = (size_ - 1 - root_) * per_root_;
        others += feed_waiting();
        flow_.reset(feeds_[index(from)], kPlenty);
        ++flows_;
        return flow_.run(source(), to, others + most) - others;
    }
    // Lets the source feed what each batch that waits has reached, through its own vertex.
    std::int64_t feed_waiting() {
        std::int64_t fed = 0;
        for (std::size_t i = 0; i < waiting_.size(); ++i) {
            if (i == doors_.size()) add_door();
            flow_.reset(doors_[i].feed, waiting_[i].count);
            fed += waiting_[i].count;
            for (std::int32_t v = 0; v < size_; ++v) {
                flow_.reset(doors_[i].out[index(v)], waiting_[i].depth[index(v)] == kAbsent ? 0 : kPlenty);
            }
        }
        for (std::size_t i = waiting_.size(); i < doors_.size(); ++i) {
            flow_.reset(doors_[i].feed, 0);
            for (const std::int32_t arc : doors_[i].out) flow_.reset(arc, 0);
        }
        return fed;
    }
    void add_door() {
        const std::int32_t door = size_ + static_cast<std::int32_t>(doors_.size());
        doors_.push_back({flow_.add(source(), door), {}});
        for (std::int32_t v = 0; v < size_; ++v) doors_.back().out.push_back(flow_.add(door, v));
    }

    SwitchFreeGraph& graph_;
    std::int32_t size_;
    std::int64_t per_root_;
    WorkMeter& meter_;
    MaxFlow flow_;
    std::vector<std::int32_t> feeds_;
    std::vector<FlowArc> arcs_;
    std::vector<Door> doors_;
    std::vector<Batch> waiting_;  // all of the root
    std::vector<Batch> grown_;
    std::vector<std::int64_t> used_;  // trees over each pair
    std::int32_t root_ = 0;
    bool trusting_ = false;
    std::uint64_t flows_ = 0;
};

void name(std::vector<Tree>& trees, const Members& members) {
    for (Tree& tree : trees) {
        tree.root = members.name(tree.root);
        for (TreeHop& hop : tree.hops) {
            hop.from = members.name(hop.from);
            hop.to = members.name(hop.to);
        }
    }
}

}  // namespace

Fault check_trees(const TerminalGraph& graph, const CutParams& params) {
    if (auto fault = check(graph, params)) return fault;
    const Members members(graph, params);
    if (members.size() > kMaxVertices)
        return std::to_string(members.size()) + " vertices take part, more than 512";
    return check_balance(graph, members, params.chosen.size());
}

TreePacking pack_trees(const TerminalGraph& graph, const CutParams& params) {
    TOPOPLACE_ASSERT(!check_trees(graph, params));
    const ThroughputBound bound = throughput_bound(graph, params);
    TreePacking found;
    found.complete = bound.complete;
    found.flows = bound.flows;
    const Members members(graph, params);
    if (bound.capacity == 0 || !bound.complete) return found;
    const std::int64_t common = std::gcd(bound.terminals, bound.capacity);
    std::int64_t unit = bound.capacity / common;
    for (const Arc& arc : graph.arcs()) {
        if (members.has(arc)) unit = std::gcd(unit, arc.capacity);
    }
    found.per_root = bound.capacity / common / unit;
    found.rate_numerator = unit;
    found.rate_denominator = bound.terminals / common;
    WorkMeter meter(params.stop);
    SwitchFreeGraph direct(members.size(), static_cast<std::int32_t>(params.chosen.size()), found.per_root,
                           meter);
    for (const Arc& arc : graph.arcs()) {
        if (!members.has(arc)) continue;
        direct.add(members.number(arc.tail), members.number(arc.head),
                   arc.capacity / unit * found.rate_denominator, arc.tail, arc.head);
    }
    found.complete = direct.split_all();
    found.flows += direct.flows();
    if (!found.complete) return found;
    Growth growth(direct, found.per_root, meter);
    found.trees = growth.run();
    found.complete = !found.trees.empty();
    found.flows += growth.flows();
    name(found.trees, members);
    return found;
}

}  // namespace topoplace::collective
