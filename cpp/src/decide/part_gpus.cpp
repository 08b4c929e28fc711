// Each part is a job of its own, whose tasks send along the edges among them.
#include "decide/part_gpus.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

struct Part {
    std::vector<std::int32_t> tasks{};  // ascending
    std::vector<std::int32_t> ends{};   // two of each edge, as places in `tasks`
    std::vector<double> gigabytes{};
};

using Parts = std::map<std::int32_t, Part>;  // by machine

Parts parts_of(const GangSearchParams& params, std::span<const std::int32_t> vertex_of) {
    const traffic::CollectiveNetwork& network = params.topology->network;
    Parts parts;
    std::vector<std::int32_t> place;
    for (std::size_t task = 0; task < vertex_of.size(); ++task) {
        Part& part = parts[network.vertex(vertex_of[task]).machine];
        place.push_back(static_cast<std::int32_t>(part.tasks.size()));
        part.tasks.push_back(static_cast<std::int32_t>(task));
    }
    for (std::size_t i = 0; i < params.edges.size(); i += 3) {
        const auto a = static_cast<std::size_t>(params.edges[i]),
                   b = static_cast<std::size_t>(params.edges[i + 1]);
        const std::int32_t machine = network.vertex(vertex_of[a]).machine;
        if (machine != network.vertex(vertex_of[b]).machine) continue;
        Part& part = parts[machine];
        part.ends.insert(part.ends.end(), {place[a], place[b]});
        part.gigabytes.push_back(params.edges[i + 2]);
    }
    return parts;
}

template <class T>
void append(std::string& key, std::span<const T> values) {
    const std::size_t size = values.size_bytes();
    key.append(reinterpret_cast<const char*>(&size), sizeof size);
    key.append(reinterpret_cast<const char*>(values.data()), size);
}

class PartGpus {
  public:
    explicit PartGpus(const GangSearchParams& params)
        : params_(params), offer_of_(index(params.topology->machines.size()), 0) {
        for (std::size_t i = 0; i < params.offers.machines.size(); ++i)
            offer_of_[index(params.offers.machines[i])] = i;
    }

    // The GPUs of a part's tasks by their numbers on the machine; false where the search is stopped.
    bool find(std::int32_t machine, const Part& part, Gpus& found) const {
        const GangTopology& topology = *params_.topology;
        const std::size_t offer = offer_of_[index(machine)];
        std::vector<std::uint8_t> kinds(part.gigabytes.size(),
                                        static_cast<std::uint8_t>(traffic::Kind::kSends));
        std::vector<std::int64_t> ends;
        for (std::size_t i = 1; i <= kinds.size(); ++i) ends.push_back(static_cast<std::int64_t>(2 * i));
        const std::int64_t count = static_cast<std::int64_t>(kinds.size());
        const bool is_whole = part.tasks.size() == params_.units.tasks.size();
        SetParams sets{.machine = &topology.limits.machine(machine),
                       .regions = {usable(offer)},
                       .free = free(offer, machine),
                       .slack = params_.slack,
                       .near_only = params_.near_only,
                       .stop = params_.stop};
        sets.job.size = static_cast<std::int32_t>(part.tasks.size());
        sets.job.communicates = !part.gigabytes.empty();
        if (is_whole) {
            sets.job.collectives = params_.job;
        } else if (sets.job.communicates) {
            sets.job.collectives = {.phase_ends = {&count, 1},
                                    .kinds = kinds,
                                    .ends = ends,
                                    .tasks = part.ends,
                                    .gigabytes = part.gigabytes};
        }
        const std::string key = key_of(machine, sets);
        if (topology.known(key, found)) return true;
        const SetResult ranked = rank_sets(sets);
        if (!ranked.complete) return false;
        found = ranked.options.empty() ? sets.regions.front() : ranked.options.front().gpus;
        found.resize(part.tasks.size());
        topology.keep(key, found);
        return true;
    }

  private:
    // The first GPUs of an offer, as many as it may have tasks.
    Gpus usable(std::size_t offer) const {
        Gpus found;
        params_.offers.each_usable(params_.offers.kind_of[offer],
                                   [&](std::size_t gpu) { found.push_back(static_cast<std::int32_t>(gpu)); });
        found.resize(index(params_.offers.sizes[offer]));
        return found;
    }

    std::vector<bool> free(std::size_t offer, std::int32_t machine) const {
        const auto bits = params_.free.subspan(offer * params_.free_bytes, params_.free_bytes);
        std::vector<bool> found(params_.topology->machines.gpus_of(machine).size(), false);
        for (std::size_t gpu = 0; gpu < std::min(found.size(), 8 * bits.size()); ++gpu)
            found[gpu] = (bits[gpu / 8] >> (gpu % 8) & 1U) != 0;
        return found;
    }

    std::string key_of(std::int32_t machine, const SetParams& sets) const {
        std::string key;
        const std::int32_t class_of = params_.topology->limits.class_of[index(machine)];
        const std::vector<std::uint8_t> free(sets.free.begin(), sets.free.end());
        append(key, std::span<const std::int32_t>(&class_of, 1));
        append(key, std::span(free));
        append(key, std::span<const std::int32_t>(sets.regions.front()));
        append(key, std::span<const double>(&sets.slack, 1));
        const std::array<std::int32_t, 2> numbers{sets.near_only ? 1 : 0, sets.job.size};
        append(key, std::span<const std::int32_t>(numbers));
        const traffic::JobCollectives& job = sets.job.collectives;
        append(key, job.phase_ends);
        append(key, job.kinds);
        append(key, job.ends);
        append(key, job.tasks);
        append(key, job.gigabytes);
        append(key, job.received);
        return key;
    }

    const GangSearchParams& params_;
    std::vector<std::size_t> offer_of_;  // of each machine that makes one
};

}  // namespace

std::vector<std::int32_t> by_the_rule_for_machines(const GangSearchParams& params,
                                                   std::span<const std::int32_t> vertex_of) {
    const PartGpus rule(params);
    std::vector<std::int32_t> gpus(vertex_of.begin(), vertex_of.end());
    Gpus found;
    for (const auto& [machine, part] : parts_of(params, vertex_of)) {
        if (!rule.find(machine, part, found)) return {};
        const auto numbers = params.topology->machines.gpus_of(machine);
        for (std::size_t i = 0; i < found.size(); ++i) gpus[index(part.tasks[i])] = numbers[index(found[i])];
    }
    return gpus;
}

}  // namespace topoplace::decide
