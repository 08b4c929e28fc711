// Which item is on which leaf, and which task on which place of it.
#pragma once

#include <span>
#include <vector>

#include "gang_mapping/gang_loads.hpp"
#include "tree_mapping/problem.hpp"

namespace topoplace::gang_mapping {

using tree_mapping::Index;

class Layout {
  public:
    Layout(const GangParams& params, const tree_mapping::Problem& problem);

    Index size() const { return size_; }
    // Items for which a leaf has places, each of at least this speed of its adapter.
    Index room(Index leaf, double gb_per_s) const;
    // The speeds of adapters of the places, the fastest first.
    const std::vector<double>& speeds() const { return speeds_; }
    // Distinct adapters of at least this speed among the places of a leaf.
    void add_adapters(Index leaf, double gb_per_s, std::vector<std::int32_t>& adapters) const;

    // Puts every item on its leaf: those of a leaf, one after the other, on its best places.
    void set(const std::vector<Index>& leaf_of);
    std::vector<std::int32_t> vertices() const;

    Index leaf_of(Index item) const { return leaf_of_[static_cast<std::size_t>(item)]; }
    const std::vector<Index>& items_on(Index leaf) const { return items_on_[static_cast<std::size_t>(leaf)]; }
    bool has_room(Index leaf) const;
    Index leaves_in_use() const { return leaves_in_use_; }

    // A step follows, which `undo` takes back.
    void begin() { last_ = {}; }
    // Each makes a part of the step, and appends the moves of tasks.
    void move_item(Index item, Index leaf, Index first_free, std::vector<Moved>& moves);
    void swap_items(Index one, Index other, std::vector<Moved>& moves);
    // A task with what is on another place of its leaf, perhaps nothing.
    void exchange(std::int32_t task, Index place_of_leaf, std::vector<Moved>& moves);
    Index places_of(Index leaf) const;
    void undo();

  private:
    struct Place {
        std::int32_t vertex = 0;
        std::int32_t task = ports::kNone;
    };
    struct Ranked {
        Index turn = 0;  // vertices before it on the same adapter
        double speed = 0.0;
        std::int32_t vertex = 0, adapter = 0;
    };
    struct Step {
        std::vector<std::pair<std::int32_t, Index>> tasks{};  // and the place of each before
        std::vector<std::pair<Index, Index>> items{};         // and the leaf of each before
    };

    void list_places();
    void rank(std::span<const std::int32_t> vertices);
    void clear();
    void fill(Index leaf);
    void put_task(std::int32_t task, Index place, std::vector<Moved>* moves);
    void put_item(Index item, Index leaf);
    Index first_place(Index leaf) const { return first_place_[static_cast<std::size_t>(leaf)]; }

    const GangParams& params_;
    const tree_mapping::Problem& problem_;
    Index size_;                      // tasks of an item
    std::vector<Place> places_{};     // of all leaves, the best ones of each first
    std::vector<double> speed_of_{};  // of each place: its adapter's
    std::vector<Ranked> ranked_{};    // of one leaf
    std::vector<Index> first_place_{};
    std::vector<double> speeds_{};
    std::vector<Index> place_of_task_{};
    std::vector<Index> leaf_of_{}, position_{};
    std::vector<std::vector<Index>> items_on_{};
    Index leaves_in_use_ = 0;
    Step last_{};
};

}  // namespace topoplace::gang_mapping
