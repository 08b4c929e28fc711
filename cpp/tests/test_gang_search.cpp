// Gang search on small clusters against every assignment, and what it has to honour.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "check.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/gang_search.hpp"
#include "topoplace/random.hpp"

namespace collective = topoplace::collective;
namespace decide = topoplace::decide;
namespace ports = topoplace::ports;
namespace traffic = topoplace::traffic;
using decide::GangFound;
using decide::GangSearchParams;
using oracle::Collectives;
using oracle::Fabric;
using oracle::Numbers;
using oracle::Reals;
using topoplace::Random;
using traffic::Kind;
using Longs = std::vector<std::int64_t>;

namespace {

constexpr double kEqual = 1 + 1e-6;

std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

// One machine of a fabric by itself.
Fabric alone(const Fabric& all, std::int32_t machine) {
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
        socket.assign(n, 0);
        degraded.assign(n, 0.0);
        to_gpus.assign(n * n, 1e9);
        to_others.assign(n, 1e9);
        const bool is_rated = fabric.rates_of[0] >= 0 && fabric.rates->num_terminals() == fabric.network.n;
        if (is_rated)
            rated = std::make_unique<collective::RatedSets>(
                collective::RatedSetsParams{fabric.rates.get(), false, to_gpus, to_others});
        const decide::MachineParams params{far, socket, fabric.near, degraded,
                                           {},  false,  rated.get(), fabric.made.get()};
        CHECK(!decide::check(params));
        made = std::make_unique<decide::Machine>(params);
    }
};

// What is known of a cluster before gangs ask.
struct Cluster {
    Fabric fabric;
    std::int32_t count = 0;  // of machines
    std::vector<std::unique_ptr<Own>> own{};
    std::unique_ptr<decide::GangMachines> machines{};
    std::unique_ptr<decide::GangLimits> limits{};
    std::unique_ptr<decide::GangTopology> topology{};
    std::unique_ptr<decide::GangLevels> levels{};

    Cluster(Fabric of, std::int32_t depth)
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
        CHECK(!decide::check(params));
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
        CHECK(!decide::check(params));
        limits = std::make_unique<decide::GangLimits>(params);
        for (std::int32_t machine = 0; machine < count; ++machine) {
            const auto size = static_cast<double>(gpus_of(machine).size());
            of_adapters[at(machine)] = std::max(1e-9, of_adapters[at(machine)] / size);
            of_nvlinks[at(machine)] /= size;
        }
        const decide::GangTopologyParams known{limits.get(), fabric.made.get(), of_adapters, of_nvlinks};
        CHECK(!decide::GangTopology::check(known));
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
        for (const auto& level : params) CHECK(!decide::check(level, count, *fabric.ports));
        levels = std::make_unique<decide::GangLevels>(params, fabric.racks_switch && depth == 0);
    }

    Reals ways_out_{};
};

// A gang, and what the machines offer to it.
struct Case {
    std::shared_ptr<const Cluster> cluster{};
    Numbers machines{}, kind_of{}, sizes{}, units{}, start{};
    std::vector<std::uint8_t> usable{}, free{};
    Collectives job{};
    Reals edges{};
    std::int32_t unit = 1, most = 4;
    bool machine_groups = false;
    std::shared_ptr<ports::FlowCounts> others{};

