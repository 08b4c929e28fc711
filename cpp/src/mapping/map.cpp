// Mapping: chooses regions, sends tasks down the tree of halves, refines, proves and kicks.
//
// Method drb, dual recursive bipartitioning: the target is halved again and again along its largest
// distances (by partition::bipartition on similarity = largest distance - distance, once for each Target).
// Tasks go down this tree together: at each part the one most tied to those placed is taken first, and goes
// to the half where it costs less - to tasks whose half is known, inside the part and outside it - and where
// a vertex is left. More than 8 tasks are divided at once instead, by partition::bipartition of their graph,
// with two fixed vertices for what draws them to either half. A half may stay empty. The descent is repeated
// for packed regions: the vertices around each vertex that are nearest to it, the parts of the tree that just
// fit, and the regions of the caller. The best mappings are refined by exchanges: one task moves to a vertex
// that is not used, or two tasks swap, until no exchange lowers the cost. Where that leaves a gap to a simple
// lower bound, a job of up to 16 tasks is tried with a few steps of branch and bound, and what is still open
// gets some seeded kicks, each refined again.
//
// Method exact, branch and bound from the refined mapping: tasks are placed in a fixed order, the heaviest
// first, then always the one most tied to those before it (of equal ones the heavier, then the smaller
// number). The cost of placing a task on a vertex is bounded from below by what it exchanges with placed
// tasks, plus half of its other weights, largest first, times the vertex's distances to unused vertices,
// smallest first (Gilmore, Lawler); the least assignment of tasks to vertices at these costs bounds the node,
// and the reduced costs of that assignment its children. Mappings that differ by an automorphism of the
// source or by vertices with equal distances to all others are searched once, and where the search proves
// hard one root is tried for each orbit of the target's automorphisms. Of all mappings of least cost the one
// is returned whose vertices, read in the order of placing, are lexicographically smallest. Where tasks *
// tasks * vertices exceed 2^26 nothing is searched beyond what drb finds.
//
// The stop condition is checked between and within all searches and preparations.
//
// References: Amaral et al., "Topology-aware GPU scheduling for learning workloads in cloud environments",
// SC 2017, algorithms 2 and 3; Pellegrini, "Static mapping by dual recursive bipartitioning of process and
// architecture graphs", SHPCC 1994; Gilmore, J. SIAM 10 (1962); Lawler, Management Science 9 (1963); Jonker
// and Volgenant, Computing 38 (1987), for the assignment.
#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "graph/index.hpp"
#include "mapping/descent.hpp"
#include "mapping/exact.hpp"
#include "mapping/exchange.hpp"
#include "mapping/problem/problem.hpp"
#include "mapping/regions.hpp"

