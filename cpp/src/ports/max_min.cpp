// The phases of jobs that share ports, from moment to moment.
#include "topoplace/max_min.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "ports/fair_rates.hpp"
#include "ports/loads.hpp"

namespace topoplace::ports {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNothing = 1e-9;  // share of its GB that a stream may have left when it ends
constexpr double kSameMoment = 1 + 1e-12;
constexpr std::uint64_t kStepsPerHop = 50;  // of `WorkMeter`, each a fifth of a nanosecond

Fault check_job(const SharingJob& job, const PortNetwork& network) {
    if (auto fault = check(job.phase_ends, job.flows, network.num_vertices())) return fault;
    if (!job.at_least.empty() && job.at_least.size() != job.phase_ends.size()) {
        return "at_least has " + std::to_string(job.at_least.size()) + " entries, not " +
               std::to_string(job.phase_ends.size());
    }
    for (std::size_t i = 0; i < job.at_least.size(); ++i) {
        if (job.at_least[i] >= 0.0 && job.at_least[i] < kInfinity) continue;
        return "at_least[" + std::to_string(i) + "] = " + std::to_string(job.at_least[i]) +
               ": not a finite number of 0 or above";
    }
    return std::nullopt;
}

// ---- which jobs count -----------------------------------------------------------------------------------

// Sets of hops that are connected by jobs.
class Connected {
  public:
    explicit Connected(std::size_t hops) : above_(hops) { std::iota(above_.begin(), above_.end(), Hop{0}); }

    Hop set_of(Hop hop) {
        auto one = static_cast<std::size_t>(hop);
        while (above_[one] != static_cast<Hop>(one)) {
            above_[one] = above_[static_cast<std::size_t>(above_[one])];
            one = static_cast<std::size_t>(above_[one]);
        }
        return static_cast<Hop>(one);
    }
    void join(Hop one, Hop other) { above_[static_cast<std::size_t>(set_of(one))] = set_of(other); }

  private:
    std::vector<Hop> above_;
};

// Those that share ports with the first job, directly or through others.
std::vector<const SharingJob*> connected_to_first(const PortNetwork& network,
                                                  std::span<const SharingJob> jobs) {
    Connected sets(2 * static_cast<std::size_t>(network.num_ports()));
    std::vector<Hop> first_hop(jobs.size(), kNone), hops;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        const Flows& flows = jobs[job].flows;
        const auto join = [&](Hop hop, double gigabytes) {
            if (gigabytes <= 0.0) return;
            if (first_hop[job] == kNone) first_hop[job] = hop;
            sets.join(hop, first_hop[job]);
        };
        for (std::size_t i = 0; i < flows.from.size(); ++i) {
            put_both_ways(network, flows.from[i], flows.to[i], flows.there[i], flows.back[i], hops, join);
        }
    }
    std::vector<const SharingJob*> found;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        const bool counts = first_hop[0] != kNone && first_hop[job] != kNone &&
                            sets.set_of(first_hop[job]) == sets.set_of(first_hop[0]);
        if (job == 0 || counts) found.push_back(&jobs[job]);
    }
    return found;
}

// ---- from moment to moment ------------------------------------------------------------------------------

struct Phase {
    std::size_t begin = 0, end = 0;  // of its streams
    double at_least = 0.0;
    double began = 0.0;
    std::size_t running = 0;  // streams
    bool is_blocked = false;  // by a flow that never ends, without which the job goes on here
    PhaseTime time{};
};

struct Job {
    std::size_t phase = 0;  // that runs
    std::size_t end = 0;    // of its phases
};

class Sharing {
  public:
    Sharing(const PortNetwork& network, std::span<const SharingJob* const> jobs, const StopCondition& stop)
        : network_(network), rates_(network), meter_(stop) {
        for (const SharingJob* job : jobs) add(*job);
    }

    MaxMinTimes times() {
        const std::size_t end = jobs_.front().end;
        for (Job& job : jobs_) enter(job);
        MaxMinTimes found;
        while (jobs_.front().phase < end && found.complete) {
            meter_.visit();
            found.complete = !meter_.spend(kStepsPerHop * (1 + num_hops_));
            if (found.complete) advance();
        }
        for (std::size_t i = 0; i < end; ++i) {
            Phase& phase = phases_[i];
            if (phase.running > 0) phase.time.seconds = now_ - phase.began;
            found.phases.push_back(phase.is_blocked ? PhaseTime{.seconds = kInfinity} : phase.time);
        }
        found.nodes = meter_.nodes();
        return found;
    }

