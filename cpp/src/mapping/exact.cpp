#include "mapping/exact.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "mapping/assignment.hpp"
#include "match/symmetry.hpp"

namespace topoplace::mapping {
namespace {

// By vertex, the one before it among those with the same price and the same distances to all others; -1 for
// the first of them. Unused ones of a class are interchangeable: the smallest is as good as any.
std::vector<std::int32_t> twins_before(const Problem& problem) {
    const auto twins = [&](std::int32_t u, std::int32_t v) {
        if (problem.price[at(u)] != problem.price[at(v)]) return false;
        for (std::int32_t x = 0; x < problem.size(); ++x) {
            if (x != u && x != v && problem.row(u)[x] != problem.row(v)[x]) return false;
        }
        return true;
    };
    std::vector<std::int32_t> before(problem.vertices.size(), -1);
    std::vector<std::int32_t> last;  // of each class
    for (std::int32_t v = 0; v < problem.size(); ++v) {
        const auto known =
            std::find_if(last.begin(), last.end(), [&](std::int32_t u) { return twins(u, v); });
        if (known == last.end()) {
            last.push_back(v);
        } else {
            before[at(v)] = *known;
            *known = v;
        }
    }
    return before;
}

// By vertex, the smallest one that an automorphism of the target takes it to.
std::vector<std::int32_t> orbits(const Problem& problem) {
    const std::int32_t size = problem.size();
    std::map<std::pair<bool, double>, std::uint32_t> color;
    match::ColoredGraph graph{size, {}};
    for (std::int32_t u = 0; u < size; ++u) {
        for (std::int32_t v = 0; v < size; ++v) {
            const std::pair value{u == v, u == v ? problem.price[at(u)] : problem.row(u)[v]};
            const auto next = static_cast<std::uint32_t>(color.size());
            graph.color.push_back(color.emplace(value, next).first->second);
        }
    }
    std::vector<std::int32_t> base(at(size));
    std::iota(base.begin(), base.end(), 0);
    return match::orbits_of(size, match::stabilizer_chain(graph, base).generators);
}

// Tasks are numbered in the order of placing.
class Search {
  public:
    Search(const Problem& problem, const Places& start, Ties wanted_ties, NodeCounter& counter)
        : problem_(problem),
          source_(problem.source),
          proof_(problem.source.proof()),
          counter_(counter),
          nearest_(problem, 2 * source_.size()),
          twin_before_(twins_before(problem)),
          places_(start.size(), -1),
          used_(problem.vertices.size(), 0),
          levels_(start.size() + 1),
          best_cost_(problem.cost(start)),
          reached_(wanted_ties == Ties::keep) {
        for (Level& level : levels_) level.ties.resize(start.size() * problem.vertices.size());
        for (std::int32_t task = 0; task < source_.size(); ++task)
            std::copy(problem.price.begin(), problem.price.end(), ties(0, task));
    }

    Proven run(const Places& start) {
        explore(0, 0, 0);
        Proven proven{start, 0, !counter_.stopped()};
        for (std::size_t i = 0; i < best_.size(); ++i) proven.places[at(source_.order()[i])] = best_[i];
        const double cost = problem_.cost(proven.places);
        proven.bound = proven.complete ? cost : std::min(cost, left_);
        return proven;
    }

  private:
    struct Level {
        std::vector<double> ties;        // by task and vertex: price, and what it exchanges with placed ones
        std::vector<std::int32_t> open;  // vertices not used
        std::vector<double> near;        // by open vertex: distances to the nearest open ones
        std::vector<double> assign;      // by task not placed and open vertex: the least it could cost
        Assignment assignment;
    };

    double* ties(std::int32_t depth, std::int32_t task) {
        return levels_[at(depth)].ties.data() + at(task) * problem_.vertices.size();
    }
    // Whether nothing below is wanted: once a leaf of this cost was reached, only cheaper ones are.
    bool hopeless(double bound) const {
        return reached_ ? bound >= best_cost_ - problem_.tolerance : bound > best_cost_ + problem_.tolerance;
    }

    void explore(std::int32_t depth, double cost, double bound) {
        if (depth == source_.size()) return accept(cost);
        const std::size_t rows = at(source_.size() - depth);
        if (counter_.visit(steps(rows * rows * used_.size()))) return leave(bound);
        Level& level = levels_[at(depth)];
        fill(depth, level);
        if (hopeless(cost + row_minima(level, rows))) return;
        const double here = cost + level.assignment.solve(level.assign, rows, level.open.size());
        bound = std::max(bound, here);
        if (hopeless(bound)) return;
        for (std::size_t i = 0; i < level.open.size(); ++i) {
            const std::int32_t vertex = level.open[i];
            const double least = std::max(bound, here + level.assignment.reduced(0, i));
            if (!wanted(depth, vertex) || hopeless(least)) continue;
            if (counter_.stopped()) return leave(bound);
            place(depth, vertex);
            explore(depth + 1, cost + ties(depth, depth)[vertex], least);
            used_[at(vertex)] = 0;
        }
    }

