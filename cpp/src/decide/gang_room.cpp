// Sums of the tasks that machines take, and the channels that their adapters are enough for.
#include "topoplace/gang_room.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "decide/machine_order.hpp"
#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

// Of each offer, a number of its domain of rings from 0, by the numbers of these.
std::vector<std::int32_t> ring_domains(const GangMachines& machines, const MachineOffers& offers) {
    std::vector<std::int32_t> found;
    for (const std::int32_t machine : offers.machines)
        found.push_back(machines.gpu(machines.gpus_of(machine)[0]).domain);
    std::vector<std::int32_t> distinct(found);
    std::ranges::sort(distinct);
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (std::int32_t& one : found) {
        one = static_cast<std::int32_t>(std::ranges::lower_bound(distinct, one) - distinct.begin());
    }
    return found;
}

using Own = std::vector<std::pair<std::int32_t, GangRoom::Adapter>>;

// Appends the adapters of the GPUs that an offer may use, by their numbers; own: room to list them.
void add_adapters(const GangMachines& machines, const MachineOffers& offers, std::size_t offer,
                  std::int32_t owner, GangRoom& room, Own& own) {
    const auto gpus = machines.gpus_of(offers.machines[offer]);
    own.clear();
    offers.each_usable(offers.kind_of[offer], [&](std::size_t local) {
        const GangMachines::Gpu& gpu = machines.gpu(gpus[local]);
        if (gpu.adapter < 0) return;
        const auto known = std::ranges::find(own, gpu.adapter, [](const auto& one) { return one.first; });
        if (known == own.end()) {
            own.push_back({gpu.adapter, {owner, gpu.gb_per_s, gpu.way_out}});
        } else {
            known->second.way_out = std::max(known->second.way_out, gpu.way_out);
        }
    });
    std::ranges::sort(own, {}, [](const auto& one) { return one.first; });
    for (const auto& [_, adapter] : own) room.adapters.push_back(adapter);
}

// The offers by kind, those of one kind in their order: sums of floats over several machines depend on it.
std::vector<std::int32_t> by_kind(const MachineOffers& offers, bool are_domains) {
    std::vector<std::int32_t> found(offers.machines.size());
    std::iota(found.begin(), found.end(), 0);
    if (are_domains) return found;
    std::ranges::stable_sort(found, {}, [&](std::int32_t one) { return offers.kind_of[index(one)]; });
    return found;
}

}  // namespace

GangRoom gang_room(const GangMachines& machines, const MachineOffers& offers, const LevelCodes& codes,
                   std::int32_t most) {
    GangRoom room;
    const MachineOrder sorted = machine_order(offers, codes);
    std::vector<std::int64_t> before{0};  // tasks of the leaves before each one
    for (const std::int32_t offer : sorted.order)
        before.push_back(before.back() + std::min(most, offers.sizes[index(offer)]));
    room.tasks.push_back({before.back()});
    for (const auto& firsts : sorted.firsts) {
        std::vector<std::int64_t>& tasks = room.tasks.emplace_back();
        for (std::size_t i = 0; i < firsts.size(); ++i) {
            const std::int64_t end = i + 1 < firsts.size() ? before[index(firsts[i + 1])] : before.back();
            tasks.push_back(end - before[index(firsts[i])]);
        }
    }
    const std::vector<std::int32_t> owners = ring_domains(machines, offers);
    for (std::size_t i = 0; i < owners.size(); ++i) {
        if (index(owners[i]) >= room.ring_tasks.size()) room.ring_tasks.resize(index(owners[i]) + 1, 0);
        room.ring_tasks[index(owners[i])] += std::min(most, offers.sizes[i]);
    }
    Own own;
    for (const std::int32_t offer : by_kind(offers, room.ring_tasks.size() == owners.size()))
        add_adapters(machines, offers, index(offer), owners[index(offer)], room, own);
    return room;
}

std::int64_t groups_that_fit(const std::vector<std::int64_t>& tasks, std::int64_t size) {
    std::int64_t found = 0;
    for (const std::int64_t one : tasks) found += one / size;
    return found;
}

namespace {

// By the most channels that a domain can have: the tasks of each such domain.
using TasksByCount = std::vector<std::vector<std::int64_t>>;

TasksByCount tasks_by_count(const GangRoom& room, const std::vector<std::size_t>& adapters) {
    TasksByCount found(1 + *std::ranges::max_element(adapters));
    for (std::size_t i = 0; i < adapters.size(); ++i) {
        const auto channels = std::min(adapters[i], static_cast<std::size_t>(room.ring_tasks[i]));
        found[channels].push_back(room.ring_tasks[i]);
    }
    return found;
}

// The most channels of a ring of `size` tasks over several domains. Each of these has a task for every
// channel: so the largest of as many as there can be have room for all tasks.
std::int64_t most_channels(const TasksByCount& tasks, std::int64_t size) {
    std::vector<std::int64_t> largest;  // of domains that can have as many
    for (std::size_t channels = tasks.size() - 1; channels > 0; --channels) {
        largest.insert(largest.end(), tasks[channels].begin(), tasks[channels].end());
        const std::int64_t domains = size / static_cast<std::int64_t>(channels);
        if (domains < 2) continue;
        const auto count = std::min(std::ssize(largest), static_cast<std::ptrdiff_t>(domains));
        std::ranges::nth_element(largest, largest.begin() + count, std::ranges::greater{});
        if (std::accumulate(largest.begin(), largest.begin() + count, std::int64_t{0}) >= size)
            return static_cast<std::int64_t>(channels);
    }
    return 0;
}

}  // namespace

double most_of_channels(const GangRoom& room, std::int64_t size, double way_out) {
    const auto speed_of = [&](const GangRoom::Adapter& one) { return way_out > 0.0 ? way_out : one.way_out; };
    std::vector<double> speeds;
    for (const GangRoom::Adapter& one : room.adapters) {
        if (std::ranges::find(speeds, speed_of(one)) == speeds.end()) speeds.push_back(speed_of(one));
    }
    double best = 0.0;
    std::vector<std::size_t> counts(room.ring_tasks.size());
    for (const double speed : speeds) {
        std::ranges::fill(counts, std::size_t{0});
        for (const GangRoom::Adapter& one : room.adapters)
            counts[index(one.owner)] += speed_of(one) >= speed ? 1 : 0;
        const std::int64_t most = most_channels(tasks_by_count(room, counts), size);
        best = std::max(best, speed * static_cast<double>(most));
    }
    return best;
}

double most_of_adapters(const GangRoom& room) {
    std::vector<double> sums(room.ring_tasks.size(), 0.0);
    for (const GangRoom::Adapter& one : room.adapters) sums[index(one.owner)] += one.gb_per_s;
    return std::ranges::max(sums.empty() ? std::vector<double>{0.0} : sums);
}

}  // namespace topoplace::decide
