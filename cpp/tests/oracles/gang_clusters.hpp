// Clusters as gangs see them, with what their machines offer, and gangs on them. What is drawn comes from
// anything with `below`.
#pragma once

#include <cstdlib>
#include <map>
#include <set>

#include "oracles/gang_cases.hpp"
#include "topoplace/gang_search.hpp"

namespace oracle {

namespace decide = topoplace::decide;
using traffic::Kind;
using Longs = std::vector<std::int64_t>;

inline std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

// What is made here is in order.
inline void has_no(const topoplace::Fault& fault) {
    if (fault) std::abort();
}

// One machine of a fabric by itself.
inline Fabric alone(const Fabric& all, std::int32_t machine) {
    Fabric one = all;
    const auto keep = [&](auto& values) {
        std::size_t i = 0;
        std::erase_if(values, [&](const auto&) { return all.machine[i++ % all.machine.size()] != machine; });
    };
    for (Numbers* of : {&one.network.entry, &one.network.domain, &one.network.uplink, &one.network.access,
                        &one.network.group, &one.network.lane, &one.machine, &one.local, &one.domain,
                        &one.adapter, &one.rail, &one.near, &one.switches})
        keep(*of);
    for (Reals* of : {&one.switched, &one.reduced, &one.most_reduced}) keep(*of);
    keep(one.has_links);
    one.network.n = static_cast<std::int32_t>(one.machine.size());
    const auto first =
        static_cast<std::int32_t>(std::ranges::find(all.machine, machine) - all.machine.begin());
    one.network.links.clear();
    for (std::size_t i = 0; i < all.network.links.size(); i += 3) {
        if (all.machine[at(all.network.links[i])] != machine) continue;
        one.network.links.insert(
            one.network.links.end(),
            {all.network.links[i] - first, all.network.links[i + 1] - first, all.network.links[i + 2]});
    }
    one.network.is_slower.assign(one.network.links.size() / 3, 0);
    std::ranges::fill(one.machine, 0);
    std::ranges::fill(one.domain, 0);
    one.rates_of = {all.rates_of[at(machine)]};
    one.make();
    return one;
}

// A machine as the rule for one machine sees it.
struct Own {
    Fabric fabric;
    Numbers far, socket;
    Reals degraded, to_gpus, to_others;
    std::unique_ptr<collective::RatedSets> rated;
    std::unique_ptr<decide::Machine> made;

    Own(const Fabric& all, std::int32_t machine) : fabric(alone(all, machine)) {
        const std::size_t n = at(fabric.network.n);
        far.assign(n * n, 1);
        for (std::size_t i = 0; i < n; ++i) socket.push_back(2 * i >= n ? 1 : 0);
        degraded.assign(n, 0.0);
        to_gpus.assign(n * n, 1e9);
        to_others.assign(n, 1e9);
        const bool has_switches = std::ranges::max(fabric.switched) > 0.0;  // whose rings count
        const bool is_rated =
            fabric.rates_of[0] >= 0 && !has_switches && fabric.rates->num_terminals() == fabric.network.n;
        if (is_rated)
            rated = std::make_unique<collective::RatedSets>(
                collective::RatedSetsParams{fabric.rates.get(), false, to_gpus, to_others});
        const decide::MachineParams params{far, socket, fabric.near, degraded,
                                           {},  false,  rated.get(), fabric.made.get()};
        has_no(decide::check(params));
        made = std::make_unique<decide::Machine>(params);
    }
};

// What is known of a cluster before gangs ask.
struct GangCluster {
    Fabric fabric;
    std::int32_t count = 0;  // of machines
    std::vector<std::unique_ptr<Own>> own{};
    std::unique_ptr<decide::GangMachines> machines{};
    std::unique_ptr<decide::GangLimits> limits{};
    std::unique_ptr<decide::GangTopology> topology{};
    std::unique_ptr<decide::GangLevels> levels{};

    GangCluster(Fabric of, std::int32_t depth)
        : fabric(std::move(of)), count(static_cast<std::int32_t>(fabric.rack_of.size())) {
        // NVSwitches that join machines carry rings.
        if (fabric.racks_switch) std::ranges::replace(fabric.switched, 0.0, 2.0);
        fabric.make();
        for (std::int32_t machine = 0; machine < count; ++machine)
            own.push_back(std::make_unique<Own>(fabric, machine));
        describe();
        limit();
        add_levels(depth);
    }

