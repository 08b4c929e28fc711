// Branch and bound over the places of tasks, bounded by assignments.
//
// References: Gilmore, J. SIAM 10 (1962); Lawler, Management Science 9 (1963).
#include "mapping/exact.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "graph/index.hpp"
#include "mapping/assignment.hpp"
#include "match/graphs/symmetry.hpp"

namespace topoplace::mapping {
namespace {

// The same price and the same distances to all others; true also where `meter` stops.
bool are_twins(const Problem& problem, std::int32_t u, std::int32_t v, WorkMeter& meter) {
    if (problem.price[index(u)] != problem.price[index(v)]) return false;
    std::int32_t x = 0;
    while (x < problem.size() && (x == u || x == v || problem.row(u)[x] == problem.row(v)[x])) ++x;
    return meter.pass_time(8 + 4 * index(x)) || x == problem.size();
}

// By vertex, the one before it among its twins; kAbsent for the first of them. Unused ones of a class are
// interchangeable: the smallest is as good as any. None where `meter` stops.
std::optional<std::vector<std::int32_t>> twins_before(const Problem& problem, WorkMeter& meter) {
    std::vector<std::int32_t> before(problem.vertices.size(), kAbsent);
    std::vector<std::int32_t> last;  // of each class
    for (std::int32_t v = 0; v < problem.size(); ++v) {
        const auto known = std::find_if(last.begin(), last.end(),
                                        [&](std::int32_t u) { return are_twins(problem, u, v, meter); });
        if (meter.stopped()) return std::nullopt;
        if (known == last.end()) {
            last.push_back(v);
        } else {
            before[index(v)] = *known;
            *known = v;
        }
    }
    return before;
}

// By vertex, the smallest one that an automorphism of the target takes it to; itself where there is no time
// to tell.
std::vector<std::int32_t> orbits(const Problem& problem, WorkMeter& meter) {
    const std::int32_t size = problem.size();
    std::map<std::pair<bool, double>, std::uint32_t> color;
    match::ColoredGraph graph{size, {}};
    for (std::int32_t u = 0; u < size; ++u) {
        if (meter.pass_time(512 * index(size))) break;
        for (std::int32_t v = 0; v < size; ++v) {
            const std::pair value{u == v, u == v ? problem.price[index(u)] : problem.row(u)[v]};
            const auto next = static_cast<std::uint32_t>(color.size());
            graph.color.push_back(color.emplace(value, next).first->second);
        }
    }
    std::vector<std::int32_t> base(index(size));
    std::iota(base.begin(), base.end(), 0);
    if (meter.stopped()) return base;
    const auto chain = match::stabilizer_chain(graph, base, meter);
    return chain ? match::orbits_of(size, chain->generators) : base;
}

// Tasks are numbered in the order of placing.
class Search {
  public:
    Search(const Problem& problem, const Places& start, Ties wanted_ties, const Proof& proof, Nearest nearest,
           std::vector<std::int32_t> twin_before, WorkMeter& meter)
        : problem_(problem),
          source_(problem.source),
          proof_(proof),
          meter_(meter),
          nearest_(std::move(nearest)),
          twin_before_(std::move(twin_before)),
          places_(start.size(), kAbsent),
          used_(problem.vertices.size(), 0),
          levels_(start.size() + 1),
          best_cost_(problem.cost(start)),
          reached_(wanted_ties == Ties::keep) {}

    std::optional<Proven> run(const Places& start) {
        const std::size_t size = start.size() * problem_.vertices.size();
        for (Level& level : levels_) {
            if (meter_.pass_time(16 * size)) return std::nullopt;
            level.ties.resize(size);
        }
        for (std::int32_t task = 0; task < source_.size(); ++task)
            std::copy(problem_.price.begin(), problem_.price.end(), ties(0, task));
        explore(0, 0, 0);
        TOPOPLACE_ASSERT(std::ranges::count(used_, 1) == 0);
        Proven proven{.places = start, .bound = 0, .complete = !meter_.stopped()};
        if (!best_.empty()) proven.places = by_task(best_);
        const double cost = problem_.cost(proven.places);
        TOPOPLACE_ASSERT(cost <= problem_.cost(start) + problem_.tolerance);
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
        return levels_[index(depth)].ties.data() + index(task) * problem_.vertices.size();
    }
    // True if nothing below is wanted: once a leaf of this cost was reached, only cheaper ones are.
    bool hopeless(double bound) const {
        return reached_ ? bound >= best_cost_ - problem_.tolerance : bound > best_cost_ + problem_.tolerance;
    }

