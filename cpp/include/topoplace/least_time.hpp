// Least time: which GPUs of a cluster jobs get, whole ones, or shares on one machine.
//
// A job gets the best set of one machine's GPUs (condition_sets.hpp). Where no machine has room, or several
// may be much faster, it is a gang (gang_decision.hpp); here, any machines may share it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topoplace/condition_sets.hpp"
#include "topoplace/domain_fill.hpp"
#include "topoplace/gang_decision.hpp"
#include "topoplace/host_demand.hpp"
#include "topoplace/machine_ranking.hpp"

namespace topoplace::decide {

struct LeastTimeParams {
    // The sets of machines for these jobs. Where all GPUs of each machine are alike, any job of as many tasks
    // that communicate has the same ones, in the same order.
    ConditionSets* sets = nullptr;
    MachineRanking* ranking = nullptr;
    DomainFill* domains = nullptr;   // null: the fill of domains does not count
    std::size_t before_domains = 0;  // sort keys that precede it
    const GangTopology* topology = nullptr;
    const GangLevels* levels = nullptr;
    std::optional<HostDemand> hosts{};  // nothing for jobs without CPUs and memory
    std::int32_t most = 1;              // tasks on one machine
    std::int32_t max_machines = 0;      // of a job; 0: any number
    bool is_limited = false;            // GPUs with more memory than these sets may be faster
    double split = 0.0;    // how many times faster several machines have to be than one; 0: never split
    double compact = 0.0;  // as in GangDecisionParams
};

// What is missing or out of range.
[[nodiscard]] Fault check(const LeastTimeParams& params);

// A job on several machines.
struct GangJob {
    traffic::JobCollectives collectives{};
    std::span<const double> edges{};  // as in GangSearchParams
    TaskGroups groups{};              // as in GangDecisionParams
    GangGroups bound{};
    double tflop = 0.0;  // as in GangDecisionParams
    std::span<const double> tflop_per_s{};
    const ports::FlowCounts* others = nullptr;
};

struct PlacedJob {
    bool complete = true;  // false: the search was stopped, or others have changed the best machine
    bool found = false;
    std::int32_t machine = -1;         // -1: several
    std::vector<std::int32_t> gpus{};  // of each task, by its number in the cluster
    double seconds = 0.0;
    bool optimal = false;
    std::optional<double> least{};        // no placement takes less; nothing if that is not known
    bool may_be_faster_if_split = false;  // several machines may be `split` times faster
};

// Jobs of equal needs and as many tasks each.
class LeastTime {
  public:
    // What the parameters point to has to outlive it.
    explicit LeastTime(const LeastTimeParams& params) : params_(params) {}

    // The first argument that is out of range.
    [[nodiscard]] Fault check(const traffic::JobCollectives& job) const;
    [[nodiscard]] Fault check(const GangJob& job) const;

    PlacedJob on_one_machine(const traffic::JobCollectives& job, const StopCondition& stop,
                             const OtherThreads& others) const;
    // Nothing is found either where some tasks have no path. Until there is a first mapping, only
    // `until_found` stops the search.
    PlacedJob on_several(const GangJob& job, const StopCondition& stop, const StopCondition& until_found,
                         const OtherThreads& others) const;

  private:
    JobParams job_of(const traffic::JobCollectives& collectives) const;
    MachineRanking::Ranked best_machine() const;
    GangDecisionParams asked(const GangJob& job, const MachineOffers& offers) const;
    void prove(const JobParams& job, const Machine& machine, bool all_compared, WorkMeter& meter,
               PlacedJob& placed) const;
    void prove(const GangJob& job, std::optional<double> least, PlacedJob& placed) const;
    bool may_be_faster_if_split(const JobParams& job, double seconds) const;

    LeastTimeParams params_;
};

}  // namespace topoplace::decide
