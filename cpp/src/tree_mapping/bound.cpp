// Bounds by single items: of an item's neighbours, a domain can have only as many as its room admits; what it
// exchanges with the others passes its own ports of all depths above, at best at their fastest leaf.
#include "tree_mapping/bound.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace topoplace::tree_mapping {
namespace {

constexpr std::uint64_t kStepsPerAmount = 50;  // of `WorkMeter`, each a fifth of a nanosecond

// The most other items that any domain of each depth holds beside one.
std::vector<std::int64_t> most_beside(const Problem& problem) {
    std::vector<std::int64_t> rooms(problem.parent.size(), 0), most(at(problem.depth) + 1, 0);
    for (Index leaf = 0; leaf < problem.leaves; ++leaf) {
        for (Index depth = 0; depth <= problem.depth; ++depth) {
            std::int64_t& room = rooms[at(problem.above[at(depth)][at(leaf)])];
            room += problem.room[at(leaf)];
            most[at(depth)] = std::max(most[at(depth)], room - 1);
        }
    }
    return most;
}

// Seconds of a GB that an item exchanges beyond a domain of each depth, at the least: it meets at smaller
// depths, whose own ports work side by side, each at best at its fastest leaf.
std::vector<double> least_per_gb(const Problem& problem) {
    std::vector<double> least(at(problem.depth) + 1, 0.0);
    std::vector<std::uint8_t> counted(at(problem.classes), 0);
    double gb_per_s = 0.0;
    for (Index depth = 0; depth < problem.depth; ++depth) {
        const Index own = problem.own_class[at(depth)];
        if (counted[at(own)] == 0) {
            counted[at(own)] = 1;
            const auto begin = problem.own_per_gb.begin() + static_cast<std::ptrdiff_t>(own) * problem.leaves;
            gb_per_s += 1.0 / *std::min_element(begin, begin + problem.leaves);
        }
        least[at(depth) + 1] = 1.0 / gb_per_s;
    }
    return least;
}

// Seconds of one edge's GB beyond a domain of each depth: all of it passes one port.
std::vector<double> least_of_edge(const Problem& problem) {
    std::vector<double> least(at(problem.depth) + 1, std::numeric_limits<double>::infinity());
    for (Index depth = 0; depth < problem.depth; ++depth) {
        const auto begin = problem.own_per_gb.begin() +
                           static_cast<std::ptrdiff_t>(problem.own_class[at(depth)]) * problem.leaves;
        least[at(depth) + 1] = std::min(least[at(depth)], *std::min_element(begin, begin + problem.leaves));
    }
    return least;
}

// GB that an item exchanges with all but `kept` neighbours, those with which it exchanges the most. Changes
// the order of the amounts.
double beyond(std::span<double> amounts, std::int64_t kept) {
    const auto rest = static_cast<std::int64_t>(amounts.size()) - kept;
    if (rest <= 0) return 0.0;
    const auto end = amounts.begin() + static_cast<std::ptrdiff_t>(rest);
    if (end != amounts.end()) std::nth_element(amounts.begin(), end, amounts.end());
    return std::accumulate(amounts.begin(), end, 0.0);
}

class Bounds {
  public:
    explicit Bounds(const Problem& problem)
        : problem_(problem),
          beside_(most_beside(problem)),
          per_gb_(least_per_gb(problem)),
          edge_per_gb_(least_of_edge(problem)) {}

    // Of an item that exchanges so much with each neighbour.
    double seconds(std::span<double> amounts) const {
        double most = 0.0;
        for (Index depth = 1; depth <= problem_.depth; ++depth) {
            most = std::max(most, beyond(amounts, beside_[at(depth)]) * per_gb_[at(depth)]);
        }
        return most;
    }

    // Of one edge between items that are on different leaves, as so many do not fit on one.
    double seconds_of_one(double half, Index items) const {
        for (Index depth = 1; depth <= problem_.depth; ++depth) {
            if (beside_[at(depth)] + 1 < items) return half * edge_per_gb_[at(depth)];
        }
        return 0.0;
    }

