// The time of a set: by the rings that the library plans, by the best order of its GPUs, or as it is
// measured.
#include "decide/set_times.hpp"

#include <algorithm>
#include <numeric>

#include "graph/index.hpp"
#include "topoplace/exact_sum.hpp"

namespace topoplace::decide {
namespace {

constexpr std::int32_t kMostOrdered = 16;  // tasks of rings that are also ordered

bool is_ring(std::uint8_t kind) { return traffic::is_ring(static_cast<traffic::Kind>(kind)); }

bool is_reduction(std::uint8_t kind) { return static_cast<traffic::Kind>(kind) == traffic::Kind::kReduce; }

constexpr std::size_t kMostKnown = 64;  // GPUs of a machine whose sets are numbers

}  // namespace

collective::GpuSet set_of(std::span<const std::int32_t> gpus) {
    collective::GpuSet set = 0;
    for (const std::int32_t gpu : gpus) set |= collective::GpuSet{1} << index(gpu);
    return set;
}

SetTimes::SetTimes(const SetParams& params, WorkMeter& meter)
    : params_(params), job_(params.job.collectives), machine_(*params.machine), meter_(meter) {
    const auto has_size_of_job = [&](std::size_t i) {
        return job_.ends[i] - job_.begin_of(i) == params.job.size;
    };
    bool are_rings_of_all = true;
    for (std::size_t i = 0; i < job_.kinds.size(); ++i)
        are_rings_of_all = are_rings_of_all && is_ring(job_.kinds[i]) && has_size_of_job(i);
    const bool is_rated = machine_.rated != nullptr;
    is_one_ring_ = are_rings_of_all && is_rated;
    has_inner_rings_ = is_rated && !is_one_ring_ && std::ranges::any_of(job_.kinds, is_ring);
    may_reduce_ = machine_.reduces && std::ranges::any_of(job_.kinds, is_reduction);
}

std::vector<double> SetTimes::of(Rows& rows) {
    if (!params_.job.communicates) return std::vector<double>(rows.count(), 0.0);
    if (is_one_ring_) {
        const std::vector<double> found = planned(rows);
        if (std::ranges::any_of(found, [](double seconds) { return seconds < kNever; })) return found;
    }
    return params_.known != nullptr && machine_.num_gpus() <= kMostKnown ? ordered_once(rows) : ordered(rows);
}

std::vector<double> SetTimes::planned(const Rows& rows) {
    std::vector<collective::GpuSet> sets(rows.count());
    for (std::size_t i = 0; i < sets.size(); ++i) sets[i] = set_of(rows.row(i));
    std::vector<double> found =
        machine_.rated->leading(sets, params_.alternatives, 1.0 - params_.slack, meter_);
    const double gigabytes = carried();
    // Rings of several phases may share ports, and switches may reduce without rings.
    const bool is_plain = are_alone() && !may_reduce_;
    for (std::size_t i = 0; i < found.size(); ++i) {
        double& one = found[i];
        one = one > 0.0 ? gigabytes / one : kNever;
        if (one < kNever && !is_plain && !meter_.look_at_clock()) one = measured(rows.row(i));
    }
    return found;
}

// GB between two neighbours, at the most of each phase.
double SetTimes::carried() const {
    std::vector<double> most;
    std::size_t i = 0;
    for (const std::int64_t end : job_.phase_ends) {
        most.push_back(0.0);
        for (; i < static_cast<std::size_t>(end); ++i) most.back() = std::max(most.back(), job_.gigabytes[i]);
    }
    return exact_sum(most);
}

bool SetTimes::are_alone() const {
    std::int64_t before = 0;
    for (const std::int64_t end : job_.phase_ends) {
        if (end - before != 1) return false;
        before = end;
    }
    return true;
}

std::vector<ports::Order> SetTimes::best_orders(const Rows& rows) {
    Gpus tasks(rows.size);
    std::iota(tasks.begin(), tasks.end(), 0);
    const traffic::JobFlows flows = traffic::flows_of(machine_.network, job_, tasks, false);
    std::vector<ports::Order> found =
        ports::best_orders(machine_.network.ports(), flows.phase_ends, flows.flows(),
                           static_cast<std::int32_t>(rows.size), rows.gpus, meter_.deadline());
    meter_.look_at_clock();
    return found;
}

std::vector<double> SetTimes::ordered(Rows& rows) {
    const std::vector<ports::Order> orders = best_orders(rows);
    std::vector<double> found;
    for (std::size_t i = 0; i < orders.size(); ++i) {
        rows.set_row(i, orders[i].vertices);
        found.push_back(orders[i].seconds);
    }
    return found;
}

// The same, but only sets that are not known are compared.
std::vector<double> SetTimes::ordered_once(Rows& rows) {
    KnownOrders& known = *params_.known;
    Rows others{rows.size, {}};
    for (std::size_t i = 0; i < rows.count(); ++i) {
        const auto row = rows.row(i);
        if (!known.contains(set_of(row))) others.gpus.insert(others.gpus.end(), row.begin(), row.end());
    }
    if (others.count() > 0) {
        std::vector<ports::Order> orders = best_orders(others);
        if (meter_.stopped()) return std::vector<double>(rows.count(), 0.0);
        for (std::size_t i = 0; i < orders.size(); ++i) known[set_of(others.row(i))] = std::move(orders[i]);
    }
    std::vector<double> found;
    for (std::size_t i = 0; i < rows.count(); ++i) {
        const ports::Order& order = known.find(set_of(rows.row(i)))->second;
        rows.set_row(i, order.vertices);
        found.push_back(order.seconds);
    }
    return found;
}

void SetTimes::order(Rows& rows) {
    const bool is_open = params_.job.communicates && !machine_.are_alike && is_one_ring_;
    if (is_open && params_.job.size <= kMostOrdered) ordered(rows);
}

double SetTimes::exact(std::span<const std::int32_t> gpus, double seconds) {
    if (!has_inner_rings_ || meter_.look_at_clock()) return seconds;
    return measured(gpus);
}

double SetTimes::measured(std::span<const std::int32_t> gpus) const {
    return traffic::time_of(machine_.network, job_, gpus).seconds;
}

double seconds_of_any(const Machine& machine, const JobParams& job, WorkMeter& meter) {
    if (job.size == 0) return 0.0;
    SetParams params;
    params.machine = &machine;
    params.job = job;
    Rows rows{index(job.size), Gpus(index(job.size))};
    std::iota(rows.gpus.begin(), rows.gpus.end(), 0);
    SetTimes times(params, meter);
    const double seconds = times.of(rows).front();
    return times.exact(rows.row(0), seconds);
}

}  // namespace topoplace::decide
