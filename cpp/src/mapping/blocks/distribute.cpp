// Distribution: bisects and refines.
//
// Tasks start in the blocks by number, block after block. Where that costs more than a lower bound, the list
// of blocks is halved again and again where neighbours are farthest apart, and the tasks' graph with it by
// partition::bipartition. This is done several times with different seeds. Each result is refined by
// exchanges: one task moves to a block with room, or two tasks swap, until no exchange of a task that would
// gain by itself lowers the cost. All ends where the cost reaches the bound.
//
// Swaps of whole blocks, random kicks and other starts were tried: each costs more time than another
// bisection, and gains less.
//
// References: Pellegrini, SHPCC 1994, for the bisection of both sides at once; Schulz and Traeff, "Better
// process mapping and sparse quadratic assignment", SEA 2017, for blocks with distances between them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "mapping/blocks/block_exchange.hpp"
#include "mapping/blocks/block_problem.hpp"
#include "mapping/descent.hpp"
#include "topoplace/partition.hpp"

namespace topoplace::mapping {
namespace {

constexpr std::int32_t kExact = 16;   // tasks up to which the least cut between halves is proven
constexpr std::int32_t kStarts = 16;  // of the partitioner

// The tasks' graph and the list of blocks are halved together.
class Bisection {
  public:
    Bisection(const BlockProblem& problem, std::uint64_t seed, WorkMeter& meter)
        : problem_(problem), seed_(seed), meter_(meter), place_(index(problem.source.size()), kAbsent) {}

    // Empty where no balanced halves were found, or `meter` stops on the way.
    BlockOf run() {
        block_of_.assign(index(problem_.source.size()), kAbsent);
        std::vector<std::int32_t> tasks(block_of_.size());
        std::iota(tasks.begin(), tasks.end(), 0);
        if (!halve(tasks, 0, problem_.size())) return {};
        TOPOPLACE_ASSERT(problem_.fits(block_of_));
        return block_of_;
    }

  private:
    using Tasks = std::span<std::int32_t>;

    // The tasks go to the blocks first .. end.
    bool halve(Tasks tasks, std::int32_t first, std::int32_t end) {
        if (tasks.empty()) return true;
        if (end - first == 1) {
            for (const std::int32_t task : tasks) block_of_[index(task)] = first;
            return true;
        }
        const std::int32_t middle = border(first, end);
        const std::array<std::int32_t, 2> room{room_of(first, middle), room_of(middle, end)};
        const auto here = divide(tasks, room);
        if (!here) return false;
        return halve(tasks.first(*here), first, middle) && halve(tasks.subspan(*here), middle, end);
    }

    std::int32_t room_of(std::int32_t first, std::int32_t end) const {
        std::int64_t room = 0;
        for (std::int32_t block = first; block < end; ++block) room += problem_.room[index(block)];
        return static_cast<std::int32_t>(std::min<std::int64_t>(room, problem_.source.size()));
    }

    // In the middle third, where two blocks in a row are farthest apart; of equals the nearest to the middle.
    std::int32_t border(std::int32_t first, std::int32_t end) const {
        const std::int32_t third = (end - first) / 3;
        const auto key = [&](std::int32_t at) {
            return std::pair(-problem_.row(at - 1)[at], std::abs(2 * at - first - end));
        };
        std::int32_t best = first + (end - first) / 2;
        for (std::int32_t at = std::max(first + third, first + 1); at <= end - std::max(third, 1); ++at) {
            if (key(at) < key(best)) best = at;
        }
        return best;
    }

    // Puts the tasks of the first side first; returns how many they are.
    std::optional<std::size_t> divide(Tasks tasks, const std::array<std::int32_t, 2>& room) {
        const auto size = static_cast<std::int32_t>(tasks.size());
        for (const std::size_t side : {0U, 1U}) {
            if (room[side] == 0) return side == 0 ? 0 : tasks.size();
        }
        const auto edges = edges_among(tasks);
        partition::BipartitionParams params;
        set_limits(room, size, params);
        params.starts = kStarts;
        params.seed = seed_;
        params.exact_up_to = kExact;
        params.stop = meter_.deadline();
        const auto found = partition::bipartition(Graph(size, edges), params, &workspace_);
        if (meter_.pass_time(1024 * (tasks.size() + edges.size())) || found.side.empty()) return std::nullopt;
        std::vector<std::int32_t> second;
        std::size_t count = 0;
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            if (found.side[i] == 0) {
                tasks[count++] = tasks[i];
            } else {
                second.push_back(tasks[i]);
            }
        }
        std::copy(second.begin(), second.end(), tasks.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
    }

