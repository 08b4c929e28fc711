// One machine first, then several; the state is read before each search and not during it.
#include "topoplace/least_time.hpp"

#include <algorithm>
#include <limits>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "topoplace/free_offers.hpp"

namespace topoplace::decide {
namespace {

constexpr double kEqual = 1 + 3e-9;  // times that differ by rounding alone
// Of a job with fewer tasks in all its collectives, the time is known in microseconds. To let other threads
// go on, and to wait for them, would take longer.
constexpr std::size_t kFewTasks = 1024;

}  // namespace

Fault check(const LeastTimeParams& params) {
    if (params.sets == nullptr || params.ranking == nullptr) return "sets or their ranking are missing";
    if (params.topology == nullptr || params.levels == nullptr) return "a topology is missing";
    const std::size_t machines = index(params.sets->conditions().num_machines());
    if (auto fault = traffic::check_size("machines", index(params.topology->machines.size()), machines))
        return fault;
    if (params.hosts) {
        if (auto fault = topoplace::check(*params.hosts)) return fault;
    }
    if (params.most < 1) return traffic::wrong("most", 0, params.most, "below 1");
    if (params.max_machines < 0) return traffic::wrong("max_machines", 0, params.max_machines, "below 0");
    if (!(params.split >= 0.0 && params.split <= 1e9))
        return traffic::wrong("split", 0, params.split, "not in 0..1e9");
    if (!(params.compact >= 0.0 && params.compact <= 1e9))
        return traffic::wrong("compact", 0, params.compact, "not in 0..1e9");
    return std::nullopt;
}

Fault LeastTime::check(const traffic::JobCollectives& job) const {
    return traffic::check(job, index(params_.sets->params().job.size));
}

Fault LeastTime::check(const GangJob& job) const {
    const std::size_t size = index(params_.sets->params().job.size);
    if (auto fault = traffic::check_size("tasks", index(job.groups.num_tasks), size)) return fault;
    return decide::check(asked(job, {}));
}

JobParams LeastTime::job_of(const traffic::JobCollectives& collectives) const {
    JobParams job = params_.sets->params().job;
    job.collectives = collectives;
    return job;
}

MachineRanking::Ranked LeastTime::best_machine() const {
    const HostAmounts needs = params_.hosts ? params_.hosts->whole : HostAmounts{};
    if (params_.domains == nullptr) return params_.ranking->best(needs);
    return params_.ranking->best_by_domain(*params_.domains, params_.before_domains, needs);
}

PlacedJob LeastTime::on_one_machine(const traffic::JobCollectives& collectives, const StopCondition& stop,
                                    const OtherThreads& others) const {
    PlacedJob placed;
    if (params_.most < params_.sets->params().job.size) return placed;
    placed.complete = params_.sets->rank(*params_.ranking, stop, others);
    if (!placed.complete) return placed;
    const MachineRanking::Ranked best = best_machine();
    if (best.machine == kAbsent) return placed;
    const ConditionSets::Best* const known = params_.sets->best(best.condition, stop, others);
    placed.complete = known != nullptr && known->option;
    if (!placed.complete) return placed;
    placed.machine = best.machine;
    const std::vector<std::int32_t>& numbers = params_.sets->conditions().gpus_of(best.machine);
    for (const std::int32_t local : known->option->gpus) placed.gpus.push_back(numbers[index(local)]);
    placed.seconds = known->option->seconds;
    const bool all_compared = known->all_compared;
    const JobParams job = job_of(collectives);
    const std::int32_t of = params_.sets->conditions().condition(best.condition).machine_template;
    const Machine& machine = *params_.sets->params().templates[index(of)].machine;
    const WhileOthersGoOn meanwhile(collectives.tasks.size() < kFewTasks ? OtherThreads{} : others);
    WorkMeter meter(stop);
    if (machine.are_alike) placed.seconds = seconds_of_any(machine, job, meter);
    prove(job, machine, all_compared || machine.are_alike, meter, placed);
    placed.may_be_faster_if_split = may_be_faster_if_split(job, placed.seconds);
    placed.complete = !meter.stopped();
    placed.found = placed.complete;
    return placed;
}

// Where all GPUs of each machine are alike, by a bound; elsewhere on a single machine only.
void LeastTime::prove(const JobParams& job, const Machine& machine, bool all_compared, WorkMeter& meter,
                      PlacedJob& placed) const {
    if (job.communicates && !job.takes_parts && params_.topology->limits.are_alike()) {
        placed.least = least_seconds_of_one(params_.topology->limits, job, meter, &machine, placed.seconds);
        placed.optimal = placed.seconds <= *placed.least * kEqual;
    } else if (all_compared && !params_.is_limited && params_.topology->machines.size() == 1) {
        placed.least = placed.seconds / (1 + params_.sets->params().slack);
        placed.optimal = true;
    }
}

bool LeastTime::may_be_faster_if_split(const JobParams& job, double seconds) const {
    return params_.split > 0.0 && seconds >= least_if_split(params_.topology->limits, job) * params_.split;
}

GangDecisionParams LeastTime::asked(const GangJob& job, const MachineOffers& offers) const {
    const ConditionSetsParams& own = params_.sets->params();
    GangDecisionParams params{.groups = job.groups,
                              .bound = job.bound,
                              .max_machines = params_.max_machines,
                              .compact = params_.compact,
                              .tflop = job.tflop,
                              .tflop_per_s = job.tflop_per_s};
    GangSearchParams& search = params.search;
    search.topology = params_.topology;
    search.levels = params_.levels;
    search.offers = offers;
    search.job = job.collectives;
    search.edges = job.edges;
    search.most = params_.most;
    search.others = job.others;
    search.slack = own.slack;
    search.near_only = own.near_only;
    return params;
}

PlacedJob LeastTime::on_several(const GangJob& job, const StopCondition& stop,
                                const StopCondition& until_found, const OtherThreads& others) const {
    const ConditionSetsParams& own = params_.sets->params();
    std::vector<MachineConditions::Words> suitable;
    for (const TemplateParams& one : own.templates) suitable.push_back(one.suitable);
    MachineConditions& conditions = params_.sets->conditions();
    const KeptOffers offers =
        free_offers(conditions, suitable, own.job.size, params_.hosts ? &*params_.hosts : nullptr);
    GangDecisionParams params = asked(job, offers.view());
    const std::vector<std::uint8_t> free = free_gpus(conditions, offers.machines, params.search.free_bytes);
    params.search.free = free;
    params.search.stop = stop;
    params.until_found = until_found;
    const WhileOthersGoOn meanwhile(others);
    PlacedJob placed;
    if (offers.machines.empty()) return placed;
    GangFound made = place_gang(params);
    if (!made.found) return placed;
    placed.gpus = std::move(made.gpus);
    placed.machine = kAbsent;
    const bool is_known = offers.has_exact_room && !params_.is_limited;
    prove(job, is_known ? std::optional(made.least) : std::nullopt, placed);
    return placed;
}

// Beside others, a gang may take longer than it does alone.
void LeastTime::prove(const GangJob& job, std::optional<double> least, PlacedJob& placed) const {
    const traffic::CollectiveNetwork& network = params_.topology->network;
    const traffic::JobFlows flows = traffic::flows_of(network, job.collectives, placed.gpus);
    placed.seconds = traffic::time_of(network, flows).seconds;
    placed.found = placed.seconds < std::numeric_limits<double>::infinity();
    const double beside =
        job.others == nullptr ? placed.seconds : traffic::time_of(network, flows, job.others).seconds;
    placed.least = least;
    placed.optimal = least && 0.0 < placed.seconds && std::max(placed.seconds, beside) <= *least * kEqual;
}

}  // namespace topoplace::decide