    Numbers gpus_of(std::int32_t machine) const {
        const auto found = machines->gpus_of(machine);
        return {found.begin(), found.end()};
    }

  private:
    double speed(std::int32_t port) const { return port < 0 ? 0.0 : fabric.network.speeds[at(port)]; }

    void describe() {
        Longs ends;
        for (std::int32_t machine = 0; machine < count; ++machine)
            ends.push_back(std::ranges::upper_bound(fabric.machine, machine) - fabric.machine.begin());
        Numbers gpus(fabric.machine.size());
        std::iota(gpus.begin(), gpus.end(), 0);
        for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
            const std::int32_t access = fabric.network.access.empty() ? -1 : fabric.network.access[gpu];
            const double own_speed = speed(fabric.adapter[gpu]);
            ways_out_.push_back(access < 0 ? own_speed : std::min(own_speed, speed(access)));
        }
        const decide::GangMachinesParams params{ends,           gpus,      fabric.domain,
                                                fabric.adapter, ways_out_, fabric.network.speeds};
        has_no(decide::check(params));
        machines = std::make_unique<decide::GangMachines>(params);
    }

    // GB/s of the different adapters of each machine.
    Reals adapters() const {
        Reals found;
        for (std::int32_t machine = 0; machine < count; ++machine) {
            std::set<std::int32_t> different;
            for (const std::int32_t gpu : gpus_of(machine)) different.insert(fabric.adapter[at(gpu)]);
            found.push_back(
                std::accumulate(different.begin(), different.end(), 0.0,
                                [&](double sum, std::int32_t port) { return sum + speed(port); }));
        }
        return found;
    }

    void limit() {
        const std::size_t n = fabric.machine.size();
        Reals of_adapters = adapters(), of_nvlinks, of_gpus(n);
        for (std::size_t gpu = 0; gpu < n; ++gpu)
            of_gpus[gpu] = speed(fabric.network.entry[gpu]) + speed(fabric.adapter[gpu]);
        for (std::size_t i = 0; i < fabric.network.links.size(); i += 3) {
            for (const std::size_t end : {i, i + 1})
                of_gpus[at(fabric.network.links[end])] += speed(fabric.network.links[i + 2]);
        }
        decide::GangLimitsParams params;
        Numbers classes;
        for (std::int32_t machine = 0; machine < count; ++machine) {
            double& sum = of_nvlinks.emplace_back(0.0);
            for (const std::int32_t gpu : gpus_of(machine)) sum += speed(fabric.network.entry[at(gpu)]);
            params.machines.push_back(own[at(machine)]->made.get());
            classes.push_back(machine);
        }
        params.entries = {
            {{std::max(1e-9, std::ranges::max(ways_out_)), std::max(1e-9, std::ranges::max(of_adapters))},
             {4.0, std::ranges::max(of_nvlinks)}}};
        params.most_of_a_gpu = std::ranges::max(of_gpus);
        params.has_relays = !fabric.network.group.empty();
        params.most_switched = std::ranges::max(fabric.switched);
        params.are_switched = std::ranges::min(fabric.switched) > 0.0;
        params.most_reducing = std::ranges::max(fabric.reduced);
        params.most_reduced = std::ranges::max(fabric.most_reduced);
        params.gpus = machines.get();
        params.class_of = classes;
        has_no(decide::check(params));
        limits = std::make_unique<decide::GangLimits>(params);
        for (std::int32_t machine = 0; machine < count; ++machine) {
            const auto size = static_cast<double>(gpus_of(machine).size());
            of_adapters[at(machine)] = std::max(1e-9, of_adapters[at(machine)] / size);
            of_nvlinks[at(machine)] /= size;
        }
        const decide::GangTopologyParams known{limits.get(), fabric.made.get(), of_adapters, of_nvlinks};
        has_no(decide::GangTopology::check(known));
        topology = std::make_unique<decide::GangTopology>(known);
    }

