#include "match/pattern.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace topoplace::match {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// Breadth-first distances from every vertex, in edges; `size` where there is no path.
std::vector<std::int32_t> all_distances(const Graph& graph) {
    const std::int32_t size = graph.num_vertices();
    std::vector<std::int32_t> distance(at(size) * at(size), size);
    std::vector<std::int32_t> queue;
    for (std::int32_t source = 0; source < size; ++source) {
        const std::span<std::int32_t> row(distance.data() + at(source) * at(size), at(size));
        row[at(source)] = 0;
        queue.assign(1, source);
        for (std::size_t next = 0; next < queue.size(); ++next) {
            for (const std::int32_t v : graph.neighbors(queue[next])) {
                if (row[at(v)] != size) continue;
                row[at(v)] = row[at(queue[next])] + 1;
                queue.push_back(v);
            }
        }
    }
    return distance;
}

}  // namespace

// What costs time and is not always asked for, made on first use.
struct Pattern::Impl::Lazy {
    std::mutex mutex;
    std::optional<StabilizerChain> chain;
    std::vector<std::int32_t> representatives;
    std::vector<std::unique_ptr<Plan>> plans;  // by root; the last one is the natural plan
};

Pattern::Impl::Impl(const Graph& graph)
    : size_(graph.num_vertices()),
      num_edges_(graph.num_edges()),
      distance_(all_distances(graph)),
      lazy_(std::make_shared<Lazy>()) {
    colored_.size = size_;
    for (const std::int32_t d : distance_) colored_.color.push_back(d == 1 ? 1 : 0);
    for (std::int32_t u = 0; u < size_; ++u) {
        for (const std::int32_t v : graph.neighbors(u)) neighbors_.push(v);
        neighbors_.close_row();
        if (degree(u) > max_degree_) {
            max_degree_ = degree(u);
            root_ = u;
        }
    }
    lazy_->plans.resize(at(size_) + 1);
}

const StabilizerChain& Pattern::Impl::natural_chain() const {
    if (!lazy_->chain) {
        std::vector<std::int32_t> ids(at(size_));
        std::iota(ids.begin(), ids.end(), 0);
        lazy_->chain = stabilizer_chain(colored_, ids);
        const auto orbit = orbits_of(size_, lazy_->chain->generators);
        for (std::int32_t u = 0; u < size_; ++u) {
            if (orbit[at(u)] == u) lazy_->representatives.push_back(u);
        }
    }
    return *lazy_->chain;
}

std::span<const std::int32_t> Pattern::Impl::representatives() const {
    const std::lock_guard lock(lazy_->mutex);
    natural_chain();
    return lazy_->representatives;
}

double Pattern::Impl::num_automorphisms() const {
    const std::lock_guard lock(lazy_->mutex);
    return natural_chain().order;
}

const Plan& Pattern::Impl::rooted(std::int32_t root) const {
    const std::lock_guard lock(lazy_->mutex);
    auto& plan = lazy_->plans[at(root)];
    if (!plan) plan = std::make_unique<Plan>(make_plan(order_from(root)));
    return *plan;
}

const Plan& Pattern::Impl::natural() const {
    const std::lock_guard lock(lazy_->mutex);
    auto& plan = lazy_->plans[at(size_)];
    if (!plan) {
        std::vector<std::int32_t> ids(at(size_));
        std::iota(ids.begin(), ids.end(), 0);
        plan = std::make_unique<Plan>(make_plan(ids));
    }
    return *plan;
}

// Next comes the vertex with the most placed neighbours, then the largest degree, then the smallest id.
std::vector<std::int32_t> Pattern::Impl::order_from(std::int32_t root) const {
    std::vector<std::int32_t> order;
    std::vector<std::int32_t> placed_neighbors(at(size_), 0);
    std::vector<bool> placed(at(size_), false);
    for (std::int32_t next = root; static_cast<std::int32_t>(order.size()) < size_;) {
        order.push_back(next);
        placed[at(next)] = true;
        for (const std::int32_t v : neighbors(next)) ++placed_neighbors[at(v)];
        next = -1;
        for (std::int32_t u = 0; u < size_; ++u) {
            if (placed[at(u)]) continue;
            const auto rank = [&](std::int32_t x) { return std::array{placed_neighbors[at(x)], degree(x)}; };
            if (next < 0 || rank(u) > rank(next)) next = u;
        }
    }
    return order;
}