  private:
    void add(const SharingJob& job) {
        const std::size_t first = phases_.size();
        std::size_t i = 0;
        for (const std::int64_t end : job.phase_ends) {
            Phase phase{.begin = streams_.size()};
            if (!job.at_least.empty()) phase.at_least = job.at_least[phases_.size() - first];
            for (; i < static_cast<std::size_t>(end); ++i) {
                add_stream(job.flows.from[i], job.flows.to[i], job.flows.there[i], phase);
                add_stream(job.flows.to[i], job.flows.from[i], job.flows.back[i], phase);
            }
            phase.end = streams_.size();
            phases_.push_back(phase);
        }
        jobs_.push_back({first, phases_.size()});
    }

    void add_stream(std::int32_t from, std::int32_t to, double gigabytes, Phase& phase) {
        if (gigabytes <= 0.0) return;
        const std::size_t begin = hops_.size();
        bool ends = network_.route(from, to, hops_);
        for (const Hop hop : std::span(hops_).subspan(begin)) {
            const double gb_per_s = network_.gb_per_s(hop / 2);
            if (network_.is_uplink(hop / 2)) phase.time.port_seconds += gigabytes / gb_per_s;
            ends = ends && gb_per_s > 0.0;
        }
        phase.is_blocked = phase.is_blocked || !ends;
        if (!ends) hops_.resize(begin);
        if (hops_.size() > begin) {
            streams_.push_back({begin, hops_.size(), phases_.size(), gigabytes, gigabytes, 0.0, kNone});
        }
    }

    // Begins the phase of a job, and the next ones after those that take no time.
    void enter(Job& job) {
        for (; job.phase < job.end; ++job.phase) {
            Phase& phase = phases_[job.phase];
            phase.began = now_;
            phase.running = phase.end - phase.begin;
            for (std::size_t i = phase.begin; i < phase.end; ++i) {
                active_.push_back(i);
                num_hops_ += streams_[i].end - streams_[i].begin;
            }
            if (phase.running > 0 || phase.at_least > 0.0) return;
        }
    }

    // Goes on to the next moment.
    void advance() {
        rates_.assign(active_, streams_, hops_);
        const double step = next_step();
        now_ += step;
        std::erase_if(active_, [&](std::size_t one) { return send(streams_[one], step); });
        for (Job& job : jobs_) {
            if (job.phase == job.end) continue;
            const Phase& phase = phases_[job.phase];
            if (phase.running > 0 || phase.began + phase.at_least > now_ * kSameMoment) continue;
            ++job.phase;
            enter(job);
        }
    }

    double next_step() const {
        double step = kInfinity;
        for (const std::size_t one : active_) step = std::min(step, streams_[one].left / streams_[one].rate);
        for (const Job& job : jobs_) {
            if (job.phase == job.end) continue;
            const Phase& phase = phases_[job.phase];
            if (phase.running == 0) step = std::min(step, phase.began + phase.at_least - now_);
        }
        return step;
    }

    // Sends what a stream can in so many seconds; true where it ends.
    bool send(Stream& stream, double seconds) {
        stream.left -= stream.rate * seconds;
        if (stream.left > kNothing * stream.gigabytes) return false;
        Phase& phase = phases_[stream.phase];
        --phase.running;
        num_hops_ -= stream.end - stream.begin;
        const bool is_first = now_ - phase.began > phase.time.seconds;
        if (is_first || stream.held_by < phase.time.slowest) phase.time.slowest = stream.held_by;
        phase.time.seconds = now_ - phase.began;
        return true;
    }

    const PortNetwork& network_;
    FairRates rates_;
    WorkMeter meter_;
    double now_ = 0.0;
    std::vector<Hop> hops_{};  // of all streams
    std::vector<Stream> streams_{};
    std::vector<Phase> phases_{};
    std::vector<Job> jobs_{};
    std::vector<std::size_t> active_{};  // streams
    std::size_t num_hops_ = 0;           // that they pass
};

}  // namespace

Fault check(const PortNetwork& network, std::span<const SharingJob> jobs) {
    if (jobs.empty()) return "jobs is empty";
    for (const SharingJob& job : jobs) {
        if (auto fault = check_job(job, network)) return fault;
    }
    return std::nullopt;
}

MaxMinTimes max_min_times(const PortNetwork& network, std::span<const SharingJob> jobs,
                          const StopCondition& stop) {
    TOPOPLACE_ASSERT(!check(network, jobs));
    return Sharing(network, connected_to_first(network, jobs), stop).times();
}

}  // namespace topoplace::ports