    std::vector<Edge> edges_among(Tasks tasks) {
        const Graph& graph = problem_.source.graph();
        for (std::size_t i = 0; i < tasks.size(); ++i) place_[index(tasks[i])] = static_cast<std::int32_t>(i);
        std::vector<Edge> edges;
        for (const std::int32_t task : tasks) {
            const auto others = graph.neighbors(task);
            for (std::size_t i = 0; i < others.size() && others[i] < task; ++i) {
                const std::int32_t place = place_[index(others[i])];
                if (place != kAbsent) edges.push_back({place, place_[index(task)], graph.weights(task)[i]});
            }
        }
        for (const std::int32_t task : tasks) place_[index(task)] = kAbsent;
        return edges;
    }

    const BlockProblem& problem_;
    std::uint64_t seed_;
    WorkMeter& meter_;
    BlockOf block_of_;
    std::vector<std::int32_t> place_;  // by task, among those halved; kAbsent: not among them
    partition::BipartitionWorkspace workspace_;
};

// Block after block.
BlockOf in_turn(const BlockProblem& problem, std::span<const std::int32_t> order) {
    BlockOf block_of(order.size(), kAbsent);
    std::int32_t block = 0;
    std::int32_t taken = 0;
    for (const std::int32_t task : order) {
        for (; taken == problem.room[index(block)]; taken = 0) ++block;
        block_of[index(task)] = block;
        ++taken;
    }
    return block_of;
}

class Distributor {
  public:
    Distributor(const BlockProblem& problem, const DistributeParams& params, WorkMeter& meter)
        : problem_(problem), params_(params), meter_(meter), exchange_(problem) {}

    DistributeResult run() {
        std::vector<std::int32_t> order(index(problem_.source.size()));
        std::iota(order.begin(), order.end(), 0);
        best_ = in_turn(problem_, order);
        cost_ = problem_.cost(best_);
        const auto bound = lower_bound(problem_, meter_);
        bound_ = bound.value_or(0);
        if (bound && !done()) search();
        const double least = std::min(bound_, cost_);
        return {.found = true,
                .block_of = best_,
                .cost = cost_,
                .bound = least,
                .optimal = cost_ <= least + problem_.tolerance,
                .complete = !meter_.stopped(),
                .exchanges = exchange_.exchanges()};
    }

  private:
    // Nothing is left to search for, or no time.
    bool done() const { return cost_ <= bound_ + problem_.tolerance || meter_.stopped(); }

    void search() {
        for (std::int32_t start = 0; start < params_.starts && !done(); ++start) {
            if (meter_.look_at_clock()) return;
            const BlockOf halved = Bisection(problem_, params_.seed + index(start), meter_).run();
            if (meter_.stopped()) return;
            refine(halved.empty() ? best_ : halved);
        }
    }

    void refine(const BlockOf& block_of) {
        keep(block_of);
        if (done() || !exchange_.start(block_of, meter_)) return;
        exchange_.improve(meter_);
        keep(exchange_.block_of());
    }

    void keep(const BlockOf& block_of) {
        const double cost = problem_.cost(block_of);
        if (cost >= cost_ - problem_.tolerance) return;
        cost_ = cost;
        best_ = block_of;
    }

    const BlockProblem& problem_;
    const DistributeParams& params_;
    WorkMeter& meter_;
    BlockExchange exchange_;
    BlockOf best_;
    double cost_ = 0;
    double bound_ = 0;
};

}  // namespace

DistributeResult distribute(const Source& source, const DistributeParams& params) {
    TOPOPLACE_ASSERT(!check(source, params));
    const BlockProblem problem(source.impl(), params);
    if (problem.total_room < source.num_vertices()) return {};
    WorkMeter meter(params.stop);
    return Distributor(problem, params, meter).run();
}

}  // namespace topoplace::mapping
