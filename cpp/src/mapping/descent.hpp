// One descent of the tasks down the tree of a target's halves, kept to a region.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "mapping/problem/problem.hpp"
#include "topoplace/partition.hpp"

namespace topoplace::mapping {

// The mean distance between different members of two sets, each seen through a few evenly spaced ones.
double mean_distance(const Problem& problem, std::span<const std::int32_t> some,
                     std::span<const std::int32_t> others);

// The mean distance from a vertex to the next in the tree's order: how far tasks are apart that stay together
// on the way down.
double distance_of_neighbors(const Problem& problem, std::span<const std::int32_t> vertices);

// Vertices of a problem in the order of the tree's leaves, so that those below a part are a range.
class TreeOrder {
  public:
    TreeOrder(const Problem& problem, const Halves& halves);

    const Halves& halves() const { return halves_; }
    void restrict_to(std::span<const std::int32_t> region);
    // Those of the region below a part.
    std::span<const std::int32_t> below(std::int32_t part) const;

  private:
    const Halves& halves_;
    std::vector<std::int32_t> leaf_of_;   // by vertex of the problem
    std::vector<std::int32_t> leaves_;    // of the region, ascending
    std::vector<std::int32_t> vertices_;  // on these leaves
};

// As many tasks to each half as there is room for, at most. That is no less than its rounded share.
void set_limits(const std::array<std::int32_t, 2>& room, std::int32_t tasks,
                partition::BipartitionParams& params);

// How more than a few tasks are divided between two halves.
enum class Dividing {
    cut,         // all at once, where little crosses
    one_by_one,  // each to the half where it costs less
};

class Descent {
  public:
    // Tasks up to which each goes to its half alone in any case.
    static constexpr std::size_t kFew = 8;

    Descent(const Problem& problem, const Halves& halves);

    // One-to-one into the region, which has room for all tasks. Null where `meter` stops on the way.
    const Places* run(std::span<const std::int32_t> region, Dividing dividing, WorkMeter& meter);

  private:
    using Tasks = std::span<std::int32_t>;
    using Vertices = std::span<const std::int32_t>;

    // A part about to be divided.
    struct Division {
        std::int32_t part;
        std::array<std::int32_t, 2> half;
        std::array<std::int32_t, 2> room;
        std::array<double, 2> within;  // between neighbours inside a half
        double across;                 // between the halves
    };

    // These end early where the meter stops.
    void descend(std::int32_t part, Tasks tasks);
    void divide(std::int32_t part, Tasks tasks);
    void assign(Division& division, Tasks tasks);
    bool cut(const Division& division, Tasks tasks);
    std::vector<Edge> ties(const Division& division, Tasks tasks, double gap);
    bool is_open(std::int32_t task, const Division& division) const;
    double cost_outside(std::int32_t task, const Division& division, std::size_t side) const;
    int cheaper_half(std::int32_t task, const Division& division, std::int32_t tasks_left) const;
    double cost_in(std::int32_t task, int side, const Division& division, std::int32_t tasks_left) const;
    void settle(std::int32_t task, Vertices vertices);
    // Where a task is known to be.
    Vertices around(const std::int32_t& task) const;
    double mean_price(Vertices vertices) const;

    const Problem& problem_;
    Dividing dividing_ = Dividing::cut;
    TreeOrder tree_;
    std::vector<std::int32_t> tasks_;
    std::vector<std::int32_t> part_of_;  // by task: the smallest part it is known to be in
    Places places_;                      // kAbsent: not settled
    std::vector<std::int32_t> place_in_span_;
    WorkMeter* meter_ = nullptr;  // of the current run
    partition::BipartitionWorkspace workspace_;
};

}  // namespace topoplace::mapping