    std::size_t size() const { return units.size(); }
    GangSearchParams params() const {
        GangSearchParams made;
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

std::shared_ptr<const Cluster> random_cluster(Random& random) {
    const std::int32_t machines = 2 + random.below(3);
    Fabric fabric = random.below(3) == 0 ? oracle::equal_machines(machines, 1 + random.below(4))
                                         : oracle::random_fabric(random, machines, 1 + random.below(4));
    return std::make_shared<const Cluster>(std::move(fabric), random.below(3));
}

// Some GPUs of most machines, not more than `most` in all.
void offer(Random& random, std::int32_t most, Case& c) {
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
Collectives random_phases(Random& random, std::int32_t tasks) {
    Collectives job = oracle::random_collectives(random, tasks);
    for (std::size_t i = 0; i < job.kinds.size() && !job.received.empty(); ++i) {
        const auto begin = job.received.begin() + job.view().begin_of(i);
        const double least = *std::min_element(begin, job.received.begin() + job.ends[i]);
        if (least >= 0.0) job.gigabytes[i] = 2 * least;
    }
    return job;
}

Collectives random_job(Random& random, std::int32_t tasks) {
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
Case random_case(Random& random, std::int32_t most_places = 8, std::int32_t most_tasks = 5) {
    Case c;
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
    explicit AllAssignments(const Case& c) : c_(c), gpus_(c.size(), -1), taken_(c.machines.size(), 0) {
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

    const Case& c_;
    Numbers gpus_, taken_;
    std::vector<std::pair<std::int32_t, std::size_t>> places_{};
};

// Offered GPUs, each once, whole units, `most` on a machine, and the time of these.
void is_right(const Case& c, const GangFound& found) {
    CHECK_EQ(found.gpus.size(), c.size());
    std::set<std::int32_t> left;
    for (std::size_t i = 0; i < c.machines.size(); ++i) {
        const Numbers places = c.places(i);
        left.insert(places.begin(), places.end());
    }
    Numbers tasks(at(c.cluster->count), 0);
    for (std::size_t i = 0; i < c.size(); ++i) {
        const std::int32_t gpu = found.gpus[at(c.units[i])];
        CHECK_EQ(left.erase(gpu), 1U);
        CHECK(++tasks[at(c.machine_of(gpu))] <= c.most);
        CHECK_EQ(c.machine_of(gpu), c.machine_of(found.gpus[at(c.units[i - i % at(c.unit)])]));
    }
    const double seconds = c.seconds(found.gpus);
    const bool is_near = found.seconds <= seconds * kEqual && seconds <= found.seconds * kEqual;
    if (!is_near) std::cerr << seconds << " s, not " << found.seconds << '\n';
    CHECK(is_near);
    CHECK(found.least <= seconds * kEqual);
}

// A machine for each task, with whole units, as far as there is room.
Numbers random_start(Random& random, const Case& c) {
    Numbers left, start(c.size(), -1);
    for (const std::int32_t size : c.sizes) left.push_back(std::min(size, c.most) / c.unit);
    for (std::size_t i = 0; i < c.size(); i += at(c.unit)) {
        std::size_t offer = 0;
        do {
            offer = at(random.below(static_cast<std::int32_t>(left.size())));
        } while (left[offer] == 0);
        --left[offer];
        for (std::size_t k = i; k < i + at(c.unit); ++k) start[at(c.units[k])] = c.machines[offer];
    }
    return start;
}

Numbers machines_of(const Case& c, const Numbers& gpus) {
    Numbers found;
    for (const std::int32_t gpu : gpus) found.push_back(c.machine_of(gpu));
    return found;
}

std::int64_t domain_of(const Case& c, std::size_t level, std::int32_t machine) {
    return (*c.cluster->levels)[level].domains[at(machine)];
}

void add_offer(Case& c, std::int32_t machine, std::uint8_t bits, std::int32_t size) {
    c.machines.push_back(machine);
    c.kind_of.push_back(static_cast<std::int32_t>(c.usable.size()));
    c.sizes.push_back(size);
    c.usable.push_back(bits);
    c.free.push_back(bits);
}

// A ring of so many tasks on machines of two GPUs, two in a rack, of which nothing is offered yet.
Case ring_on(std::int32_t machines, std::int32_t tasks) {
    Case c;
    c.cluster = std::make_shared<const Cluster>(oracle::equal_machines(machines, 2), 1);
    c.units.resize(at(tasks));
    std::iota(c.units.begin(), c.units.end(), 0);
    c.job.add(Kind::kRing, c.units, 1.0);
    c.job.end_phase();
    c.add_edges();
    return c;
}

}  // namespace

TEST(agrees_with_every_assignment) {
    Random random(71);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < check::rounds(1000); ++i) {
        const Case c = random_case(random);
        const GangSearchParams params = c.params();
        CHECK(!decide::check(params));
        const GangFound found = decide::search_gang(params);
        CHECK_EQ(found.found, c.room() >= params.units.count());
        if (!found.found) continue;
        is_right(c, found);
        const AllAssignments all(c);
        CHECK(found.seconds <= all.best_of_whole * (1 + params.slack));
        CHECK(found.least <= (c.machine_groups ? all.best_of_whole : all.best) * kEqual);
        ++count;
    }
    CHECK(count > check::rounds(1000) / 2);
}

TEST(the_same_arguments_give_the_same_gpus) {
    Random random(72);
    for (std::int32_t i = 0; i < check::rounds(100); ++i) {
        const Case c = random_case(random, 16, 12);
        const GangFound one = decide::search_gang(c.params()), other = decide::search_gang(c.params());
        CHECK(one.gpus == other.gpus && one.seconds == other.seconds && one.least == other.least);
        if (one.found) is_right(c, one);
    }
}

TEST(a_stopped_search_has_gpus) {
    Random random(73);
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        const Case c = random_case(random, 16, 12);
        GangSearchParams params = c.params();
        if (i % 2 == 0) decide::search_gang(params);  // what it keeps, the stopped search uses
        params.stop.when = {};
        const GangFound found = decide::search_gang(params);
        CHECK_EQ(found.found, c.room() >= params.units.count());
        if (found.found) is_right(c, found);
    }
}

TEST(a_search_from_machines_keeps_what_it_has_to) {
    Random random(74);
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        Case c = random_case(random);
        if (c.room() < c.params().units.count()) continue;
        c.start = random_start(random, c);
        GangSearchParams params = c.params();
        is_right(c, decide::search_gang(params));
        params.may_leave = false;
        params.is_balanced = i % 2 == 0;
        const std::size_t level = at(random.below(static_cast<std::int32_t>(params.levels->size())));
        for (std::size_t k = 0; k < c.size(); k += at(c.unit))
            params.together.push_back({level, params.units.tasks.subspan(k, at(c.unit))});
        const GangFound found = decide::search_gang(params);
        CHECK(found.found);
        if (!found.found) continue;
        is_right(c, found);
        Numbers machines = machines_of(c, found.gpus), before = c.start;
        for (std::size_t task = 0; task < c.size(); ++task)
            CHECK_EQ(domain_of(c, level, machines[task]), domain_of(c, level, before[task]));
        std::ranges::sort(machines);
        std::ranges::sort(before);
        if (params.is_balanced) CHECK(machines == before);
    }
}

TEST(a_start_that_no_machine_has_room_for_is_none) {
    Case c = ring_on(3, 3);
    add_offer(c, 0, 3, 2);
    add_offer(c, 1, 3, 2);
    const auto is_found = [&](const Numbers& start, bool is_balanced) {
        c.start = start;
        GangSearchParams params = c.params();
        params.may_leave = false;
        params.is_balanced = is_balanced;
        return decide::search_gang(params).found;
    };
    for (const bool is_balanced : {false, true}) {
        CHECK(is_found({0, 1, 0}, is_balanced));
        CHECK(!is_found({0, 0, 0}, is_balanced));
        CHECK(!is_found({0, 1, 2}, is_balanced));
    }
}

TEST(one_domain_has_all_tasks) {
    Random random(75);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        const Case c = random_case(random);
        GangSearchParams params = c.params();
        const std::size_t level = at(random.below(static_cast<std::int32_t>(params.levels->size())));
        params.whole = {level};
        std::map<std::int64_t, std::int32_t> room;
        for (std::size_t k = 0; k < c.machines.size(); ++k)
            room[domain_of(c, level, c.machines[k])] += std::min(c.sizes[k], c.most) / c.unit;
        const bool has_room =
            std::ranges::any_of(room, [&](const auto& one) { return one.second >= params.units.count(); });
        const GangFound found = decide::search_gang(params);
        CHECK_EQ(found.found, has_room);
        if (!found.found) continue;
        is_right(c, found);
        for (const std::int32_t machine : machines_of(c, found.gpus))
            CHECK_EQ(domain_of(c, level, machine), domain_of(c, level, c.machine_of(found.gpus[0])));
        ++count;
    }
    CHECK(count > check::rounds(400) / 4);
}

