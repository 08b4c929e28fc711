#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "mapping/descent.hpp"
#include "mapping/exact.hpp"
#include "mapping/exchange.hpp"
#include "mapping/problem.hpp"
#include "mapping/regions.hpp"

namespace topoplace::mapping {
namespace {

constexpr std::size_t kWhole = 128;  // free vertices up to which a problem holds them all
constexpr std::size_t kRegions = 8;  // packed ones that tasks are sent down to
constexpr std::size_t kDescending = std::size_t{1} << 17;  // tasks and edges sent down, more or less
constexpr std::size_t kRefined = 4;                        // mappings that are refined
constexpr std::int32_t kSmall = 16;                        // tasks up to which a short proof is tried
constexpr std::size_t kProvable = std::size_t{1} << 26;    // numbers that a proof keeps, at most
constexpr std::size_t kBounded = std::size_t{1} << 28;     // additions that a simple bound may take
constexpr std::size_t kEffort = std::size_t{1} << 24;      // additions that kicks may take, more or less

void check_vertices(std::span<const std::int32_t> vertices, const std::string& name, std::int32_t size) {
    std::vector<bool> seen(at(size), false);
    for (std::size_t i = 0; i < vertices.size(); ++i) {
        const std::int32_t v = vertices[i];
        const std::string entry = name + "[" + std::to_string(i) + "] = " + std::to_string(v);
        if (v < 0 || v >= size)
            throw std::invalid_argument(entry + ": vertices are 0.." + std::to_string(size - 1));
        if (seen[at(v)]) throw std::invalid_argument(entry + " is there twice");
        seen[at(v)] = true;
    }
}

void check_prices(std::span<const double> prices, std::int32_t size) {
    if (!prices.empty() && prices.size() != at(size)) {
        throw std::invalid_argument("target_cost has " + std::to_string(prices.size()) +
                                    " entries; the target has " + std::to_string(size) + " vertices");
    }
    for (std::size_t i = 0; i < prices.size(); ++i) {
        if (prices[i] >= 0 && prices[i] <= 1e100) continue;
        std::array<char, 32> number{};
        std::snprintf(number.data(), number.size(), "%g", prices[i]);
        throw std::invalid_argument("target_cost[" + std::to_string(i) + "] = " + number.data() +
                                    " is not in 0..1e100");
    }
}

void check(const Source::Impl& source, const Target::Impl& target, const MapParams& params) {
    check_prices(params.target_cost, target.size());
    if (params.free) check_vertices(*params.free, "free", target.size());
    for (std::size_t i = 0; i < params.regions.size(); ++i)
        check_vertices(params.regions[i], "regions[" + std::to_string(i) + "]", target.size());
    if (params.kicks < 0)
        throw std::invalid_argument("kicks = " + std::to_string(params.kicks) + " is not at least 0");
    if (!(dearest(source, target, params.target_cost) <= 1e300))
        throw std::invalid_argument(
            "the sum of the graph's weights times target_distance is more than 1e300");
}

Region free_vertices(const Target::Impl& target, const MapParams& params) {
    if (!params.free) {
        Region everyone(at(target.size()));
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
                                   const MapParams& params, const Region& free) {
    const auto work = static_cast<std::size_t>(source.graph().num_edges() + source.size());
    const std::size_t most = std::clamp<std::size_t>(kDescending / work, 1, kRegions);
    std::vector<Region> regions = packed_regions(source, target, free, params.target_cost, most);
    for (const Region& given : params.regions) {
        Region sorted(given);
        std::sort(sorted.begin(), sorted.end());
        Region& usable = regions.emplace_back();
        std::set_intersection(sorted.begin(), sorted.end(), free.begin(), free.end(),
                              std::back_inserter(usable));
        if (usable.size() < at(source.size())) regions.pop_back();
    }
    regions.emplace_back(free.begin(), free.begin() + source.size());
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
    for (const std::int32_t v : free) prices.push_back(target_cost[at(v)]);
    std::sort(prices.begin(), prices.end());
    for (std::int32_t a = 0; a < source.size(); ++a) bound += prices[at(a)];
    return bound;
}

struct Attempt {
    double cost = 0;
    Places places;

    friend bool operator<(const Attempt& a, const Attempt& b) {
        return std::tie(a.cost, a.places) < std::tie(b.cost, b.places);
    }
};

class Heuristic {
  public:
    Heuristic(const Problem& problem, const MapParams& params, MapResult& result)
        : problem_(problem),
          exchange_(problem),
          counter_(params.deadline),
          params_(params),
          result_(result) {}

    // Task i on the i-th vertex: what no answer is dearer than.
    const Places& first_fit() {
        Places places(at(problem_.source.size()));
        std::iota(places.begin(), places.end(), 0);
        try_out(places);
        return best_.places;
    }

    const Places& run(const std::vector<Region>& regions, const Halves& halves) {
        descent_.emplace(problem_, halves);
        for (const Region& region : regions) descend(numbered(region));
        Region whole(problem_.vertices.size());
        std::iota(whole.begin(), whole.end(), 0);
        descend(whole);
        if (at(problem_.source.size()) > Descent::kFew) descend(whole, Dividing::one_by_one);
        refine();
        return report();
    }

    // From `places`, a mapping not worse than the best so far; goes on from those as good as the best, so
    // that a plateau is crossed.
    const Places& kick(Places places) {
        Random random(params_.seed);
        best_ = {problem_.cost(places), places};
        const std::size_t arcs = 2 * static_cast<std::size_t>(problem_.source.graph().num_edges());
        const std::size_t most = kEffort / ((places.size() + arcs) * problem_.vertices.size());
        const std::size_t kicks = std::min(static_cast<std::size_t>(params_.kicks), most);
        for (std::size_t i = 0; i < kicks && !done(); ++i) {
            if (!exchange_.start(places, counter_)) break;
            exchange_.kick(random);
            exchange_.improve(counter_);
            if (exchange_.cost() > best_.cost + problem_.tolerance) continue;
            places = exchange_.places();
            keep({problem_.cost(places), places});
        }
        return report();
    }

  private:
    const Places& report() {
        result_.exchanges = exchange_.exchanges();
        result_.complete = !counter_.stopped();
        return best_.places;
    }

    bool done() const {
        return !best_.places.empty() &&
               (best_.cost <= result_.bound + problem_.tolerance || counter_.stopped());
    }

    Region numbered(const Region& region) const {
        Region result;
        const auto begin = problem_.vertices.begin();
        for (const std::int32_t v : region) {
            const auto found = std::lower_bound(begin, problem_.vertices.end(), v);
            result.push_back(static_cast<std::int32_t>(found - begin));
        }
        return result;
    }

    void keep(Attempt attempt) {
        if (best_.places.empty() || attempt.cost < best_.cost - problem_.tolerance)
            best_ = std::move(attempt);
    }

    void descend(const Region& region, Dividing dividing = Dividing::cut) {
        if (done()) return;
        try_out(descent_->run(region, dividing));
        ++result_.descents;
        counter_.visit();
        counter_.look_at_clock();
    }

    void try_out(const Places& places) {
        attempts_.push_back({problem_.cost(places), places});
        keep(attempts_.back());
    }

    void refine() {
        std::sort(attempts_.begin(), attempts_.end());
        for (std::size_t i = 0; i < std::min(kRefined, attempts_.size()) && !done(); ++i)
            improve(attempts_[i].places);
    }

    void improve(const Places& places) {
        if (!exchange_.start(places, counter_)) return;
        exchange_.improve(counter_);
        keep({problem_.cost(exchange_.places()), exchange_.places()});
    }

    const Problem& problem_;
    std::optional<Descent> descent_;
    Exchange exchange_;
    NodeCounter counter_;
    const MapParams& params_;
    MapResult& result_;
    std::vector<Attempt> attempts_;
    Attempt best_;
};

// From what was found until it is proven, or, where the proof is not asked for, until it is too much work.
Places prove(const Problem& problem, const Places& start, const MapParams& params, MapResult& result) {
    const bool exact = params.method == Method::exact;
    Deadline deadline = params.deadline;
    if (!exact) deadline.max_nodes = std::min(deadline.max_nodes, params.proof_nodes);
    NodeCounter counter(deadline);
    const Proven proven = prove(problem, start, exact ? Ties::broken : Ties::keep, counter);
    result.nodes = counter.nodes();
    if (exact) result.complete = proven.complete;
    result.bound = std::max(result.bound, proven.bound);
    return proven.places;
}

void answer(const Problem& problem, const Places& places, MapResult& result) {
    for (const std::int32_t place : places) result.target_of.push_back(problem.vertices[at(place)]);
    result.cost = problem.cost(places);
    result.bound = std::min(result.bound, result.cost);
    result.optimal = result.cost <= result.bound + problem.tolerance;
}

// Nothing is searched where the proof would not fit into memory, let alone end, or where there is no time to
// prepare it.
Places prove_or_stop(const Problem& problem, const Places& start, const MapParams& params,
                     MapResult& result) {
    const std::size_t tasks = start.size();
    const bool fits = tasks * tasks * problem.vertices.size() <= kProvable;
    if (fits && !params.deadline.passed()) return prove(problem, start, params, result);
    result.complete = false;
    return start;
}

// `regions`: what the problem's vertices are of; empty where they are all that are free, for then they are
// asked for when needed. Without all of them nothing can be proven but what `result.bound` says.
Places search(const Problem& problem, const Target::Impl& target, std::vector<Region> regions,
              const MapParams& params, MapResult& result) {
    const bool exact = params.method == Method::exact;
    const bool whole = regions.empty();
    Heuristic heuristic(problem, params, result);
    const auto open = [&](const Places& places) {
        return result.complete && problem.cost(places) > result.bound + problem.tolerance;
    };
    Places best = heuristic.first_fit();
    if (open(best)) {
        if (whole) regions = choose_regions(problem.source, target, params, problem.vertices);
        best = heuristic.run(regions, target.halves());
    }
    const bool small = whole && problem.source.size() <= kSmall && params.proof_nodes > 0;
    if (!exact && small && open(best)) best = prove(problem, best, params, result);
    if (open(best)) best = heuristic.kick(std::move(best));
    if (exact) best = prove_or_stop(problem, best, params, result);
    return best;
}

}  // namespace

MapResult map_graph(const Source& the_source, const Target& the_target, const MapParams& params) {
    const Source::Impl& source = the_source.impl();
    const Target::Impl& target = the_target.impl();
    check(source, target, params);
    MapResult result;
    const Region free = free_vertices(target, params);
    result.found = at(source.size()) <= free.size();
    result.optimal = result.found && source.size() == 0;
    if (!result.found || result.optimal) return result;
    const bool whole = free.size() <= kWhole || params.method == Method::exact;
    std::vector<Region> regions;
    if (!whole) regions = choose_regions(source, target, params, free);
    const Problem problem(source, target, whole ? free : united(regions), params.target_cost);
    const auto arcs = 2 * static_cast<std::size_t>(source.graph().num_edges());
    result.bound = whole && arcs * free.size() <= kBounded
                       ? simple_bound(problem)
                       : crude_bound(source, target, free, params.target_cost);
    answer(problem, search(problem, target, std::move(regions), params, result), result);
    return result;
}

}  // namespace topoplace::mapping