    // Racks with their uplinks around machines, and all racks around these.
    void add_levels(std::int32_t depth) {
        const Longs racks(fabric.rack_of.begin(), fabric.rack_of.end()), all(at(count), 0);
        Longs numbers(at(count)), uplinks;
        std::iota(numbers.begin(), numbers.end(), 0);
        Reals uplink;
        for (std::int32_t machine = 0; machine < count; ++machine) {
            std::set<std::int32_t> different;
            for (std::size_t gpu = 0; gpu < fabric.machine.size(); ++gpu) {
                if (racks[at(fabric.machine[gpu])] == racks[at(machine)])
                    different.insert(fabric.network.uplink[fabric.machine.size() + gpu]);
            }
            double& sum = uplink.emplace_back(0.0);
            for (const std::int32_t port : different) {
                sum += speed(port);
                uplinks.insert(uplinks.end(), {machine, port});
            }
        }
        std::vector<decide::GangLevelParams> params{{all, all, {}, {}, false},
                                                    {racks, racks, uplink, uplinks, fabric.racks_switch},
                                                    {numbers, numbers, {}, {}, false}};
        params.erase(params.begin(), params.end() - 1 - depth);
        for (const auto& level : params) has_no(decide::check(level, count, *fabric.ports));
        levels = std::make_unique<decide::GangLevels>(params, fabric.racks_switch && depth == 0);
    }

    Reals ways_out_{};
};

// A gang, and what the machines offer to it.
struct OfferCase {
    std::shared_ptr<const GangCluster> cluster{};
    Numbers machines{}, kind_of{}, sizes{}, units{}, start{};
    std::vector<std::uint8_t> usable{}, free{};
    Collectives job{};
    Reals edges{};
    std::int32_t unit = 1, most = 4;
    bool machine_groups = false;
    std::shared_ptr<ports::FlowCounts> others{};

    std::size_t size() const { return units.size(); }
    decide::GangSearchParams params() const {
        decide::GangSearchParams made;
        made.topology = cluster->topology.get();
        made.levels = cluster->levels.get();
        made.offers = {machines, kind_of, sizes, usable, 1};
        made.free = free;
        made.job = job.view();
        made.edges = edges;
        made.most = most;
        made.units = {units, unit};
        made.machine_groups = machine_groups;
        made.start = start;
        made.others = others.get();
        return made;
    }
    // The GPUs on which an offer may have tasks.
    Numbers places(std::size_t offer) const {
        Numbers found;
        const Numbers gpus = cluster->gpus_of(machines[offer]);
        for (std::size_t i = 0; i < gpus.size(); ++i) {
            if ((usable[at(kind_of[offer])] >> i & 1) != 0) found.push_back(gpus[i]);
        }
        found.resize(at(sizes[offer]));
        return found;
    }
    // Units of tasks that fit.
    std::int32_t room() const {
        std::int32_t sum = 0;
        for (const std::int32_t one : sizes) sum += std::min(one, most) / unit;
        return sum;
    }
    std::int32_t machine_of(std::int32_t gpu) const { return cluster->fabric.machine[at(gpu)]; }
    double seconds(std::span<const std::int32_t> gpus) const {
        return traffic::time_of(*cluster->fabric.made, job.view(), gpus, others.get()).seconds;
    }

    // What any two tasks exchange in all phases.
    void add_edges() {
        Numbers tasks(units.size());
        std::iota(tasks.begin(), tasks.end(), 0);
        const decide::Exchanges pairs = decide::exchanges_of(job.view(), {tasks, 1}, true);
        std::map<std::pair<std::int32_t, std::int32_t>, double> sums;
        for (std::size_t i = 0; i < pairs.from.size(); ++i)
            sums[{pairs.from[i], pairs.to[i]}] += pairs.gigabytes[i];
        for (const auto& [ends, sum] : sums)
            edges.insert(edges.end(),
                         {static_cast<double>(ends.first), static_cast<double>(ends.second), sum});
    }
};

template <class Draw>
std::shared_ptr<const GangCluster> random_cluster(Draw& random) {
    const std::int32_t machines = 2 + random.below(3);
    Fabric fabric = random.below(3) == 0 ? oracle::equal_machines(machines, 1 + random.below(4))
                                         : oracle::random_fabric(random, machines, 1 + random.below(4));
    return std::make_shared<const GangCluster>(std::move(fabric), random.below(3));
}