// What a search keeps of a machine, one that is stopped at once takes in place of its own order of tasks.
TEST(a_stopped_search_has_the_time_of_what_is_kept) {
    Random random(76);
    for (std::int32_t i = 0; i < check::rounds(200); ++i) {
        Case c;
        c.cluster = std::make_shared<const Cluster>(oracle::random_fabric(random, 2, 4), 1);
        const auto size = static_cast<std::int32_t>(c.cluster->gpus_of(0).size());
        add_offer(c, 0, static_cast<std::uint8_t>((1 << size) - 1), size);
        c.units = oracle::permutation(random, size);
        c.job = random_job(random, size);
        c.add_edges();
        GangSearchParams params = c.params();
        decide::search_gang(params);
        params.stop.when = {};
        is_right(c, decide::search_gang(params));
    }
}

// Racks that have room only for two tasks on one machine come before the one that has it for one on each.
TEST(domains_without_room_are_not_tried) {
    Case c = ring_on(40, 2);
    for (std::int32_t machine = 0; machine < 38; machine += 2) add_offer(c, machine, 3, 2);
    add_offer(c, 38, 1, 1);
    add_offer(c, 39, 2, 1);
    c.most = 1;
    GangSearchParams params = c.params();
    params.whole = {0};
    const GangFound found = decide::search_gang(params);
    CHECK(found.found);
    if (found.found) is_right(c, found);
}