Plan Pattern::Impl::make_plan(const std::vector<std::int32_t>& order) const {
    Plan plan;
    plan.order = order;
    const StabilizerChain& ids = natural_chain();
    const StabilizerChain along = stabilizer_chain(colored_, order);
    const auto holds = [](const std::vector<std::int32_t>& orbit, std::int32_t u) {
        return std::binary_search(orbit.begin(), orbit.end(), u);
    };
    // The depth from which on everything still to be placed lies in the orbit of order[i].
    std::vector<std::int32_t> settled_from(at(size_), 0);
    for (std::int32_t i = 0; i < size_; ++i) {
        for (std::int32_t d = i + 1; d < size_; ++d) {
            if (!holds(along.orbit[at(i)], order[at(d)])) settled_from[at(i)] = d + 1;
        }
    }
    for (std::int32_t d = 0; d < size_; ++d) {
        const std::int32_t u = order[at(d)];
        for (std::int32_t i = 0; i < d; ++i) {
            const std::int32_t v = order[at(i)];
            (adjacent(u, v) ? plan.back : plan.apart).push(i);
            if (v < u && holds(ids.orbit[at(v)], u)) plan.greater.push(i);
            if (u < v && holds(ids.orbit[at(u)], v)) plan.less.push(i);
            if (holds(along.orbit[at(i)], u)) plan.siblings.push(i);
            if (d >= settled_from[at(i)]) plan.settled.push(i);
        }
        add_reach(plan, d);
        for (auto* rows :
             {&plan.back, &plan.apart, &plan.greater, &plan.less, &plan.siblings, &plan.settled}) {
            rows->close_row();
        }
        plan.reach.close_row();
    }
    for (std::int32_t d = 0; d <= size_; ++d) add_counts(plan, d);
    return plan;
}

// A limit through w' (d(u, w') + d(w', w) = d(u, w)) follows from the limits to and from w'.
void Pattern::Impl::add_reach(Plan& plan, std::int32_t depth) const {
    const std::int32_t u = plan.order[at(depth)];
    const auto placed = std::span(plan.order).first(at(depth));
    for (std::int32_t i = 0; i < depth; ++i) {
        const std::int32_t w = plan.order[at(i)];
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
    std::vector<std::int32_t> at_least(at(max_degree_), 0);
    std::vector<bool> placed(at(size_), false);
    for (std::int32_t i = 0; i < depth; ++i) placed[at(plan.order[at(i)])] = true;
    std::int32_t covered = 0;
    for (std::int32_t i = 0; i < size_; ++i) {
        const std::int32_t u = plan.order[at(i)];
        if (i >= depth) {
            for (std::int32_t j = 0; j < degree(u); ++j) ++at_least[at(j)];
            continue;
        }
        const auto row = neighbors(u);
        const auto inside = static_cast<std::int32_t>(
            std::count_if(row.begin(), row.end(), [&](std::int32_t v) { return placed[at(v)]; }));
        covered += inside;
        plan.open.push(degree(u) - inside);
    }
    plan.open.close_row();
    for (const std::int32_t count : at_least) plan.at_least.push(count);
    plan.at_least.close_row();
    plan.rest.push_back(static_cast<std::int32_t>(num_edges_) - covered / 2);
}

Pattern::Pattern(const Graph& graph) : impl_(std::make_shared<const Impl>(graph)) {}
std::int32_t Pattern::num_vertices() const { return impl_->size(); }
std::int64_t Pattern::num_edges() const { return impl_->num_edges(); }
double Pattern::num_automorphisms() const { return impl_->num_automorphisms(); }

}  // namespace topoplace::match