// Some GPUs of most machines, not more than `most` in all.
template <class Draw>
void offer(Draw& random, std::int32_t most, OfferCase& c) {
    for (const std::int32_t machine : oracle::permutation(random, c.cluster->count)) {
        const auto gpus = static_cast<std::int32_t>(c.cluster->gpus_of(machine).size());
        std::int32_t bits = random.below(1 << gpus), count = 0;
        if (random.below(3) == 0) bits = (1 << gpus) - 1;
        for (std::int32_t i = 0; i < gpus; ++i) count += bits >> i & 1;
        count = std::min(count, most - std::accumulate(c.sizes.begin(), c.sizes.end(), 0));
        c.machines.push_back(machine);
        c.kind_of.push_back(static_cast<std::int32_t>(c.usable.size()));
        c.sizes.push_back(count);
        c.usable.push_back(static_cast<std::uint8_t>(bits));
        c.free.push_back(static_cast<std::uint8_t>(bits | random.below(1 << gpus)));
    }
}

// Bounds ask that tasks which get different amounts get no less than a half of `gigabytes`.
template <class Draw>
Collectives random_phases(Draw& random, std::int32_t tasks) {
    Collectives job = oracle::random_collectives(random, tasks);
    for (std::size_t i = 0; i < job.kinds.size() && !job.received.empty(); ++i) {
        const auto begin = job.received.begin() + job.view().begin_of(i);
        const double least = *std::min_element(begin, job.received.begin() + job.ends[i]);
        if (least >= 0.0) job.gigabytes[i] = 2 * least;
    }
    return job;
}

template <class Draw>
Collectives random_job(Draw& random, std::int32_t tasks) {
    if (random.below(3) == 0) return random_phases(random, tasks);
    Collectives job;
    const Numbers order = oracle::permutation(random, tasks);
    if (tasks > 1 && random.below(2) == 0) {
        job.add(random.below(2) == 0 ? Kind::kReduce : Kind::kRing, order, 1.0 + random.below(3));
    } else {
        for (std::size_t i = 1; i < order.size(); ++i)
            job.add(Kind::kSends, {order[i - 1], order[i]}, 1.0 + random.below(3));
    }
    job.end_phase();
    return job;
}

// At most so many tasks, for which there may be too little room.
template <class Draw>
OfferCase random_case(Draw& random, std::int32_t most_places = 8, std::int32_t most_tasks = 5) {
    OfferCase c;
    c.cluster = random_cluster(random);
    offer(random, most_places, c);
    c.unit = 1 + random.below(2);
    c.most = random.below(3) == 0 ? c.unit : 4;
    const std::int32_t units = 1 + random.below(std::max(1, std::min(c.room(), most_tasks / c.unit)));
    c.units = oracle::permutation(random, units * c.unit);
    c.job = random_job(random, units * c.unit);
    c.add_edges();
    c.machine_groups = random.below(2) == 0;
    if (random.below(3) == 0) c.others = oracle::random_others(random, c.cluster->fabric);
    return c;
}

// The least seconds of all assignments, and of those that divide no unit.
class AllAssignments {
  public:
    explicit AllAssignments(const OfferCase& c) : c_(c), gpus_(c.size(), -1), taken_(c.machines.size(), 0) {
        for (std::size_t i = 0; i < c.machines.size(); ++i) {
            for (const std::int32_t gpu : c.places(i)) places_.push_back({gpu, i});
        }
        try_task(0, true);
    }

    double best = std::numeric_limits<double>::infinity(), best_of_whole = best;

  private:
    void try_task(std::size_t i, bool are_whole) {
        if (i == gpus_.size()) {
            const double seconds = c_.seconds(gpus_);
            best = std::min(best, seconds);
            if (are_whole) best_of_whole = std::min(best_of_whole, seconds);
            return;
        }
        for (const auto& [gpu, offer] : places_) {
            if (taken_[offer] == c_.most || std::ranges::find(gpus_, gpu) != gpus_.end()) continue;
            const bool is_first = i % at(c_.unit) == 0;
            const bool is_beside =
                is_first || c_.machine_of(gpus_[at(c_.units[i - 1])]) == c_.machines[offer];
            ++taken_[offer];
            gpus_[at(c_.units[i])] = gpu;
            try_task(i + 1, are_whole && is_beside);
            gpus_[at(c_.units[i])] = -1;
            --taken_[offer];
        }
    }

    const OfferCase& c_;
    Numbers gpus_, taken_;
    std::vector<std::pair<std::int32_t, std::size_t>> places_{};
};

}  // namespace oracle
