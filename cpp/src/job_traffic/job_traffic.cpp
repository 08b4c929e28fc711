// The flows of all collectives of a job, and the checks of what is given.
#include "topoplace/job_traffic.hpp"

#include <algorithm>
#include <utility>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "job_traffic/flow_maker.hpp"
#include "topoplace/exact_sum.hpp"

namespace topoplace::traffic {
namespace {

// Vertices of one machine whose rates are known are different terminals of these.
Fault check_terminals(const CollectiveNetworkParams& params) {
    std::vector<std::uint64_t> known(params.rates_of.size(), 0);
    for (std::size_t i = 0; i < params.machine.size(); ++i) {
        const std::size_t machine = index(params.machine[i]);
        if (params.rates_of[machine] == kNone) continue;
        const collective::RingRates& rates = *params.rates[index(params.rates_of[machine])];
        const std::int32_t local = params.local[i];
        if (local < 0 || local >= rates.num_terminals()) return wrong("local", i, local, "out of range");
        const std::uint64_t bit = std::uint64_t{1} << index(local);
        if ((known[machine] & bit) != 0) return wrong("local", i, local, "twice on one machine");
        known[machine] |= bit;
    }
    return std::nullopt;
}

Fault check_speeds(const char* name, std::span<const double> values, std::size_t count) {
    if (auto fault = check_size(name, values.size(), count)) return fault;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] >= 0.0)) return wrong(name, i, values[i], "below 0");
    }
    return std::nullopt;
}

Fault check_vertices(std::span<const std::int32_t> vertex_of, std::size_t vertices) {
    if (auto fault = check_range("vertex_of", vertex_of, 0, vertices)) return fault;
    std::vector<std::int32_t> sorted(vertex_of.begin(), vertex_of.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice == sorted.end()) return std::nullopt;
    const auto last = std::find(vertex_of.rbegin(), vertex_of.rend(), *twice);
    return wrong("vertex_of", static_cast<std::size_t>(vertex_of.rend() - last) - 1, *twice, "of two tasks");
}

void append(std::span<const Flow> flows, JobFlows& found) {
    for (const Flow& flow : flows) {
        found.from.push_back(flow.from);
        found.to.push_back(flow.to);
        found.there.push_back(flow.there);
        found.back.push_back(flow.back);
    }
}

}  // namespace

Fault CollectiveNetwork::check(const ports::PortNetwork& network, const CollectiveNetworkParams& params) {
    const std::size_t n = index(network.num_vertices()), machines = params.rates_of.size();
    const std::pair<const char*, std::span<const std::int32_t>> given[] = {
        {"machine", params.machine},  {"local", params.local}, {"domain", params.domain},
        {"adapter", params.adapter},  {"rail", params.rail},   {"near", params.near},
        {"switches", params.switches}};
    for (const auto& [name, values] : given) {
        if (auto fault = check_size(name, values.size(), n)) return fault;
    }
    if (auto fault = check_speeds("switched", params.switched, n)) return fault;
    if (auto fault = check_speeds("reduced", params.reduced, n)) return fault;
    if (auto fault = check_speeds("most_reduced", params.most_reduced, n)) return fault;
    if (auto fault = check_size("has_links", params.has_links.size(), n)) return fault;
    if (auto fault = check_range("machine", params.machine, 0, machines)) return fault;
    if (auto fault = check_range("domain", params.domain, 0, n + machines)) return fault;
    if (auto fault = check_range("adapter", params.adapter, kNone, index(network.num_ports()))) return fault;
    if (auto fault = check_range("rates_of", params.rates_of, kNone, params.rates.size())) return fault;
    return check_terminals(params);
}

