// The search: images come from the shortest list of a placed neighbour, and from all vertices where there is
// none.
#include "match/sparse/search.hpp"

#include <algorithm>

#include "match/sparse/core.hpp"

namespace topoplace::match::sparse {

Search::Search(const Pattern::Impl& pattern, const Edges& edges, Worth worth,
               std::span<const std::int32_t> free, WorkMeter& meter, double tolerance)
    : pattern_(pattern),
      edges_(edges),
      worth_(worth),
      meter_(meter),
      tolerance_(tolerance),
      size_(pattern.size()),
      state_(index(edges.num_vertices()), 0),
      eliminated_(index(size_)),
      image_(index(size_)),
      found_(index(size_)) {
    std::vector<std::int32_t> degree(state_.size(), kAbsent);
    for (const std::int32_t v : free) degree[index(v)] = 0;
    for (const std::int32_t v : free) {
        if (meter.pass_time(16 + 16 * index(edges.degree(v)))) return;
        degree[index(v)] = 0;
        edges.each_neighbor(v,
                            [&](std::int32_t u) { degree[index(v)] += degree[index(u)] == kAbsent ? 0 : 1; });
    }
    const Needs needs = needs_of(pattern);
    const auto each = [&](std::int32_t v, auto&& visit) { edges.each_neighbor(v, visit); };
    peel(needs.degree, degree, each, meter);
    drop_small_components(needs.component, degree, each, meter);
    if (meter.stopped()) return;
    for (std::size_t v = 0; v < state_.size(); ++v) state_[v] = degree[v] == kAbsent ? 0 : kUsable;
    prepare_tops();
}

// best_top_[n] is kNoScore if no vertex has n neighbours.
void Search::prepare_tops() {
    best_top_.assign(index(pattern_.max_degree()) + 1, kNoScore);
    for (std::int32_t v = 0; v < edges_.num_vertices(); ++v) {
        if (!is_usable(v)) continue;
        const auto heads = edges_.heads(v);
        if (meter_.pass_time(16 + 16 * heads.size())) return;
        Fixed sum = 0;
        std::size_t count = 0;
        best_top_[0] = 0;
        for (std::size_t i = 0; i < heads.size() && count + 1 < best_top_.size(); ++i) {
            if (!is_usable(heads[i])) continue;
            sum += worth(edges_.weights(v)[i]);
            ++count;
            best_top_[count] = std::max(best_top_[count], sum);
        }
    }
}

const Search::Prospects& Search::prospects(const Plan& plan) {
    const auto [entry, is_new] = prospects_.try_emplace(&plan);
    Prospects& ahead = entry->second;
    if (!is_new) return ahead;
    std::vector<std::int32_t> depth_of(index(size_));
    for (std::int32_t d = 0; d < size_; ++d) depth_of[index(plan.order[index(d)])] = d;
    for (std::int32_t d = 0; d <= size_; ++d) {
        Fixed inner = 0;
        Fixed ends = 0;
        for (std::int32_t i = d; i < size_; ++i) {
            const std::int32_t u = plan.order[index(i)];
            std::size_t open = 0;
            for (const std::int32_t v : pattern_.neighbors(u)) open += depth_of[index(v)] >= d ? 1 : 0;
            const Fixed all = best_top_[index(pattern_.degree(u))];
            if (all == kNoScore) inner = ends = kNoScore;
            if (ends == kNoScore) continue;
            ends += all;
            inner += best_top_[open];
        }
        const Fixed heaviest = best_top_.size() > 1 ? best_top_[1] : 0;
        ahead.ends.push_back(ends);
        ahead.inner.push_back(ends == kNoScore ? kNoScore
                                               : std::min(inner / 2, plan.inner_rest[index(d)] * heaviest));
    }
    return ahead;
}

// All usable vertices, the most promising first.
const std::vector<Search::Ranked>& Search::ranked(std::int32_t degree) {
    const auto [entry, is_new] = ranked_.try_emplace(degree);
    std::vector<Ranked>& list = entry->second;
    if (!is_new) return list;
    for (std::int32_t v = 0; v < edges_.num_vertices(); ++v) {
        if (!is_usable(v)) continue;
        meter_.pass_time(64);
        const Fixed most = top(v, degree);
        if (most != kNoScore) list.push_back({most, v});
    }
    std::sort(list.begin(), list.end(), [](const Ranked& a, const Ranked& b) {
        return a.top != b.top ? a.top > b.top : a.vertex < b.vertex;
    });
    return list;
}

void Search::list_ascending() {
    ascending_.clear();
    for (std::int32_t v = 0; v < edges_.num_vertices(); ++v) {
        const bool may_serve = std::ssize(required_) < size_ || (state_[index(v)] & kRequired) != 0;
        if (is_usable(v) && may_serve) ascending_.push_back({std::numeric_limits<Fixed>::max() / 4, v});
    }
}

// Of its heaviest edges that may still be used; kNoScore where there are too few.
Fixed Search::top(std::int32_t v, std::int32_t edges) const {
    if (edges == 0) return 0;
    if (edges_.degree(v) < edges) return kNoScore;
    const auto heads = edges_.heads(v);
    const auto weights = edges_.weights(v);
    Fixed sum = 0;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        if ((state_[index(heads[i])] & (kUsable | kUsed)) != kUsable) continue;
        sum += worth(weights[i]);
        if (--edges == 0) return sum;
    }
    return kNoScore;
}

