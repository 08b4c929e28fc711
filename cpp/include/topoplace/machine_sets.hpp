// Machine sets: the sets of one machine's GPUs that a job may get, the best first.
//
// What counts is, in this order: the communication time of the job, in steps of `slack`; the nearest links,
// the same socket; what shared GPUs keep; no part of an idle machine; the machine with the fewest free GPUs;
// few broken whole parts; no degraded GPUs; the bandwidth left among the GPUs that stay free; the smallest
// GPU list.
//
// All sets are compared where there are at most 13,000 of them; else a few sets of near GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "topoplace/job_traffic.hpp"
#include "topoplace/rated_sets.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::decide {

using Gpus = std::vector<std::int32_t>;  // by their numbers on the machine

// A machine before any job asks. Arrays of n have an entry for each GPU.
struct MachineParams {
    std::span<const std::int32_t> far{};           // (n, n) how far apart two GPUs are; 0 for the nearest
    std::span<const std::int32_t> socket{};        // (n)
    std::span<const std::int32_t> near{};          // (n) place in the order of near GPUs
    std::span<const double> degraded{};            // (n) the share by which it is slower than most
    std::vector<Gpus> parts{};                     // GPUs nearer to each other than to others
    bool are_alike = false;                        // all sets of a size, in any order, take the same time
    const collective::RatedSets* rated = nullptr;  // null where rings are not rated
    const traffic::CollectiveNetwork* network = nullptr;
};

// What is out of range.
[[nodiscard]] Fault check(const MachineParams& params);

class Machine {
  public:
    // The parameters pass `check`; the rated sets and the network have to outlive it.
    explicit Machine(const MachineParams& params);

    std::size_t num_gpus() const { return socket.size(); }
    std::int32_t distance(std::int32_t u, std::int32_t v) const {
        return far[static_cast<std::size_t>(u) * num_gpus() + static_cast<std::size_t>(v)];
    }

    const std::vector<std::int32_t> far, socket, near;
    const std::vector<double> degraded;
    const std::vector<Gpus> parts;
    const bool are_alike;
    const collective::RatedSets* const rated;
    const traffic::CollectiveNetwork& network;
    const bool reduces;  // switches reduce what some GPU sends
};

// A job on one machine.
struct JobParams {
    traffic::JobCollectives collectives{};
    std::int32_t size = 0;  // tasks
    bool communicates = false;
    bool takes_parts = false;    // shares or slices of GPUs
    bool takes_fullest = false;  // of such GPUs the whole ones, else those with the least left
};

// The first argument that is out of range; num_gpus: of the machine.
[[nodiscard]] Fault check(const JobParams& job, std::size_t num_gpus);

// The best orders of tasks on sets of GPUs, of one job on one machine with any GPUs free.
using KnownOrders = std::unordered_map<collective::GpuSet, ports::Order>;

struct SetParams {
    const Machine* machine = nullptr;
    JobParams job{};
    std::vector<Gpus> regions{};       // one of them has the whole job; GPUs ascend
    bool are_fixed = false;            // the job gets a whole region
    Gpus required{};                   // GPUs that the job gets in any case; ascending
    std::vector<bool> free{};          // (n) the free GPUs, whether or not the job may use them
    std::vector<std::int32_t> left{};  // (n) thousandths of each GPU; empty unless the job takes parts
    double slack = 0.01;
    std::size_t alternatives = 1;  // fastest sets that are needed; slower ones may be left out
    bool near_only = false;        // compares only sets of near GPUs
    KnownOrders* known = nullptr;  // that need not be found again; those that are found are added
    StopCondition stop{};
};

struct SetOption {
    static constexpr std::size_t kKeys = 14;

    Gpus gpus{};                        // of each task
    std::array<double, kKeys> order{};  // sort key, smaller is better
    double seconds = 0.0;
};

struct SetResult {
    std::vector<SetOption> options{};  // by `order`, then by GPUs
    bool all_compared = false;         // every set, and every order of tasks that may take another time
    bool complete = true;              // false: the search was stopped, and there are no options
};

// What is out of range.
[[nodiscard]] Fault check(const SetParams& params);

// The parameters pass `check`.
SetResult rank_sets(const SetParams& params);

// The communication time of the job with task i on GPU i, for machines on which all GPUs are alike.
double seconds_of_any(const Machine& machine, const JobParams& job, WorkMeter& meter);

// A number for a time, smaller for a shorter one; equal for times that count as equal.
double grade(double seconds, double slack);

// A slack that `grade` does not take.
[[nodiscard]] Fault check_slack(double slack);

}  // namespace topoplace::decide