  private:
    const Problem& problem_;
    std::vector<std::int64_t> beside_;
    std::vector<double> per_gb_, edge_per_gb_;
};

class ItemAmounts {
  public:
    explicit ItemAmounts(Index items) : sums_(at(items), 0.0) {}

    // What an item exchanges with each neighbour.
    std::span<double> of(std::span<const Neighbour> around) {
        found_.clear();
        for (const Neighbour& one : around) sums_[at(one.item)] += one.half;
        for (const Neighbour& one : around) {
            double& sum = sums_[at(one.item)];
            if (sum > 0.0) found_.push_back(sum);
            sum = 0.0;
        }
        return found_;
    }

  private:
    std::vector<double> sums_, found_;
};

// If a phase joins all items and no leaf has room for them, some edge of it passes own ports.
double of_joined(const Problem& problem, const Bounds& bounds, Index phase, WorkMeter& meter) {
    const std::int64_t begin = phase == 0 ? 0 : problem.phase_ends[at(phase - 1)];
    if (problem.phase_ends[at(phase)] - begin < problem.items - 1) return 0.0;
    std::vector<Index> root(at(problem.items));
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](Index item) {
        while (root[at(item)] != item) item = root[at(item)] = root[at(root[at(item)])];
        return item;
    };
    Index parts = problem.items;
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t i = begin; i < problem.phase_ends[at(phase)]; ++i) {
        if (meter.pass_time(kStepsPerAmount)) return 0.0;
        const auto edge = static_cast<std::size_t>(i);
        const Index one = find(problem.from[edge]), other = find(problem.to[edge]);
        if (one != other) --parts;
        root[at(one)] = other;
        least = std::min(least, problem.half(edge));
    }
    return parts > 1 ? 0.0 : bounds.seconds_of_one(least, problem.items);
}

// Raises the seconds of each phase to those of an item's neighbours, which are in the order of their phases.
void raise_to(const Bounds& bounds, ItemAmounts& amounts, std::span<const Neighbour> around,
              std::vector<double>& seconds) {
    while (!around.empty()) {
        const Index phase = around.front().phase;
        const auto end =
            std::ranges::find_if(around, [&](const Neighbour& one) { return one.phase > phase; });
        const auto count = static_cast<std::size_t>(end - around.begin());
        double& most = seconds[at(phase)];
        most = std::max(most, bounds.seconds(amounts.of(around.first(count))));
        around = around.subspan(count);
    }
}

}  // namespace

Least least_times(const Problem& problem, WorkMeter& meter) {
    const Bounds bounds(problem);
    Least least;
    for (Index phase = 0; phase < problem.phases; ++phase) {
        least.phases.push_back(of_joined(problem, bounds, phase, meter));
    }
    ItemAmounts amounts(problem.items);
    double at_once = 0.0;
    for (Index item = 0; item < problem.items && problem.neighbours != nullptr; ++item) {
        const auto around = problem.around(item);
        if (meter.pass_time(kStepsPerAmount * (around.size() + 1))) break;
        raise_to(bounds, amounts, around, least.phases);
        at_once = std::max(at_once, bounds.seconds(amounts.of(around)));
    }
    least.seconds = std::max(at_once, std::accumulate(least.phases.begin(), least.phases.end(), 0.0));
    return least;
}

TreeBound tree_bound(const TreeMapParams& params) {
    Problem problem(params);
    TreeBound found{.phases = std::vector<double>(params.items.phase_ends.size(), 0.0)};
    WorkMeter meter(params.stop);
    if (!problem.has_enough_room || !problem.list_neighbours(meter)) return found;
    const Least least = least_times(problem, meter);
    found.seconds = least.seconds;
    // The problem leaves out phases without edges.
    std::int64_t before = 0;
    std::size_t next = 0;
    for (std::size_t phase = 0; phase < found.phases.size(); ++phase) {
        const std::int64_t end = params.items.phase_ends[phase];
        if (end > before) found.phases[phase] = least.phases[next++];
        before = end;
    }
    return found;
}

}  // namespace topoplace::tree_mapping
