// The flows of all collectives of a job, and the checks of what is given.
#include "topoplace/job_traffic.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "graph/index.hpp"
#include "job_traffic/flow_maker.hpp"

namespace topoplace::traffic {
namespace {

template <class T>
[[noreturn]] void refuse(const char* name, std::size_t i, T value, const char* rule) {
    throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value) +
                                ": " + rule);
}

void check_size(const char* name, std::size_t size, std::size_t expected) {
    if (size == expected) return;
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(size) + " entries, not " +
                                std::to_string(expected));
}

void check_range(const char* name, std::span<const std::int32_t> values, std::int32_t low, std::size_t end) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < low || (values[i] >= 0 && index(values[i]) >= end)) {
            refuse(name, i, values[i], "out of range");
        }
    }
}

void check_ends(const char* name, std::span<const std::int64_t> ends, std::size_t count) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] < last) refuse(name, i, ends[i], "descends");
        last = ends[i];
    }
    if (static_cast<std::size_t>(last) != count) {
        refuse(name, ends.size(), last, "does not end where the array does");
    }
}

void check_job(const JobCollectives& job, std::span<const std::int32_t> vertex_of, std::size_t vertices) {
    check_ends("phase_ends", job.phase_ends, job.kinds.size());
    check_size("ends", job.ends.size(), job.kinds.size());
    check_ends("ends", job.ends, job.tasks.size());
    check_size("gigabytes", job.gigabytes.size(), job.kinds.size());
    if (!job.received.empty()) check_size("received", job.received.size(), job.tasks.size());
    check_range("tasks", job.tasks, 0, vertex_of.size());
    check_range("vertex_of", vertex_of, 0, vertices);
    for (std::size_t i = 0; i < job.kinds.size(); ++i) {
        if (job.kinds[i] > static_cast<std::uint8_t>(Kind::kSends)) {
            refuse("kinds", i, int{job.kinds[i]}, "there is no such kind");
        }
        if (job.ends[i] - job.begin_of(i) < 2)
            refuse("ends", i, job.ends[i], "a collective of fewer than two");
        if (!(job.gigabytes[i] >= 0.0 && job.gigabytes[i] <= 1e18)) {
            refuse("gigabytes", i, job.gigabytes[i], "not in 0..1e18");
        }
    }
}

}  // namespace

CollectiveNetwork::CollectiveNetwork(const ports::PortNetwork& network, const CollectiveNetworkParams& params)
    : ports_(network) {
    const std::size_t n = index(network.num_vertices()), machines = params.rates_of.size();
    const std::pair<const char*, std::span<const std::int32_t>> given[] = {
        {"machine", params.machine},  {"local", params.local}, {"domain", params.domain},
        {"adapter", params.adapter},  {"rail", params.rail},   {"near", params.near},
        {"switches", params.switches}};
    for (const auto& [name, values] : given) check_size(name, values.size(), n);
    check_size("switched", params.switched.size(), n);
    check_size("reduced", params.reduced.size(), n);
    check_size("most_reduced", params.most_reduced.size(), n);
    check_size("has_links", params.has_links.size(), n);
    check_range("machine", params.machine, 0, machines);
    check_range("domain", params.domain, 0, n + machines);
    check_range("rates_of", params.rates_of, kNone, params.rates.size());
    for (const std::int32_t number : params.rates_of) {
        rates_of_.push_back(number == kNone ? nullptr : params.rates[index(number)]);
    }
    for (std::size_t i = 0; i < n; ++i) {
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
    check_job(job, vertex_of, index(network.ports().num_vertices()));
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
            for (const Flow& flow : made.flows) {
                found.from.push_back(flow.from);
                found.to.push_back(flow.to);
                found.there.push_back(flow.there);
                found.back.push_back(flow.back);
            }
        }
        found.rings.push_back(slowest);
        found.phase_ends.push_back(static_cast<std::int64_t>(found.from.size()));
    }
    return found;
}

}  // namespace topoplace::traffic
