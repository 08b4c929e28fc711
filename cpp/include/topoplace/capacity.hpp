// Capacity planning: rent a given number of nodes, each as one of several types, and put jobs on them.
//
// A node of type v has gpus[v] GPUs. A job that runs on g of them costs run[job, v, g - 1], a job on no node
// costs wait[job]. A node costs open[v], and of its jobs' payments pay[job, v, g - 1] the least: its price
// until the first of them ends. Every node has at least one job, a job is on at most one node, and no node
// gives away more GPUs than it has. Wanted is the least sum. This is the objective of Filippini et al.,
// "Hierarchical Scheduling in on-demand GPU-as-a-Service Systems" (P1), whose tardiness and idle GPUs are in
// `run` and `open`.
//
// `price` finds, for one node and prices of jobs, the best set of jobs of each type and number of GPUs: a
// knapsack in which each job has one weight per number of GPUs and one of the jobs pays. Dynamic programming
// over jobs, jobs * gpus^2 steps a type. It is what column generation calls (Gilmore and Gomory, Operations
// Research 9, 1961), and what the search below is made of.
//
// `search` first prices jobs: the volume algorithm (Barahona and Anbil, Mathematical Programming 87, 2000)
// on the Lagrangian of "a job is on at most one node", which also bounds the cost from below. Then a large
// neighbourhood search (Shaw, CP 1998): it clears a few nodes and fills them again one after the other, each
// as well as can be for jobs whose prices are disturbed at random, the last for free, and keeps what is no
// dearer. Of equal sets the one found first stays; seeded, so that every machine finds the same. The stop
// condition is checked after every step and round, but there is always a first plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::capacity {

// What is to be decided. `run` and `pay` are jobs x types x most GPUs, row-major, infinite where a job cannot
// run; all else is finite.
struct Tables {
    std::span<const std::int32_t> gpus;  // of each type, 1 .. most GPUs
    std::span<const double> open;        // of each type
    std::span<const double> run;
    std::span<const double> pay;
    std::span<const double> wait;  // of each job
    std::int32_t most_gpus = 1;    // at most 32,767
};

struct Placed {
    std::int32_t job;
    std::int32_t gpus;

    bool operator==(const Placed&) const = default;
};

struct Node {
    std::int32_t type = 0;
    std::vector<Placed> jobs{};  // ascending
    double cost = 0;             // what it adds to the cost of all jobs waiting
};

// The tables in the order in which the searches read them. Immutable; calls may share it between threads.
class Problem {
  public:
    // The table, the index and the value that is out of range.
    [[nodiscard]] static Fault check(const Tables& tables);
    explicit Problem(const Tables& tables);

    std::int32_t num_jobs() const;

    class Impl;
    const Impl& impl() const { return *impl_; }

  private:
    std::shared_ptr<const Impl> impl_;
};

struct PricedNode {
    Node node;
    double reduced = 0;  // its cost less the prices of its jobs
};

// Prices that are not one finite number for each job.
[[nodiscard]] Fault check(const Problem& problem, std::span<const double> price);

// For each type and each number of GPUs given away that is possible, the node of least reduced cost.
// `price`: of each job, what a node gets for it; of equal nodes any, the same one every time.
std::vector<PricedNode> price(const Problem& problem, std::span<const double> price);

// All nodes whose reduced cost is at most `limit`; nothing where there are more than `most`, or the search is
// stopped. Depth first over jobs, and down no branch that has no such node.
std::optional<std::vector<PricedNode>> list(const Problem& problem, std::span<const double> price,
                                            double limit, std::size_t most, const StopCondition& stop = {});

struct SearchParams {
    std::int32_t num_nodes = 1;       // at most as many as there are jobs
    std::span<const Node> start{};    // nodes to begin with: none, or `num_nodes`
    std::uint64_t price_steps = 400;  // of the volume algorithm
    std::uint64_t rounds = 250;       // how often nodes are cleared and filled again
    std::uint64_t seed = 0;
    StopCondition stop{};  // nodes of it are knapsacks
};

struct SearchResult {
    std::vector<Node> nodes;
    double cost = 0;       // of the nodes and of the jobs that wait
    double bound = 0;      // no plan costs less
    bool complete = true;  // false: the search was stopped early
    std::uint64_t rounds = 0;
    std::uint64_t improvements = 0;
    std::uint64_t knapsacks = 0;
};

// A number of nodes that cannot be, or a start that is no plan.
[[nodiscard]] Fault check(const Problem& problem, const SearchParams& params);

SearchResult search(const Problem& problem, const SearchParams& params);

// Checks nodes by the definition alone: jobs at most once, GPUs and types that exist, at least one job each,
// and `cost`, of everything, theirs to within 1e-9 of the sum of its parts.
Fault verify(const Tables& tables, std::span<const Node> nodes, double cost);

}  // namespace topoplace::capacity
