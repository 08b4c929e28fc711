// A pattern's plans: the order of its vertices, and by depth what searches ask again and again.
#include "match/graphs/pattern.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "graph/index.hpp"
#include "topoplace/mutex.hpp"

namespace topoplace::match {
namespace {

bool holds(const std::vector<std::int32_t>& orbit, std::int32_t u) {
    return std::binary_search(orbit.begin(), orbit.end(), u);
}

// By depth i, the depth from which on everything still to be placed lies in the orbit of base[i].
std::vector<std::int32_t> settling_depths(const StabilizerChain& along) {
    std::vector<std::int32_t> settled_from(along.base.size(), 0);
    for (std::size_t i = 0; i < along.base.size(); ++i) {
        for (std::size_t d = i + 1; d < along.base.size(); ++d) {
            if (!holds(along.orbit[i], along.base[d])) settled_from[i] = static_cast<std::int32_t>(d + 1);
        }
    }
    return settled_from;
}

// Breadth-first.
std::optional<std::vector<std::int32_t>> all_distances(const Graph& graph, WorkMeter& meter) {
    const std::int32_t size = graph.num_vertices();
    std::vector<std::int32_t> distance;
    distance.reserve(index(size) * index(size));
    std::vector<std::int32_t> queue;
    for (std::int32_t source = 0; source < size; ++source) {
        if (meter.pass_time(8 * index(size) + 16 * static_cast<std::size_t>(graph.num_edges())))
            return std::nullopt;
        distance.resize(distance.size() + index(size), size);
        const std::span<std::int32_t> row(distance.data() + index(source) * index(size), index(size));
        row[index(source)] = 0;
        queue.assign(1, source);
        for (std::size_t next = 0; next < queue.size(); ++next) {
            for (const std::int32_t v : graph.neighbors(queue[next])) {
                if (row[index(v)] != size) continue;
                row[index(v)] = row[index(queue[next])] + 1;
                queue.push_back(v);
            }
        }
    }
    return distance;
}

}  // namespace

// What costs time and is not always asked for, made on first use.
struct Pattern::Impl::Lazy {
    Mutex mutex;
    std::optional<StabilizerChain> chain;
    std::vector<std::int32_t> representatives;
    std::optional<Spread> spread;
    std::optional<mapping::Source> source;
    std::vector<std::unique_ptr<Plan>> plans;  // by root; the last one is the natural plan
};

Pattern::Impl::Impl(const Graph& graph, std::vector<std::int32_t> distance)
    : graph_(graph),
      size_(graph.num_vertices()),
      num_edges_(graph.num_edges()),
      distance_(std::move(distance)),
      lazy_(std::make_shared<Lazy>()) {
    colored_.size = size_;
    for (const std::int32_t d : distance_) colored_.color.push_back(d == 1 ? 1 : 0);
    for (std::int32_t u = 0; u < size_; ++u) {
        for (const std::int32_t v : graph.neighbors(u)) neighbors_.push(v);
        neighbors_.close_row();
        min_degree_ = u == 0 ? degree(u) : std::min(min_degree_, degree(u));
        if (degree(u) > max_degree_) {
            max_degree_ = degree(u);
            root_ = u;
        }
    }
    lazy_->plans.resize(index(size_) + 1);
}

const StabilizerChain* Pattern::Impl::natural_chain(WorkMeter& meter) const {
    if (!lazy_->chain) {
        std::vector<std::int32_t> ids(index(size_));
        std::iota(ids.begin(), ids.end(), 0);
        lazy_->chain = stabilizer_chain(colored_, ids, meter);
        if (!lazy_->chain) return nullptr;
        const auto orbit = orbits_of(size_, lazy_->chain->generators);
        for (std::int32_t u = 0; u < size_; ++u) {
            if (orbit[index(u)] == u) lazy_->representatives.push_back(u);
        }
        TOPOPLACE_ASSERT(size_ == 0 || lazy_->representatives.front() == 0);
    }
    return &*lazy_->chain;
}

std::span<const std::int32_t> Pattern::Impl::representatives(WorkMeter& meter) const {
    const std::lock_guard lock(lazy_->mutex);
    natural_chain(meter);
    return lazy_->representatives;
}

std::optional<double> Pattern::Impl::num_automorphisms(WorkMeter& meter) const {
    const std::lock_guard lock(lazy_->mutex);
    const StabilizerChain* chain = natural_chain(meter);
    return chain == nullptr ? std::nullopt : std::optional(chain->order);
}

const Plan* Pattern::Impl::rooted(std::int32_t root, WorkMeter& meter) const {
    const std::lock_guard lock(lazy_->mutex);
    auto& plan = lazy_->plans[index(root)];
    if (!plan) plan = make_plan(order_from(root), meter);
    return plan.get();
}

const Plan* Pattern::Impl::natural(WorkMeter& meter) const {
    const std::lock_guard lock(lazy_->mutex);
    auto& plan = lazy_->plans[index(size_)];
    if (!plan) {
        std::vector<std::int32_t> ids(index(size_));
        std::iota(ids.begin(), ids.end(), 0);
        plan = make_plan(ids, meter);
    }
    return plan.get();
}

// Next comes the vertex with the most placed neighbours. Of equals, in a forest the one with the largest
// degree, which settles the most; where there are cycles the one with the fewest edges left open. Then the
// smallest id.
std::vector<std::int32_t> Pattern::Impl::order_from(std::int32_t root) const {
    std::vector<std::int32_t> order;
    std::vector<std::int32_t> placed_neighbors(index(size_), 0);
    std::vector<bool> placed(index(size_), false);
    const bool acyclic = num_edges_ < size_;
    for (std::int32_t next = root; static_cast<std::int32_t>(order.size()) < size_;) {
        order.push_back(next);
        placed[index(next)] = true;
        for (const std::int32_t v : neighbors(next)) ++placed_neighbors[index(v)];
        next = kAbsent;
        for (std::int32_t u = 0; u < size_; ++u) {
            if (placed[index(u)]) continue;
            const auto rank = [&](std::int32_t x) {
                return std::array{placed_neighbors[index(x)], acyclic ? degree(x) : -degree(x)};
            };
            if (next == kAbsent || rank(u) > rank(next)) next = u;
        }
    }
    return order;
}

std::unique_ptr<Plan> Pattern::Impl::make_plan(const std::vector<std::int32_t>& order,
                                               WorkMeter& meter) const {
    TOPOPLACE_ASSERT(is_order(order));
    const StabilizerChain* ids = natural_chain(meter);
    if (ids == nullptr) return nullptr;
    const auto along = stabilizer_chain(colored_, order, meter);
    if (!along) return nullptr;
    auto made = std::make_unique<Plan>();
    Plan& plan = *made;
    plan.order = order;
    const std::vector<std::int32_t> settled_from = settling_depths(*along);
    for (std::int32_t d = 0; d < size_; ++d) {
        if (meter.pass_time(std::uint64_t{64} * index(d) * index(d) / 8 + 256 * index(d))) return nullptr;
        add_relations(plan, d, *ids, *along, settled_from);
        add_reach(plan, d);
        plan.reach.close_row();
    }
    add_followers(plan);
    for (std::int32_t d = 0; d <= size_; ++d) {
        if (meter.pass_time(32 * index(size_) + 8 * static_cast<std::size_t>(num_edges_))) return nullptr;
        add_counts(plan, d);
    }
    TOPOPLACE_ASSERT(plan.rest.front() == num_edges_ && plan.rest.back() == 0);
    TOPOPLACE_ASSERT(std::is_sorted(plan.rest.rbegin(), plan.rest.rend()));
    TOPOPLACE_ASSERT(plan.inner_rest.front() == num_edges_ && plan.inner_rest.back() == 0);
    return made;
}

void Pattern::Impl::add_relations(Plan& plan, std::int32_t depth, const StabilizerChain& ids,
                                  const StabilizerChain& along,
                                  std::span<const std::int32_t> settled_from) const {
    const std::int32_t u = plan.order[index(depth)];
    for (std::int32_t i = 0; i < depth; ++i) {
        const std::int32_t v = plan.order[index(i)];
        (adjacent(u, v) ? plan.back : plan.apart).push(i);
        if (holds(ids.orbit[index(std::min(u, v))], std::max(u, v)))
            (v < u ? plan.greater : plan.less).push(i);
        if (holds(along.orbit[index(i)], u)) plan.siblings.push(i);
        if (depth >= settled_from[index(i)]) plan.settled.push(i);
    }
    for (auto* rows : {&plan.back, &plan.apart, &plan.greater, &plan.less, &plan.siblings, &plan.settled})
        rows->close_row();
}

// Every vertex once.
bool Pattern::Impl::is_order(std::vector<std::int32_t> order) const {
    std::sort(order.begin(), order.end());
    for (std::int32_t u = 0; u < size_; ++u) {
        if (std::ssize(order) != size_ || order[index(u)] != u) return false;
    }
    return true;
}

void Pattern::Impl::add_followers(Plan& plan) const {
    plan.followers.assign(index(size_), 0);
    for (std::int32_t d = 0; d < size_; ++d) {
        for (const std::int32_t i : plan.greater[d]) ++plan.followers[index(i)];
    }
}

// A limit through w' (d(u, w') + d(w', w) = d(u, w)) follows from the limits to and from w'.
void Pattern::Impl::add_reach(Plan& plan, std::int32_t depth) const {
    const std::int32_t u = plan.order[index(depth)];
    const auto placed = std::span(plan.order).first(index(depth));
    for (std::int32_t i = 0; i < depth; ++i) {
        const std::int32_t w = plan.order[index(i)];
        const std::int32_t radius = distance(u, w);
        const auto through = [&](std::int32_t x) {
            return x != w && distance(u, x) + distance(x, w) == radius;
        };
        if (radius > 1 && radius < size_ && std::none_of(placed.begin(), placed.end(), through)) {
            plan.reach.push({i, radius});
        }
    }
}

void Pattern::Impl::add_counts(Plan& plan, std::int32_t depth) const {
    std::vector<bool> placed(index(size_), false);
    for (std::int32_t i = 0; i < depth; ++i) placed[index(plan.order[index(i)])] = true;
    std::int32_t top = 0;
    for (std::int32_t i = depth; i < size_; ++i) top = std::max(top, degree(plan.order[index(i)]));
    std::vector<std::int32_t> all(index(top), 0);
    std::vector<std::int32_t> outer = all;
    std::vector<std::int32_t> inner = all;
    std::int32_t frontier = 0;
    std::int32_t inside = 0;
    for (std::int32_t i = 0; i < size_; ++i) {
        const std::int32_t u = plan.order[index(i)];
        const auto row = neighbors(u);
        const auto to_placed = static_cast<std::int32_t>(
            std::count_if(row.begin(), row.end(), [&](std::int32_t v) { return placed[index(v)]; }));
        if (i < depth) {
            plan.open.push(degree(u) - to_placed);
            frontier += degree(u) - to_placed;
            continue;
        }
        inside += degree(u) - to_placed;
        std::for_each_n(all.begin(), degree(u), [](auto& count) { ++count; });
        std::for_each_n(outer.begin(), to_placed, [](auto& count) { ++count; });
        std::for_each_n(inner.begin(), degree(u) - to_placed, [](auto& count) { ++count; });
    }
    plan.open.close_row();
    plan.at_least.push_row(all);
    plan.outer_at_least.push_row(outer);
    plan.inner_at_least.push_row(inner);
    TOPOPLACE_ASSERT(frontier >= 0 && inside % 2 == 0);
    plan.rest.push_back(frontier + inside / 2);
    plan.inner_rest.push_back(inside / 2);
}

const Spread& Pattern::Impl::spread() const {
    const std::lock_guard lock(lazy_->mutex);
    if (!lazy_->spread) lazy_->spread.emplace(neighbors_, size_);
    return *lazy_->spread;
}

const mapping::Source& Pattern::Impl::source() const {
    const std::lock_guard lock(lazy_->mutex);
    if (!lazy_->source) {
        std::vector<Edge> edges;
        for (std::int32_t u = 0; u < size_; ++u) {
            for (const std::int32_t v : neighbors(u)) {
                if (u < v) edges.push_back({u, v});
            }
        }
        lazy_->source.emplace(Graph(size_, edges));
    }
    return *lazy_->source;
}

Pattern::Pattern(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Pattern::Pattern(const Graph& graph) : Pattern(*make(graph, {})) {}
Fault Pattern::check(const Graph& graph) {
    if (graph.num_vertices() <= kMaxPatternVertices) return std::nullopt;
    return "the pattern has " + std::to_string(graph.num_vertices()) + " vertices; at most " +
           std::to_string(kMaxPatternVertices) + " can be searched for";
}
std::optional<Pattern> Pattern::make(const Graph& graph, const StopCondition& stop) {
    TOPOPLACE_ASSERT(!check(graph));
    WorkMeter meter(stop);
    auto distance = all_distances(graph, meter);
    if (!distance) return std::nullopt;
    return Pattern(std::make_shared<const Impl>(graph, std::move(*distance)));
}
std::int32_t Pattern::num_vertices() const { return impl_->size(); }
std::int64_t Pattern::num_edges() const { return impl_->num_edges(); }
std::optional<double> Pattern::num_automorphisms(const StopCondition& stop) const {
    WorkMeter meter(stop);
    return impl_->num_automorphisms(meter);
}

}  // namespace topoplace::match