TEST(without_offers_there_is_no_room) {
    Case c = ring_on(2, 3);
    c.usable = {1};
    CHECK(!decide::check(c.params()));
    CHECK(!decide::search_gang(c.params()).found);
}

TEST(a_search_names_what_is_out_of_range) {
    Case c = ring_on(2, 3);
    add_offer(c, 0, 3, 2);
    add_offer(c, 1, 3, 2);
    const Cluster other(oracle::equal_machines(3, 2), 1), same(oracle::equal_machines(2, 2), 1);
    const ports::FlowCounts flows(*same.fabric.ports);
    const Numbers start{0, 1}, beyond{0, 3}, twice{0, 1, 1}, outside{0, 1, 2}, sizes{2, 3};
    const std::vector<std::uint8_t> free{3};
    Reals edges = c.edges;
    const auto fault_of = [&](auto change) {
        GangSearchParams params = c.params();
        change(params);
        return decide::check(params).value_or("");
    };
    CHECK_EQ(fault_of([](auto&) {}), "");
    CHECK_EQ(fault_of([](auto& p) { p.topology = nullptr; }), "a topology is missing");
    CHECK_EQ(fault_of([](auto& p) { p.levels = nullptr; }), "a topology is missing");
    CHECK_EQ(fault_of([&](auto& p) { p.levels = other.levels.get(); }), "levels are those of other machines");
    CHECK(fault_of([&](auto& p) { p.offers.sizes = sizes; }).starts_with("sizes[1] = 3: "));
    CHECK_EQ(fault_of([&](auto& p) { p.free = free; }), "free has 1 entries, not 2");
    CHECK_EQ(fault_of([](auto& p) { p.most = 0; }), "most[0] = 0: below 1");
    CHECK_EQ(fault_of([](auto& p) { p.units.size = 2; }), "units of 2 of 3 tasks");
    CHECK_EQ(fault_of([&](auto& p) { p.units.tasks = twice; }), "units[2] = 1: not each task once");
    CHECK_EQ(fault_of([](auto& p) { p.job.gigabytes = {}; }), "gigabytes has 0 entries, not 1");
    CHECK_EQ(fault_of([&](auto& p) { p.start = start; }), "start has 2 entries, not 3");
    CHECK_EQ(fault_of([&](auto& p) { p.start = outside; }), "start[2] = 2: out of range");
    CHECK_EQ(fault_of([&](auto& p) { p.others = &flows; }), "others are flows of another network");
    CHECK_EQ(fault_of([&](auto& p) { p.together = {{2, start}}; }), "level[0] = 2: not a level");
    CHECK_EQ(fault_of([](auto& p) { p.together = {{1, {}}}; }), "together has a group without tasks");
    CHECK_EQ(fault_of([&](auto& p) { p.together = {{1, beyond}}; }), "together[1] = 3: out of range");
    CHECK_EQ(fault_of([](auto& p) { p.whole = {1, 2}; }), "whole[1] = 2: not a level");
    CHECK(fault_of([](auto& p) { p.slack = 0.0; }).starts_with("slack = 0.000000: "));
    CHECK_EQ(fault_of([](auto& p) { p.share = -1.0; }), "share[0] = -1.000000: not in 0..1e9");
    const auto fault_of_edges = [&](std::size_t i, double value) {
        edges = c.edges;
        edges[i] = value;
        return fault_of([&](auto& p) { p.edges = edges; });
    };
    CHECK_EQ(fault_of([](auto& p) { p.edges = p.edges.first(4); }), "edges is not in rows of three");
    for (const double value : {-1.0, 1.0, 0.5, std::nan("")})
        CHECK(fault_of_edges(0, value).ends_with(": not two tasks in order"));
    CHECK(fault_of_edges(4, 3.0).starts_with("edges[3] = 0.000000: "));
    CHECK_EQ(fault_of_edges(2, -1.0), "edges[2] = -1.000000: not in 0..1e18");
}