namespace topoplace::mapping {
namespace {

constexpr std::size_t kWhole = 128;  // free vertices up to which a problem holds them all
constexpr std::size_t kRegions = 8;  // packed ones that tasks are sent down to
constexpr std::size_t kDescending = std::size_t{1} << 17;  // tasks and edges sent down, more or less
constexpr std::size_t kRefined = 4;                        // mappings that are refined
constexpr std::int32_t kSmall = 16;                        // tasks up to which a short proof is tried
constexpr std::uint64_t kProvable = 1 << 26;               // numbers that a proof keeps, at most
constexpr std::uint64_t kBounded = 1 << 28;                // additions that a simple bound may take
constexpr std::uint64_t kEffort = 1 << 24;                 // additions that kicks may take, more or less

Fault check_vertices(std::span<const std::int32_t> vertices, const std::string& name, std::int32_t size) {
    std::vector<bool> seen(index(size), false);
    for (std::size_t i = 0; i < vertices.size(); ++i) {
        const std::int32_t v = vertices[i];
        const auto entry = [&] { return name + "[" + std::to_string(i) + "] = " + std::to_string(v); };
        if (v < 0 || v >= size) return entry() + ": vertices are 0.." + std::to_string(size - 1);
        if (seen[index(v)]) return entry() + " is there twice";
        seen[index(v)] = true;
    }
    return std::nullopt;
}

Fault check_prices(std::span<const double> prices, std::int32_t size) {
    if (!prices.empty() && prices.size() != index(size)) {
        return "target_cost has " + std::to_string(prices.size()) + " entries; the target has " +
               std::to_string(size) + " vertices";
    }
    for (std::size_t i = 0; i < prices.size(); ++i) {
        if (prices[i] >= 0 && prices[i] <= 1e100) continue;
        std::array<char, 32> number{};
        std::snprintf(number.data(), number.size(), "%g", prices[i]);
        return "target_cost[" + std::to_string(i) + "] = " + number.data() + " is not in 0..1e100";
    }
    return std::nullopt;
}

Fault check_start(const Source::Impl& source, const MapParams& params, std::int32_t size) {
    if (params.start.empty()) return std::nullopt;
    if (auto fault = check_vertices(params.start, "start", size)) return fault;
    if (std::ssize(params.start) != source.size()) {
        return "start has " + std::to_string(params.start.size()) + " entries; the source has " +
               std::to_string(source.size());
    }
    if (!params.free) return std::nullopt;
    for (std::size_t i = 0; i < params.start.size(); ++i) {
        if (std::find(params.free->begin(), params.free->end(), params.start[i]) == params.free->end())
            return "start[" + std::to_string(i) + "] = " + std::to_string(params.start[i]) + " is not free";
    }
    return std::nullopt;
}

Region free_vertices(const Target::Impl& target, const MapParams& params) {
    if (!params.free) {
        Region everyone(index(target.size()));
        std::iota(everyone.begin(), everyone.end(), 0);
        return everyone;
    }
    Region free(params.free->begin(), params.free->end());
    std::sort(free.begin(), free.end());
    return free;
}

// The regions that tasks are sent to: packed ones, the caller's as far as they are free, and the first
// vertices.
std::vector<Region> choose_regions(const Source::Impl& source, const Target::Impl& target,
                                   const MapParams& params, const Region& free, WorkMeter& meter) {
    const Region first(free.begin(), free.begin() + source.size());
    const auto work = static_cast<std::size_t>(source.graph().num_edges() + source.size());
    const std::size_t most = std::clamp<std::size_t>(kDescending / work, 1, kRegions);
    if (target.halves(meter) == nullptr) return {first};
    auto packed = packed_regions(source, target, free, params.target_cost, most, meter);
    if (!packed) return {first};
    std::vector<Region> regions = std::move(*packed);
    for (const Region& given : params.regions) {
        Region sorted(given);
        std::sort(sorted.begin(), sorted.end());
        Region& usable = regions.emplace_back();
        std::set_intersection(sorted.begin(), sorted.end(), free.begin(), free.end(),
                              std::back_inserter(usable));
        if (usable.size() < index(source.size())) regions.pop_back();
    }
    regions.push_back(first);
    return regions;
}

Region united(const std::vector<Region>& regions) {
    Region all;
    for (const Region& region : regions) all.insert(all.end(), region.begin(), region.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

// What even the least distance and the lowest prices add up to.
double crude_bound(const Source::Impl& source, const Target::Impl& target, const Region& free,
                   std::span<const double> target_cost) {
    double bound = source.total_weight() * target.least();
    if (target_cost.empty()) return bound;
    std::vector<double> prices;
    for (const std::int32_t v : free) prices.push_back(target_cost[index(v)]);
    std::sort(prices.begin(), prices.end());
    for (std::int32_t a = 0; a < source.size(); ++a) bound += prices[index(a)];
    return bound;
}

// A mapping and its cost; of equal costs the lexicographically smaller one comes first.
struct Costed {
    double cost = 0;
    Places places{};

    friend bool operator<(const Costed& a, const Costed& b) {
        return std::tie(a.cost, a.places) < std::tie(b.cost, b.places);
    }
};

// The best mapping so far, and what is known of it.
struct Attempt {
    Places places{};
    double bound = 0;      // no mapping costs less
    bool complete = true;  // false: a step was stopped early
};

class Heuristic {
  public:
    // `bound`: no mapping costs less.
    Heuristic(const Problem& problem, const MapParams& params, double bound)
        : problem_(problem), exchange_(problem), meter_(params.stop), params_(params), bound_(bound) {}

    std::int32_t descents() const { return descents_; }
    std::uint64_t exchanges() const { return exchange_.exchanges(); }

    // Task i on the i-th vertex: what no answer is dearer than.
    Attempt first_fit() {
        Places places(index(problem_.source.size()));
        std::iota(places.begin(), places.end(), 0);
        try_out(places);
        return best_so_far();
    }

    Attempt run(const std::vector<Region>& regions, const Halves& halves) {
        descent_.emplace(problem_, halves);
        for (const Region& region : regions) descend(numbered(region));
        Region whole(problem_.vertices.size());
        std::iota(whole.begin(), whole.end(), 0);
        descend(whole);
        if (index(problem_.source.size()) > Descent::kFew) descend(whole, Dividing::one_by_one);
        refine();
        return best_so_far();
    }

    Attempt refined(std::span<const std::int32_t> start) {
        const Places places = numbered(Region(start.begin(), start.end()));
        try_out(places);
        improve(places);
        return best_so_far();
    }

    // From a mapping not worse than the best so far; goes on from those as good as the best, so that a
    // plateau is crossed.
    Attempt kick(const Attempt& start) {
        TOPOPLACE_ASSERT(start.bound >= bound_);
        TOPOPLACE_ASSERT(problem_.cost(start.places) <= best_.cost + problem_.tolerance);
        bound_ = start.bound;
        Random random(params_.seed);
        Places places = start.places;
        best_ = {problem_.cost(places), places};
        const auto arcs = 2 * static_cast<std::uint64_t>(problem_.source.graph().num_edges());
        const std::uint64_t most = kEffort / ((places.size() + arcs) * problem_.vertices.size());
        const auto kicks = std::min<std::uint64_t>(index(params_.kicks), most);
        for (std::size_t i = 0; i < kicks && !done(); ++i) {
            if (!exchange_.start(places, meter_)) break;
            exchange_.kick(random);
            exchange_.improve(meter_);
            if (exchange_.cost() > best_.cost + problem_.tolerance) continue;
            places = exchange_.places();
            keep({problem_.cost(places), places});
        }
        return best_so_far();
    }

  private:
    Attempt best_so_far() const {
        return {.places = best_.places, .bound = bound_, .complete = !meter_.stopped()};
    }

    bool done() const {
        return !best_.places.empty() && (best_.cost <= bound_ + problem_.tolerance || meter_.stopped());
    }

    Region numbered(const Region& region) const {
        Region result;
        const auto begin = problem_.vertices.begin();
        for (const std::int32_t v : region) {
            const auto found = std::lower_bound(begin, problem_.vertices.end(), v);
            TOPOPLACE_ASSERT(found != problem_.vertices.end() && *found == v);
            result.push_back(static_cast<std::int32_t>(found - begin));
        }
        return result;
    }

    void keep(Costed found) {
        TOPOPLACE_ASSERT(found.cost == problem_.cost(found.places));
        if (best_.places.empty() || found.cost < best_.cost - problem_.tolerance) best_ = std::move(found);
    }

    void descend(const Region& region, Dividing dividing = Dividing::cut) {
        if (done()) return;
        const Places* places = descent_->run(region, dividing, meter_);
        if (places == nullptr) return;
        try_out(*places);
        ++descents_;
        meter_.visit();
        meter_.look_at_clock();
    }

    void try_out(const Places& places) {
        tried_.push_back({problem_.cost(places), places});
        keep(tried_.back());
    }

    void refine() {
        std::sort(tried_.begin(), tried_.end());
        for (std::size_t i = 0; i < std::min(kRefined, tried_.size()) && !done(); ++i)
            improve(tried_[i].places);
    }

    void improve(const Places& places) {
        if (!exchange_.start(places, meter_)) return;
        exchange_.improve(meter_);
        keep({problem_.cost(exchange_.places()), exchange_.places()});
    }

    const Problem& problem_;
    std::optional<Descent> descent_;
    Exchange exchange_;
    WorkMeter meter_;
    const MapParams& params_;
    double bound_;
    std::vector<Costed> tried_;
    Costed best_;
    std::int32_t descents_ = 0;
};

struct ProofAttempt {
    Attempt attempt;
    std::uint64_t nodes = 0;
};

// From what was found until it is proven, or, where the proof is not asked for, until it is too much work.
ProofAttempt prove(const Problem& problem, const Attempt& start, const MapParams& params) {
    const bool exact = params.method == Method::exact;
    StopCondition stop = params.stop;
    if (!exact) stop.max_nodes = std::min(stop.max_nodes, params.proof_nodes);
    WorkMeter meter(stop);
    auto proven = prove(problem, start.places, exact ? Ties::broken : Ties::keep, meter);
    if (!proven) return {.attempt = {.places = start.places, .bound = start.bound, .complete = false}};
    Attempt attempt{.places = std::move(proven->places),
                    .bound = std::max(start.bound, proven->bound),
                    .complete = exact ? proven->complete : start.complete};
    return {.attempt = std::move(attempt), .nodes = meter.nodes()};
}

// Nothing is searched where the proof would not fit into memory, let alone end, or where there is no time to
// prepare it.
ProofAttempt prove_or_stop(const Problem& problem, const Attempt& start, const MapParams& params) {
    const std::uint64_t tasks = start.places.size();
    const bool fits = tasks * tasks * problem.vertices.size() <= kProvable;
    if (fits && !params.stop.time_is_up()) return prove(problem, start, params);
    return {.attempt = {.places = start.places, .bound = start.bound, .complete = false}};
}

// Which of the free vertices a problem holds.
enum class Scope {
    all_free,  // every one: a proof is possible, and regions are chosen only when they are needed
    regions,   // those of regions chosen beforehand: nothing is proven but the bound that is known
};

// No mapping costs less. The better of two bounds where there is time for it.
double lower_bound(const Problem& problem, const Target::Impl& target, const Region& free, Scope scope,
                   const MapParams& params, WorkMeter& meter) {
    const auto arcs = 2 * static_cast<std::uint64_t>(problem.source.graph().num_edges());
    if (scope == Scope::all_free && arcs * free.size() <= kBounded) {
        if (const auto bound = simple_bound(problem, meter)) return *bound;
    }
    return crude_bound(problem.source, target, free, params.target_cost);
}

struct Outcome {
    Attempt best;
    std::int32_t descents = 0;
    std::uint64_t exchanges = 0;
    std::uint64_t nodes = 0;
};

// `regions`: read where the scope is `regions`. `bound`: no mapping costs less.
Outcome search(const Problem& problem, const Target::Impl& target, Scope scope, std::vector<Region> regions,
               const MapParams& params, double bound) {
    const bool exact = params.method == Method::exact;
    Heuristic heuristic(problem, params, bound);
    const auto open = [&](const Attempt& attempt) {
        return attempt.complete && problem.cost(attempt.places) > attempt.bound + problem.tolerance;
    };
    Attempt best = heuristic.first_fit();
    if (!params.start.empty()) {
        best = heuristic.refined(params.start);
    } else if (open(best)) {
        WorkMeter meter(params.stop);
        if (scope == Scope::all_free)
            regions = choose_regions(problem.source, target, params, problem.vertices, meter);
        if (const Halves* halves = target.halves(meter)) best = heuristic.run(regions, *halves);
        best.complete = best.complete && !meter.stopped();
    }
    ProofAttempt proof;
    const bool small = problem.source.size() <= kSmall && params.proof_nodes > 0;
    if (!exact && scope == Scope::all_free && small && open(best)) {
        proof = prove(problem, best, params);
        best = proof.attempt;
    }
    if (open(best)) best = heuristic.kick(best);
    if (exact) {
        proof = prove_or_stop(problem, best, params);
        best = proof.attempt;
    }
    return {.best = std::move(best),
            .descents = heuristic.descents(),
            .exchanges = heuristic.exchanges(),
            .nodes = proof.nodes};
}

MapResult answer(const Problem& problem, const Outcome& outcome) {
    const auto& [places, bound, complete] = outcome.best;
    const double cost = problem.cost(places);
    TOPOPLACE_ASSERT(bound <= cost + 1e3 * problem.tolerance);
    const double least = std::min(bound, cost);
    MapResult result{.found = true,
                     .cost = cost,
                     .bound = least,
                     .optimal = cost <= least + problem.tolerance,
                     .complete = complete,
                     .descents = outcome.descents,
                     .exchanges = outcome.exchanges,
                     .nodes = outcome.nodes};
    for (const std::int32_t place : places) result.target_of.push_back(problem.vertices[index(place)]);
    return result;
}

}  // namespace

Fault check(const Source& source, const Target& target, const MapParams& params) {
    const std::int32_t size = target.num_vertices();
    if (auto fault = check_prices(params.target_cost, size)) return fault;
    if (params.free) {
        if (auto fault = check_vertices(*params.free, "free", size)) return fault;
    }
    for (std::size_t i = 0; i < params.regions.size(); ++i) {
        if (auto fault = check_vertices(params.regions[i], "regions[" + std::to_string(i) + "]", size))
            return fault;
    }
    if (auto fault = check_start(source.impl(), params, size)) return fault;
    if (params.kicks < 0) return "kicks = " + std::to_string(params.kicks) + " is not at least 0";
    if (dearest(source.impl(), target.impl(), params.target_cost) <= 1e300) return std::nullopt;
    return "the sum of the graph's weights times target_distance is more than 1e300";
}

MapResult map_graph(const Source& the_source, const Target& the_target, const MapParams& params) {
    const Source::Impl& source = the_source.impl();
    const Target::Impl& target = the_target.impl();
    TOPOPLACE_ASSERT(!check(the_source, the_target, params));
    const Region free = free_vertices(target, params);
    if (index(source.size()) > free.size()) return {};
    if (source.size() == 0) return {.found = true, .optimal = true};
    const bool whole = free.size() <= kWhole || params.method == Method::exact || !params.start.empty();
    const Scope scope = whole ? Scope::all_free : Scope::regions;
    std::vector<Region> regions;
    WorkMeter meter(params.stop);
    if (scope == Scope::regions) regions = choose_regions(source, target, params, free, meter);
    // Without time for a copy of distances, all of the target is taken: that needs none.
    const bool all = scope == Scope::all_free || (meter.stopped() && index(target.size()) == free.size());
    const Problem problem(source, target, all ? free : united(regions), params.target_cost);
    const double bound = lower_bound(problem, target, free, scope, params, meter);
    return answer(problem, search(problem, target, scope, std::move(regions), params, bound));
}

}  // namespace topoplace::mapping
