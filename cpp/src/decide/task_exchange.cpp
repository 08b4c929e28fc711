// Equal groups first, then the tasks of each group; each such set is distributed among the leaves it has.
#include "decide/task_exchange.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "graph/index.hpp"
#include "topoplace/distribution.hpp"

namespace topoplace::decide {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr std::size_t kMostPlaces = 1U << 22;  // tasks, or groups, x leaves among which they are exchanged
constexpr std::int32_t kStarts = 2;
constexpr double kNoPath = 1e9;  // the distance that counts then

// The numbers of what is in each of `count` sets; kAbsent is in none.
std::vector<Ints> sets_of(const Ints& set_of, std::size_t count) {
    std::vector<Ints> found(count);
    for (std::size_t i = 0; i < set_of.size(); ++i) {
        if (set_of[i] >= 0) found[index(set_of[i])].push_back(static_cast<std::int32_t>(i));
    }
    return found;
}

// A number for each group, the same for equal ones without groups inside; kAbsent for others.
Ints kinds_of(const TaskForest& forest) {
    const Ints own = forest.own();
    std::vector<bool> has_inside(forest.size(), false);
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> kinds;
    for (std::size_t i = 0; i < forest.size(); ++i) {
        if (i > 0) has_inside[index(forest.parent[i])] = true;
        kinds[{forest.parent[i], forest.depth[i], own[i]}] = 0;
    }
    std::int32_t next = 0;
    for (auto& [_, number] : kinds) number = next++;
    Ints found;
    for (std::size_t i = 0; i < forest.size(); ++i) {
        const bool may_be = i > 0 && !has_inside[i];
        found.push_back(may_be ? kinds[{forest.parent[i], forest.depth[i], own[i]}] : kAbsent);
    }
    return found;
}

// What two things of a set exchange, by their places in the set.
struct SetEdge {
    std::int32_t here = 0, there = 0;
    double gigabytes = 0.0;
};

class Exchange {
  public:
    Exchange(const TaskDivisionParams& params, const TaskForest& forest, const StopCondition& stop,
             Ints& leaf_of)
        : params_(params), forest_(forest), leaf_of_(leaf_of), stop_(stop), meter_(stop) {}

    void run() {
        exchange_groups();
        exchange_tasks();
    }

  private:
    std::size_t num_edges() const { return params_.edges.size() / 3; }
    std::int32_t end(std::size_t edge, std::size_t side) const {
        return static_cast<std::int32_t>(params_.edges[3 * edge + side]);
    }
    std::int32_t group(std::size_t edge, std::size_t side) const {
        return forest_.inner[index(end(edge, side))];
    }

    void exchange_groups() {
        const Ints kind_of = kinds_of(forest_);
        const std::vector<Ints> tasks_of = sets_of(forest_.inner, forest_.size());
        const auto set_of = [&](std::size_t edge) {
            const std::int32_t here = group(edge, 0), there = group(edge, 1);
            const bool counts = here != there && kind_of[index(here)] == kind_of[index(there)];
            return counts ? kind_of[index(here)] : kAbsent;
        };
        const auto thing = [&](std::size_t edge, std::size_t side) { return group(edge, side); };
        each_set(kind_of, set_of, thing, [&](const Ints& equal, const std::vector<SetEdge>& edges) {
            std::vector<Ints> leaves_of;
            Ints places;
            for (const std::int32_t one : equal) {
                Ints& leaves = leaves_of.emplace_back();
                for (const std::int32_t task : tasks_of[index(one)]) leaves.push_back(leaf_of_[index(task)]);
                places.push_back(leaves.front());
            }
            const Ints order = cheaper(edges, places);
            for (std::size_t i = 0; i < order.size(); ++i) {
                const Ints& tasks = tasks_of[index(equal[i])];
                for (std::size_t j = 0; j < tasks.size(); ++j)
                    leaf_of_[index(tasks[j])] = leaves_of[index(order[i])][j];
            }
        });
    }

    void exchange_tasks() {
        const auto set_of = [&](std::size_t edge) {
            return group(edge, 0) == group(edge, 1) ? group(edge, 0) : kAbsent;
        };
        const auto thing = [&](std::size_t edge, std::size_t side) { return end(edge, side); };
        each_set(forest_.inner, set_of, thing, [&](const Ints& tasks, const std::vector<SetEdge>& edges) {
            Ints leaves;
            for (const std::int32_t task : tasks) leaves.push_back(leaf_of_[index(task)]);
            const Ints order = cheaper(edges, leaves);
            for (std::size_t i = 0; i < order.size(); ++i)
                leaf_of_[index(tasks[i])] = leaves[index(order[i])];
        });
    }