    void explore(std::int32_t depth, double cost, double bound) {
        TOPOPLACE_ASSERT(std::ranges::count(used_, 1) == depth);
        if (depth == source_.size()) {
            TOPOPLACE_ASSERT(bound <= cost + 1e3 * problem_.tolerance);
            return accept(cost);
        }
        const std::size_t rows = index(source_.size() - depth);
        if (meter_.visit(steps(rows * rows * used_.size()))) return leave(bound);
        Level& level = levels_[index(depth)];
        fill(depth, level);
        TOPOPLACE_ASSERT(level.open.size() >= rows && level.assign.size() == rows * level.open.size());
        if (hopeless(cost + row_minima(level, rows))) return;
        const double here = cost + level.assignment.solve(level.assign, rows, level.open.size());
        meter_.pass_time(8 * rows * level.assign.size());
        TOPOPLACE_ASSERT(here >= cost + row_minima(level, rows) - 1e3 * problem_.tolerance);
        bound = std::max(bound, here);
        if (hopeless(bound)) return;
        for (std::size_t i = 0; i < level.open.size(); ++i) {
            const std::int32_t vertex = level.open[i];
            const double least = std::max(bound, here + level.assignment.reduced(0, i));
            if (!wanted(depth, vertex) || hopeless(least)) continue;
            if (meter_.stopped()) return leave(bound);
            place(depth, vertex);
            explore(depth + 1, cost + ties(depth, depth)[vertex], least);
            used_[index(vertex)] = 0;
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

    // The search is stopped before what lies below was searched.
    void leave(double bound) { left_ = std::min(left_, bound); }

    void accept(double cost) {
        if (hopeless(cost)) return;
        TOPOPLACE_ASSERT(std::abs(cost - problem_.cost(by_task(places_))) <= 1e3 * problem_.tolerance);
        reached_ = true;
        best_ = places_;
        best_cost_ = std::min(cost, best_cost_);
    }

    // From the order of placing to the source's numbers.
    Places by_task(const Places& by_depth) const {
        Places places(by_depth.size());
        const std::vector<std::int32_t>& order = source_.ranking(meter_)->order;  // made for the proof
        for (std::size_t i = 0; i < by_depth.size(); ++i) places[index(order[i])] = by_depth[i];
        return places;
    }

    // At the root, once the search has proved hard, one vertex of each orbit is enough.
    bool wanted(std::int32_t task, std::int32_t vertex) {
        if (task == 0 && meter_.nodes() >= kHard && problem_.size() <= kMostSymmetric) {
            if (orbit_.empty()) orbit_ = orbits(problem_, meter_);
            if (orbit_[index(vertex)] != vertex) return false;
        }
        const std::int32_t twin = twin_before_[index(vertex)];
        if (twin != kAbsent && used_[index(twin)] == 0) return false;
        const auto& above = proof_.above[index(task)];
        return std::all_of(above.begin(), above.end(),
                           [&](std::int32_t other) { return places_[index(other)] < vertex; });
    }

    void place(std::int32_t task, std::int32_t vertex) {
        TOPOPLACE_ASSERT(used_[index(vertex)] == 0);
        places_[index(task)] = vertex;
        used_[index(vertex)] = 1;
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
        const auto& halves = proof_.open_halves[index(depth)];
        std::size_t longest = 0;
        for (std::int32_t task = depth; task < source_.size(); ++task)
            longest = std::max(longest, halves[index(task)].size());
        find_open(level, longest);
        level.assign.clear();
        for (std::int32_t task = depth; task < source_.size(); ++task) {
            const double* known = ties(depth, task);
            const auto& weights = halves[index(task)];
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
            if (used_[index(v)] != 0) continue;
            level.open.push_back(v);
            std::size_t missing = longest;
            const auto near = nearest_.of(v);
            for (std::size_t i = 0; i < near.size() && missing > 0; ++i) {
                if (used_[index(near[i])] != 0) continue;
                level.near.push_back(problem_.row(v)[near[i]]);
                --missing;
            }
            level.near.insert(level.near.end(), missing, 0);
            TOPOPLACE_ASSERT(level.near.size() == level.open.size() * longest);
        }
    }

    static constexpr std::uint64_t kHard = 1024;         // nodes
    static constexpr std::int32_t kMostSymmetric = 256;  // vertices
    const Problem& problem_;
    const Source::Impl& source_;
    const Proof& proof_;
    WorkMeter& meter_;
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

std::optional<Proven> prove(const Problem& problem, const Places& start, Ties ties, WorkMeter& meter) {
    const Proof* proof = problem.source.proof(meter);
    if (proof == nullptr) return std::nullopt;
    auto nearest = Nearest::make(problem, 2 * problem.source.size(), meter);
    if (!nearest) return std::nullopt;
    auto twins = twins_before(problem, meter);
    if (!twins) return std::nullopt;
    return Search(problem, start, ties, *proof, std::move(*nearest), std::move(*twins), meter).run(start);
}

}  // namespace topoplace::mapping