TEST(levels_name_what_is_out_of_range) {
    const Fabric fabric = oracle::equal_machines(2, 2);
    const std::int64_t ports = fabric.ports->num_ports();
    const Longs codes{0, 1};
    Longs uplinks;
    Reals uplink{1.0, 1.0};
    const auto fault_of = [&](const decide::GangLevelParams& params) {
        return decide::check(params, 2, *fabric.ports).value_or("");
    };
    const auto fault_of_uplinks = [&](const Longs& rows) {
        uplinks = rows;
        return fault_of({codes, codes, {}, uplinks, false});
    };
    CHECK_EQ(fault_of({codes, codes, uplink, {}, false}), "");
    CHECK_EQ(fault_of({{}, codes, {}, {}, false}), "codes has 0 entries, not 2");
    CHECK_EQ(fault_of({codes, {}, {}, {}, false}), "domains has 0 entries, not 2");
    CHECK_EQ(fault_of({codes, codes, std::span(uplink).first(1), {}, false}), "uplink has 1 entries, not 2");
    for (const double speed : {-1.0, 1e-19, 1e19, std::nan("")}) {
        uplink[1] = speed;
        CHECK(fault_of({codes, codes, uplink, {}, false}).starts_with("uplink[1] = "));
    }
    CHECK_EQ(fault_of_uplinks({0, 0, 1, ports - 1}), "");
    CHECK_EQ(fault_of_uplinks({0}), "uplinks is not in rows of two");
    CHECK_EQ(fault_of_uplinks({0, 0, 2, 0}), "uplinks[2] = 2: not a machine, ascending");
    CHECK_EQ(fault_of_uplinks({1, 0, 0, 0}), "uplinks[2] = 0: not a machine, ascending");
    CHECK_EQ(fault_of_uplinks({0, ports}), "uplinks[1] = " + std::to_string(ports) + ": not a port");
}

TEST(a_topology_names_what_is_out_of_range) {
    const Cluster cluster(oracle::equal_machines(2, 2), 1), less(oracle::equal_machines(1, 2), 1),
        other(oracle::equal_machines(4, 1), 1);
    const Reals speeds{1.0, 1.0}, few{1.0}, none{1.0, 0.0};
    const auto fault_of = [&](const Cluster& of, const Reals& adapters, const Reals& nvlinks) {
        return decide::GangTopology::check({cluster.limits.get(), of.fabric.made.get(), adapters, nvlinks})
            .value_or("");
    };
    CHECK_EQ(fault_of(cluster, speeds, speeds), "");
    CHECK_EQ(fault_of(cluster, few, speeds), "adapter_speed has 1 entries, not 2");
    CHECK_EQ(fault_of(cluster, speeds, few), "nvlink_speed has 1 entries, not 2");
    CHECK_EQ(fault_of(cluster, none, speeds), "adapter_speed[1] = 0.000000: not in 1e-18..1e18");
    CHECK_EQ(fault_of(less, speeds, speeds), "network has 2 entries, not 4");
    CHECK_EQ(fault_of(other, speeds, speeds), "gpus[1] = 0: the network has it on another machine");
}