    // Calls `take` with the things of each set that has edges inside, and these, until the time ends.
    template <class SetOf, class Thing, class Take>
    void each_set(const Ints& set_of_things, const SetOf& set_of, const Thing& thing, const Take& take) {
        const std::size_t count = 1 + index(std::max(0, *std::ranges::max_element(set_of_things)));
        std::vector<std::vector<std::size_t>> edges(count);
        for (std::size_t edge = 0; edge < num_edges(); ++edge) {
            const std::int32_t set = set_of(edge);
            if (set >= 0) edges[index(set)].push_back(edge);
        }
        const std::vector<Ints> things = sets_of(set_of_things, count);
        for (std::size_t set = 0; set < count; ++set) {
            if (edges[set].empty()) continue;
            if (meter_.look_at_clock()) return;
            const Ints& own = things[set];
            const auto place = [&](std::int32_t one) {
                return static_cast<std::int32_t>(std::ranges::lower_bound(own, one) - own.begin());
            };
            std::vector<SetEdge> rows;
            for (const std::size_t edge : edges[set]) {
                const auto [low, high] = std::minmax({place(thing(edge, 0)), place(thing(edge, 1))});
                rows.push_back({low, high, params_.edges[3 * edge + 2]});
            }
            take(own, rows);
        }
    }

    // Which of the places each thing gets, for less communication; `leaves`: those of the places. Nothing
    // where the things stay.
    Ints cheaper(const std::vector<SetEdge>& exchanged, const Ints& leaves) const {
        Ints different = leaves;
        std::ranges::sort(different);
        different.erase(std::unique(different.begin(), different.end()), different.end());
        if (different.size() < 2 || different.size() * leaves.size() > kMostPlaces) return {};
        std::vector<Ints> places_of(different.size());  // those of each block
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            const auto block = std::ranges::lower_bound(different, leaves[i]) - different.begin();
            places_of[static_cast<std::size_t>(block)].push_back(static_cast<std::int32_t>(i));
        }
        Ints room;
        for (const Ints& places : places_of) room.push_back(static_cast<std::int32_t>(places.size()));
        const std::vector<double> distance = distances_of(different);
        const mapping::Source source(graph_of(exchanged, leaves.size()));
        const mapping::DistributeResult made = mapping::distribute(
            source, {.room = room, .distance = distance, .starts = kStarts, .stop = stop_});
        if (!made.found || !made.complete) return {};
        Ints order;
        for (const std::int32_t block : made.block_of) {
            order.push_back(places_of[index(block)].back());
            places_of[index(block)].pop_back();
        }
        return order;
    }

    std::vector<double> distances_of(const Ints& leaves) const {
        std::vector<double> found;
        for (const std::int32_t here : leaves) {
            for (const std::int32_t there : leaves) {
                const double distance =
                    here == there
                        ? 0.0
                        : params_.distances->between(params_.gpus[index(here)], params_.gpus[index(there)]);
                found.push_back(std::min(distance, kNoPath));
            }
        }
        return found;
    }

    static Graph graph_of(std::vector<SetEdge> exchanged, std::size_t count) {
        std::ranges::stable_sort(exchanged, {},
                                 [](const SetEdge& one) { return std::pair(one.here, one.there); });
        std::vector<Edge> edges;
        for (const SetEdge& one : exchanged) {
            const bool is_same = !edges.empty() && edges.back().u == one.here && edges.back().v == one.there;
            if (is_same) {
                edges.back().weight += one.gigabytes;
            } else if (one.gigabytes > 0.0) {
                edges.push_back({one.here, one.there, one.gigabytes});
            }
        }
        return Graph(static_cast<std::int32_t>(count), edges);
    }

    const TaskDivisionParams& params_;
    const TaskForest& forest_;
    Ints& leaf_of_;
    StopCondition stop_;
    WorkMeter meter_;
};

}  // namespace

void exchange_tasks(const TaskDivisionParams& params, const TaskForest& forest, const StopCondition& stop,
                    std::vector<std::int32_t>& leaf_of) {
    Exchange(params, forest, stop, leaf_of).run();
}

}  // namespace topoplace::decide