// `top`: of the vertex placed at this depth.
Fixed Search::promise(std::int32_t depth, const Base& base, Fixed merit, Fixed top) const {
    const std::size_t placed = index(depth) + 1;
    if (top == kNoScore || ahead_->ends[placed] == kNoScore) return kNoScore;
    const Fixed outer = base.outer + top;
    return base.sum + merit + std::min(outer + ahead_->inner[placed], (outer + ahead_->ends[placed]) / 2);
}

// Its `outer` is kNoScore where a placed vertex lacks neighbours.
Search::Base Search::base_of(std::int32_t depth, Fixed sum) const {
    Base base{sum, 0};
    const auto open = plan_->open[depth + 1];
    for (std::int32_t i = 0; i < depth && base.outer != kNoScore; ++i) {
        const Fixed its = top(image_[index(i)], open[index(i)]);
        base.outer = its == kNoScore ? kNoScore : base.outer + its;
    }
    return base;
}

bool Search::may_take(std::int32_t depth, std::int32_t v) const {
    const std::uint64_t state = state_[index(v)];
    if ((state & (kUsable | kUsed | eliminated_[index(depth)])) != kUsable) return false;
    if (missing_ == size_ - depth && (state & kRequired) == 0) return false;
    return depth == 0 || ball_->allows(depth, v);
}

// Every required vertex that is missing can serve at some depth. One alone is the root.
bool Search::required_possible(std::int32_t depth) const {
    if (required_.size() < 2 || depth == 0) return true;
    return std::all_of(required_.begin(), required_.end(), [&](std::int32_t v) {
        if ((state_[index(v)] & kUsed) != 0) return true;
        for (std::int32_t later = depth; later < size_; ++later) {
            if (may_serve(depth, later, v)) return true;
        }
        return false;
    });
}

// The vertex placed at a later depth may go to v, for all that is placed now.
bool Search::may_serve(std::int32_t depth, std::int32_t later, std::int32_t v) const {
    if (edges_.degree(v) < pattern_.degree(plan_->order[index(later)]) || !ball_->allows(later, v))
        return false;
    const auto back = plan_->back[later];
    return std::all_of(back.begin(), back.end(),
                       [&](std::int32_t i) { return i >= depth || edges_.weight(image_[index(i)], v) > 0; });
}

// The weight of the edges to placed vertices; kNoScore where one is missing.
Fixed Search::merit_of(std::int32_t depth, std::int32_t v, std::int32_t pivot, Fixed weight) const {
    Fixed merit = worth(weight);
    for (const std::int32_t i : plan_->back[depth]) {
        const std::int32_t u = image_[index(i)];
        if (u == pivot) continue;
        const Fixed its = edges_.weight(u, v);
        if (its == 0) return kNoScore;
        merit += worth(its);
    }
    return merit;
}

SearchResult Search::run(const Task& task) {
    TOPOPLACE_ASSERT(task.floor > kNoScore && branches_.empty());
    plan_ = &task.plan;
    ahead_ = &prospects(task.plan);
    ball_ = &balls_.try_emplace(&task.plan, task.plan, edges_.num_vertices()).first->second;
    goal_ = task.goal;
    root_ = task.root;
    need_ = task.floor;
    enough_ = task.enough;
    missing_ = static_cast<std::int32_t>(required_.size());
    rest_bound_ = task.enough;
    success_ = done_ = false;
    prepare_depths();
    descend(0, 0);
    const Fixed bound = meter_.stopped() ? std::max(need_ - 1, rest_bound_) : need_ - 1;
    return {.found = success_,
            .vertices = found_,
            .score = score_,
            .need = need_,
            .bound = std::min(enough_, bound)};
}

// While no vertex is used.
void Search::prepare_depths() {
    if (goal_ == Goal::first) list_ascending();
    for (std::int32_t d = 0; d < size_; ++d) {
        const bool from_list = plan_->back[d].empty() && goal_ != Goal::first && (d > 0 || root_ == kAbsent);
        if (from_list) ranked(pattern_.degree(plan_->order[index(d)]));
        eliminated_[index(d)] = 0;
        for (const std::int32_t i : plan_->siblings[d]) eliminated_[index(d)] |= mark_of(i);
    }
}

Fixed Search::bound(const Plan& plan) {
    const Prospects& ahead = prospects(plan);
    return ahead.ends[0] == kNoScore ? kNoScore : std::min(ahead.inner[0], ahead.ends[0] / 2);
}

