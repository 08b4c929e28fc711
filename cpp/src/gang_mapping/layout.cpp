// Places of leaves: those on adapters of their own first, fast ones before slow ones.
#include "gang_mapping/layout.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

#include "graph/index.hpp"

namespace topoplace::gang_mapping {

Layout::Layout(const GangParams& params, const tree_mapping::Problem& problem)
    : params_(params),
      problem_(problem),
      size_(problem.items == 0 ? 1 : static_cast<Index>(params.tasks.size()) / problem.items),
      place_of_task_(params.tasks.size(), ports::kNone),
      leaf_of_(index(problem.items), ports::kNone),
      position_(index(problem.items), 0),
      items_on_(index(problem.leaves)) {
    list_places();
}

void Layout::list_places() {
    first_place_.push_back(0);
    std::int64_t begin = 0;
    for (const std::int64_t end : params_.leaf_ends) {
        const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
        rank(params_.places.subspan(first, count));
        for (const Ranked& one : ranked_) {
            places_.push_back({one.vertex, ports::kNone});
            speed_of_.push_back(one.speed);
            if (std::ranges::find(speeds_, one.speed) == speeds_.end()) speeds_.push_back(one.speed);
        }
        first_place_.push_back(static_cast<Index>(places_.size()));
        begin = end;
    }
    std::ranges::sort(speeds_, std::ranges::greater{});
}

// One vertex of each adapter, then a second one of each, and so on, each time the fastest first.
void Layout::rank(std::span<const std::int32_t> vertices) {
    ranked_.clear();
    for (const std::int32_t vertex : vertices) {
        const std::int32_t adapter = params_.network->vertex(vertex).adapter;
        const double speed = adapter == ports::kNone ? 0.0 : params_.network->ports().gb_per_s(adapter);
        ranked_.push_back({.turn = 0, .speed = speed, .vertex = vertex, .adapter = adapter});
    }
    if (!std::ranges::is_sorted(ranked_, {}, &Ranked::vertex))
        std::ranges::sort(ranked_, {}, &Ranked::vertex);
    for (auto one = ranked_.begin(); one != ranked_.end(); ++one) {
        one->turn = static_cast<Index>(std::count_if(
            ranked_.begin(), one, [&](const Ranked& other) { return other.adapter == one->adapter; }));
    }
    std::ranges::sort(ranked_, {},
                      [](const Ranked& one) { return std::tuple(one.turn, -one.speed, one.vertex); });
}

Index Layout::places_of(Index leaf) const { return first_place(leaf + 1) - first_place(leaf); }

Index Layout::room(Index leaf, double gb_per_s) const {
    Index fast = 0;
    for (Index i = first_place(leaf); i < first_place(leaf + 1); ++i)
        fast += speed_of_[index(i)] >= gb_per_s ? 1 : 0;
    return std::min(fast / size_, problem_.room[index(leaf)]);
}

void Layout::add_adapters(Index leaf, double gb_per_s, std::vector<std::int32_t>& adapters) const {
    for (Index i = first_place(leaf); i < first_place(leaf + 1); ++i) {
        const std::int32_t adapter = params_.network->vertex(places_[index(i)].vertex).adapter;
        if (speed_of_[index(i)] < gb_per_s || std::ranges::find(adapters, adapter) != adapters.end())
            continue;
        adapters.push_back(adapter);
    }
}

void Layout::clear() {
    for (const Index place : place_of_task_) {
        if (place != ports::kNone) places_[index(place)].task = ports::kNone;
    }
    for (const Index leaf : leaf_of_) {
        if (leaf != ports::kNone) items_on_[index(leaf)].clear();
    }
}

void Layout::set(const std::vector<Index>& leaf_of) {
    clear();
    leaf_of_ = leaf_of;
    std::vector<Index> in_use;
    for (Index item = 0; item < problem_.items; ++item) {
        auto& here = items_on_[index(leaf_of[index(item)])];
        if (here.empty()) in_use.push_back(leaf_of[index(item)]);
        position_[index(item)] = static_cast<Index>(here.size());
        here.push_back(item);
    }
    leaves_in_use_ = static_cast<Index>(in_use.size());
    for (const Index leaf : in_use) fill(leaf);
}

// The items of a leaf get its best places, by their vertices.
void Layout::fill(Index leaf) {
    const auto& here = items_on_[index(leaf)];
    std::vector<Index> chosen(here.size() * index(size_));
    std::iota(chosen.begin(), chosen.end(), first_place(leaf));
    std::ranges::sort(chosen, {}, [this](Index one) { return places_[index(one)].vertex; });
    std::size_t next = 0;
    for (const Index item : here) {
        for (Index i = 0; i < size_; ++i) {
            put_task(params_.tasks[index(item * size_ + i)], chosen[next++], nullptr);
        }
    }
}

std::vector<std::int32_t> Layout::vertices() const {
    std::vector<std::int32_t> found;
    for (const Index place : place_of_task_) found.push_back(places_[index(place)].vertex);
    return found;
}

bool Layout::has_room(Index leaf) const {
    const auto count = static_cast<Index>(items_on(leaf).size());
    return count < problem_.room[index(leaf)] && (count + 1) * size_ <= places_of(leaf);
}

void Layout::put_task(std::int32_t task, Index place, std::vector<Moved>* moves) {
    places_[index(place)].task = task;
    place_of_task_[index(task)] = place;
    if (moves != nullptr) moves->push_back({task, places_[index(place)].vertex});
}

void Layout::put_item(Index item, Index leaf) {
    auto& old = items_on_[index(leaf_of_[index(item)])];
    old[index(position_[index(item)])] = old.back();
    position_[index(old.back())] = position_[index(item)];
    old.pop_back();
    leaves_in_use_ -= old.empty() ? 1 : 0;
    auto& here = items_on_[index(leaf)];
    leaves_in_use_ += here.empty() ? 1 : 0;
    position_[index(item)] = static_cast<Index>(here.size());
    here.push_back(item);
    leaf_of_[index(item)] = leaf;
}

// On free places of the leaf, beginning with one of them.
void Layout::move_item(Index item, Index leaf, Index first_free, std::vector<Moved>& moves) {
    last_.items.emplace_back(item, leaf_of_[index(item)]);
    const Index count = places_of(leaf);
    Index offset = first_free;
    for (Index i = 0; i < size_; ++i) {
        const std::int32_t task = params_.tasks[index(item * size_ + i)];
        last_.tasks.emplace_back(task, place_of_task_[index(task)]);
        while (places_[index(first_place(leaf) + offset)].task != ports::kNone) offset = (offset + 1) % count;
        places_[index(place_of_task_[index(task)])].task = ports::kNone;
        put_task(task, first_place(leaf) + offset, &moves);
    }
    put_item(item, leaf);
}

void Layout::swap_items(Index one, Index other, std::vector<Moved>& moves) {
    const Index here = leaf_of_[index(one)], there = leaf_of_[index(other)];
    last_.items.emplace_back(one, here);
    last_.items.emplace_back(other, there);
    for (Index i = 0; i < size_; ++i) {
        const std::int32_t ours = params_.tasks[index(one * size_ + i)];
        const std::int32_t theirs = params_.tasks[index(other * size_ + i)];
        const Index our_place = place_of_task_[index(ours)], their_place = place_of_task_[index(theirs)];
        last_.tasks.emplace_back(ours, our_place);
        last_.tasks.emplace_back(theirs, their_place);
        put_task(ours, their_place, &moves);
        put_task(theirs, our_place, &moves);
    }
    put_item(one, there);
    put_item(other, here);
}

void Layout::exchange(std::int32_t task, Index place_of_leaf, std::vector<Moved>& moves) {
    const Index from = place_of_task_[index(task)];
    const auto after = std::ranges::upper_bound(first_place_, from);
    const Index to = *(after - 1) + place_of_leaf;
    const std::int32_t other = places_[index(to)].task;
    last_.tasks.emplace_back(task, from);
    if (other == task) return;
    places_[index(from)].task = ports::kNone;
    put_task(task, to, &moves);
    if (other == ports::kNone) return;
    last_.tasks.emplace_back(other, to);
    put_task(other, from, &moves);
}

void Layout::undo() {
    for (const auto& [task, _] : last_.tasks) places_[index(place_of_task_[index(task)])].task = ports::kNone;
    for (const auto& [task, place] : last_.tasks) put_task(task, place, nullptr);
    for (const auto& [item, leaf] : last_.items) put_item(item, leaf);
}

}  // namespace topoplace::gang_mapping
