// The flows of all collectives of a job, and the checks of what is given.
#include "topoplace/job_traffic.hpp"

#include <algorithm>
#include <utility>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "job_traffic/flow_maker.hpp"

namespace topoplace::traffic {
namespace {

// Vertices of one machine whose rates are known are different terminals of these.
void check_terminals(const CollectiveNetworkParams& params) {
    std::vector<std::uint64_t> known(params.rates_of.size(), 0);
    for (std::size_t i = 0; i < params.machine.size(); ++i) {
        const std::size_t machine = index(params.machine[i]);
        if (params.rates_of[machine] == kNone) continue;
        const collective::RingRates& rates = *params.rates[index(params.rates_of[machine])];
        const std::int32_t local = params.local[i];
        if (local < 0 || local >= rates.num_terminals()) refuse("local", i, local, "out of range");
        const std::uint64_t bit = std::uint64_t{1} << index(local);
        if ((known[machine] & bit) != 0) refuse("local", i, local, "twice on one machine");
        known[machine] |= bit;
    }
}

void check_speeds(const char* name, std::span<const double> values, std::size_t count) {
    check_size(name, values.size(), count);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] >= 0.0)) refuse(name, i, values[i], "below 0");
    }
}

void check(const CollectiveNetworkParams& params, const ports::PortNetwork& network) {
    const std::size_t n = index(network.num_vertices()), machines = params.rates_of.size();
    const std::pair<const char*, std::span<const std::int32_t>> given[] = {
        {"machine", params.machine},  {"local", params.local}, {"domain", params.domain},
        {"adapter", params.adapter},  {"rail", params.rail},   {"near", params.near},
        {"switches", params.switches}};
    for (const auto& [name, values] : given) check_size(name, values.size(), n);
    check_speeds("switched", params.switched, n);
    check_speeds("reduced", params.reduced, n);
    check_speeds("most_reduced", params.most_reduced, n);
    check_size("has_links", params.has_links.size(), n);
    check_range("machine", params.machine, 0, machines);
    check_range("domain", params.domain, 0, n + machines);
    check_range("adapter", params.adapter, kNone, index(network.num_ports()));
    check_range("rates_of", params.rates_of, kNone, params.rates.size());
    check_terminals(params);
}

void check_vertices(std::span<const std::int32_t> vertex_of, std::size_t vertices) {
    check_range("vertex_of", vertex_of, 0, vertices);
    std::vector<std::int32_t> sorted(vertex_of.begin(), vertex_of.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice == sorted.end()) return;
    const auto last = std::find(vertex_of.rbegin(), vertex_of.rend(), *twice);
    refuse("vertex_of", static_cast<std::size_t>(vertex_of.rend() - last) - 1, *twice, "of two tasks");
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

CollectiveNetwork::CollectiveNetwork(const ports::PortNetwork& network, const CollectiveNetworkParams& params)
    : ports_(network) {
    check(params, network);
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

JobFlows flows_of(const CollectiveNetwork& network, const JobCollectives& job,
                  std::span<const std::int32_t> vertex_of, bool planned) {
    check_job(job, vertex_of.size());
    check_vertices(vertex_of, index(network.ports().num_vertices()));
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

}  // namespace topoplace::traffic