void Search::descend(std::int32_t depth, Fixed sum) {
    if (meter_.visit()) {
        done_ = true;
        return;
    }
    if (missing_ > size_ - depth || !required_possible(depth)) return;
    const Base base = base_of(depth, sum);
    if (base.outer == kNoScore) return;
    if (depth == 0 && root_ != kAbsent) {
        if (may_take(0, root_)) at(root_);
    } else if (plan_->back[depth].empty()) {
        among_all(depth, base);
    } else {
        among_neighbors(depth, base);
    }
}

void Search::at(std::int32_t root) {
    const Fixed most = promise(0, {0, 0}, 0, top(root, pattern_.degree(plan_->order[0])));
    if (most >= need_) place(0, root, 0);
}

void Search::among_neighbors(std::int32_t depth, const Base& base) {
    std::int32_t pivot = kAbsent;
    for (const std::int32_t i : plan_->back[depth]) {
        const std::int32_t u = image_[index(i)];
        if (pivot == kAbsent || edges_.degree(u) < edges_.degree(pivot)) pivot = u;
    }
    const std::size_t begin = branches_.size();
    const auto heads = edges_.heads(pivot);
    const auto weights = edges_.weights(pivot);
    for (std::size_t i = 0; i < heads.size(); ++i) {
        if (!may_take(depth, heads[i])) continue;
        const Fixed merit = merit_of(depth, heads[i], pivot, weights[i]);
        if (merit != kNoScore) add(depth, base, merit, heads[i]);
    }
    if (meter_.spend(64 * heads.size())) done_ = true;
    const auto first = branches_.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(first, branches_.end(), [this](const Branch& a, const Branch& b) {
        if (goal_ == Goal::first || (a.promise == b.promise && a.merit == b.merit)) return a.image < b.image;
        return a.promise != b.promise ? a.promise > b.promise : a.merit > b.merit;
    });
    follow(depth, begin, base.sum);
    branches_.resize(begin);
}

void Search::add(std::int32_t depth, const Base& base, Fixed merit, std::int32_t v) {
    const std::int32_t u = plan_->order[index(depth)];
    const auto back = static_cast<std::int32_t>(plan_->back[depth].size());
    const Fixed most = promise(depth, base, merit, top(v, pattern_.degree(u) - back));
    if (most >= need_) branches_.push_back({most, merit, v});
}

void Search::follow(std::int32_t depth, std::size_t begin, Fixed sum) {
    const std::size_t end = branches_.size();
    const std::uint64_t mark = mark_of(depth);
    for (std::size_t i = begin; i < end && !done_; ++i) {
        const Branch branch = branches_[i];
        if (branch.promise < need_) continue;
        place(depth, branch.image, sum + branch.merit);
        state_[index(branch.image)] |= mark;
    }
    for (std::size_t i = begin; i < end; ++i) state_[index(branches_[i].image)] &= ~mark;
}

// No edges lead to placed vertices.
void Search::among_all(std::int32_t depth, const Base& base) {
    const std::int32_t degree = pattern_.degree(plan_->order[index(depth)]);
    const std::vector<Ranked>& list = goal_ == Goal::first ? ascending_ : ranked(degree);
    const std::uint64_t mark = mark_of(depth);
    std::size_t tried = 0;
    for (; tried < list.size() && !done_; ++tried) {
        const Fixed limit = goal_ == Goal::first ? list[tried].top : promise(depth, base, 0, list[tried].top);
        if (depth == 0) rest_bound_ = limit;
        if (limit < need_) break;
        const std::int32_t v = list[tried].vertex;
        if (!may_take(depth, v)) continue;
        if (meter_.spend(32)) done_ = true;
        if (promise(depth, base, 0, top(v, degree)) < need_) continue;
        place(depth, v, base.sum);
        state_[index(v)] |= mark;
    }
    for (std::size_t i = 0; i < tried; ++i) state_[index(list[i].vertex)] &= ~mark;
}

void Search::place(std::int32_t depth, std::int32_t v, Fixed sum) {
    image_[index(depth)] = v;
    if (depth + 1 == size_) return accept(sum);
    const bool is_required = (state_[index(v)] & kRequired) != 0;
    state_[index(v)] |= kUsed;
    missing_ -= is_required ? 1 : 0;
    if (depth == 0) {
        ball_->center(v, [this](std::int32_t x, auto&& see) { edges_.each_neighbor(x, see); }, meter_);
    }
    descend(depth + 1, sum);
    missing_ += is_required ? 1 : 0;
    state_[index(v)] &= ~kUsed;
}

void Search::accept(Fixed value) {
    TOPOPLACE_ASSERT(value >= need_ && value <= enough_);
    success_ = true;
    score_ = value;
    for (std::int32_t d = 0; d < size_; ++d) found_[index(plan_->order[index(d)])] = image_[index(d)];
    need_ = raised(value, tolerance_) + 1;
    done_ = goal_ != Goal::best || need_ > enough_;
}

}  // namespace topoplace::match::sparse