CollectiveNetwork::CollectiveNetwork(const ports::PortNetwork& network, const CollectiveNetworkParams& params)
    : ports_(network) {
    TOPOPLACE_ASSERT(!check(network, params));
    for (const std::int32_t number : params.rates_of) {
        rates_of_.push_back(number == kNone ? nullptr : params.rates[index(number)]);
    }
    for (std::size_t i = 0; i < params.machine.size(); ++i) {
        num_domains_ = std::max(num_domains_, params.domain[i] + 1);
        vertices_.push_back({params.machine[i], params.local[i], params.domain[i], params.adapter[i],
                             params.rail[i], params.near[i], params.switches[i], params.has_links[i] != 0,
                             params.switched[i], params.reduced[i], params.most_reduced[i]});
    }
}

double reduced_bandwidth(std::int64_t n, double reduced, double most) {
    const auto count = static_cast<double>(n);
    return std::min(most, 2.0 * (count - 1.0) / (count + 1.0) * reduced);
}

Fault check(const CollectiveNetwork& network, const JobCollectives& job,
            std::span<const std::int32_t> vertex_of) {
    if (auto fault = check(job, vertex_of.size())) return fault;
    return check_vertices(vertex_of, index(network.ports().num_vertices()));
}

JobFlows flows_of(const CollectiveNetwork& network, const JobCollectives& job,
                  std::span<const std::int32_t> vertex_of, bool planned) {
    TOPOPLACE_ASSERT(!check(network, job, vertex_of));
    FlowMaker maker(network, job, planned);
    JobFlows found;
    Made made;
    std::size_t next = 0;
    for (const std::int64_t end : job.phase_ends) {
        JobFlows::Rings slowest;
        for (; static_cast<std::int64_t>(next) < end; ++next) {
            made.clear();
            maker.make(next, vertex_of, made);
            if (made.rings.seconds > slowest.seconds) {
                slowest = made.rings;
                slowest.collective = static_cast<std::int64_t>(next);
            }
            append(made.flows, found);
        }
        found.rings.push_back(slowest);
        found.phase_ends.push_back(static_cast<std::int64_t>(found.from.size()));
    }
    return found;
}

KeptCollectives joined(std::span<const std::vector<Batch>> phases) {
    KeptCollectives made;
    bool differ = false;
    for (const std::vector<Batch>& batches : phases) {
        for (const Batch& batch : batches) differ = differ || !batch.received.empty();
    }
    for (const std::vector<Batch>& batches : phases) {
        for (const Batch& batch : batches) {
            TOPOPLACE_ASSERT(batch.tasks.size() == batch.size * batch.gigabytes.size());
            for (std::size_t i = 0; i < batch.gigabytes.size(); ++i) {
                made.kinds.push_back(static_cast<std::uint8_t>(batch.kind));
                made.ends.push_back(static_cast<std::int64_t>(made.tasks.size() + (i + 1) * batch.size));
            }
            for (const std::int64_t task : batch.tasks) made.tasks.push_back(static_cast<std::int32_t>(task));
            made.gigabytes.insert(made.gigabytes.end(), batch.gigabytes.begin(), batch.gigabytes.end());
            made.received.insert(made.received.end(), batch.received.begin(), batch.received.end());
            if (differ) made.received.resize(made.tasks.size(), -1.0);
            made.batch_ends.push_back(static_cast<std::int64_t>(made.kinds.size()));
        }
        made.phase_ends.push_back(static_cast<std::int64_t>(made.kinds.size()));
    }
    return made;
}

JobTime time_of(const CollectiveNetwork& network, const JobCollectives& job,
                std::span<const std::int32_t> vertex_of, const ports::FlowCounts* others) {
    return time_of(network, flows_of(network, job, vertex_of), others);
}

JobTime time_of(const CollectiveNetwork& network, const JobFlows& flows, const ports::FlowCounts* others) {
    const auto phases = ports::phase_times(network.ports(), flows.phase_ends, flows.flows(), others);
    std::vector<double> seconds, port_seconds;
    for (std::size_t i = 0; i < phases.size(); ++i) {
        seconds.push_back(std::max(phases[i].seconds, flows.rings[i].seconds));
        port_seconds.push_back(phases[i].port_seconds);
    }
    return {exact_sum(seconds), exact_sum(port_seconds)};
}

}  // namespace topoplace::traffic