    // What the assignment costs at least.
    static double row_minima(const Level& level, std::size_t rows) {
        double sum = 0;
        const std::size_t columns = level.open.size();
        for (std::size_t row = 0; row < rows; ++row) {
            const double* costs = level.assign.data() + row * columns;
            sum += *std::min_element(costs, costs + columns);
        }
        return sum;
    }

    // The deadline has passed before what lies below was searched.
    void leave(double bound) { left_ = std::min(left_, bound); }

    void accept(double cost) {
        if (hopeless(cost)) return;
        reached_ = true;
        best_ = places_;
        best_cost_ = std::min(cost, best_cost_);
    }

    // At the root, once the search has proved hard, one vertex of each orbit is enough.
    bool wanted(std::int32_t task, std::int32_t vertex) {
        if (task == 0 && counter_.nodes() >= kHard && problem_.size() <= kMostSymmetric) {
            if (orbit_.empty()) orbit_ = orbits(problem_);
            if (orbit_[at(vertex)] != vertex) return false;
        }
        const std::int32_t twin = twin_before_[at(vertex)];
        if (twin >= 0 && used_[at(twin)] == 0) return false;
        const auto& above = proof_.above[at(task)];
        return std::all_of(above.begin(), above.end(),
                           [&](std::int32_t other) { return places_[at(other)] < vertex; });
    }

    void place(std::int32_t task, std::int32_t vertex) {
        places_[at(task)] = vertex;
        used_[at(vertex)] = 1;
        const std::size_t n = problem_.vertices.size();
        std::copy(ties(task, task) + n, ties(task, source_.size() - 1) + n, ties(task + 1, task) + n);
        const auto others = proof_.graph.neighbors(task);
        const double* from = problem_.row(vertex);
        for (std::size_t i = 0; i < others.size(); ++i) {
            if (others[i] < task) continue;
            double* row = ties(task + 1, others[i]);
            const double weight = proof_.graph.weights(task)[i];
            for (std::size_t v = 0; v < n; ++v) row[v] += weight * from[v];
        }
    }

    void fill(std::int32_t depth, Level& level) {
        const auto& halves = proof_.open_halves[at(depth)];
        std::size_t longest = 0;
        for (std::int32_t task = depth; task < source_.size(); ++task)
            longest = std::max(longest, halves[at(task)].size());
        find_open(level, longest);
        level.assign.clear();
        for (std::int32_t task = depth; task < source_.size(); ++task) {
            const double* known = ties(depth, task);
            const auto& weights = halves[at(task)];
            for (std::size_t i = 0; i < level.open.size(); ++i) {
                double least = known[level.open[i]];
                const double* near = level.near.data() + i * longest;
                for (std::size_t j = 0; j < weights.size(); ++j) least += weights[j] * near[j];
                level.assign.push_back(least);
            }
        }
    }

    // The vertices not used, and from each the distances to its nearest ones.
    void find_open(Level& level, std::size_t longest) {
        level.open.clear();
        level.near.clear();
        for (std::int32_t v = 0; v < problem_.size(); ++v) {
            if (used_[at(v)] != 0) continue;
            level.open.push_back(v);
            std::size_t missing = longest;
            const auto near = nearest_.of(v);
            for (std::size_t i = 0; i < near.size() && missing > 0; ++i) {
                if (used_[at(near[i])] != 0) continue;
                level.near.push_back(problem_.row(v)[near[i]]);
                --missing;
            }
            level.near.insert(level.near.end(), missing, 0);
        }
    }

    static constexpr std::uint64_t kHard = 1024;         // nodes
    static constexpr std::int32_t kMostSymmetric = 256;  // vertices
    const Problem& problem_;
    const Source::Impl& source_;
    const Proof& proof_;
    NodeCounter& counter_;
    const Nearest nearest_;
    const std::vector<std::int32_t> twin_before_;
    Places places_;
    std::vector<std::uint8_t> used_;
    std::vector<Level> levels_;
    std::vector<std::int32_t> orbit_;
    Places best_;  // empty: the start
    double best_cost_;
    bool reached_;                                           // a leaf of the best cost, or none is looked for
    double left_ = std::numeric_limits<double>::infinity();  // the least bound of what was left unsearched
};

}  // namespace

Proven prove(const Problem& problem, const Places& start, Ties ties, NodeCounter& counter) {
    return Search(problem, start, ties, counter).run(start);
}

}  // namespace topoplace::mapping
