// Clusters of a few machines with adapters, switches and links of many kinds, and jobs of collectives on
// them. What is drawn comes from anything with `below`: random numbers, or the bytes of a fuzzer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "oracles/collective_oracle.hpp"
#include "oracles/port_cases.hpp"
#include "topoplace/gang_mapping.hpp"

namespace oracle {

namespace collective = topoplace::collective;
namespace gang_mapping = topoplace::gang_mapping;
namespace ports = topoplace::ports;
namespace traffic = topoplace::traffic;
using Numbers = std::vector<std::int32_t>;
using Reals = std::vector<double>;

// A network, and what is known of the rings among its vertices. Machines have consecutive vertices.
struct Fabric {
    NetworkCase network{};
    Numbers machine{}, local{}, domain{}, adapter{}, rail{}, near{}, switches{};
    Reals switched{}, reduced{}, most_reduced{};
    std::vector<std::uint8_t> has_links{};
    Numbers rates_of{};
    Numbers rack_of{};          // of each machine
    bool racks_switch = false;  // racks are NVLink domains
    std::vector<collective::ChannelRules> rules{}, slower{};
    std::shared_ptr<const collective::RingNetwork> rings{};
    std::shared_ptr<const collective::RingRates> rates{};
    std::shared_ptr<const ports::PortNetwork> ports{};
    std::shared_ptr<const traffic::CollectiveNetwork> made{};

    traffic::CollectiveNetworkParams params() const {
        return {machine,  local,   domain,       adapter,   rail,     near,         switches,
                switched, reduced, most_reduced, has_links, rates_of, {rates.get()}};
    }
    // Makes the objects of what was drawn.
    void make() {
        ports = std::make_shared<const ports::PortNetwork>(network.params());
        made = std::make_shared<const traffic::CollectiveNetwork>(*ports, params());
    }
};

template <class Draw>
Numbers permutation(Draw& draw, std::int32_t size) {
    Numbers order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    for (std::int32_t i = size - 1; i > 0; --i) {
        std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(draw.below(i + 1))]);
    }
    return order;
}

template <class Draw>
class FabricMaker {
  public:
    FabricMaker(Draw& draw, std::int32_t machines, std::int32_t most)
        : draw_(draw), machines_(machines), most_(most) {
        made_.racks_switch = draw.below(4) == 0;
        has_rails_ = draw.below(3) == 0;
        made_.network.segment_of = {0, 1, 1};
        add_rates();
        for (std::int32_t number = 0; number < machines; ++number) add_machine(number);
        flatten();
    }

    Fabric take() { return std::move(made_); }

  private:
    std::int32_t add_port(double gb_per_s) {
        made_.network.speeds.push_back(gb_per_s);
        return static_cast<std::int32_t>(made_.network.speeds.size()) - 1;
    }

    // Machines of up to `most` vertices share rates; sets with slow routes have channels of the slower rules.
    void add_rates() {
        topoplace::Random random(static_cast<std::uint64_t>(draw_.below(64)));
        const RingCase rings = random_rings(random, most_);
        made_.rings = std::make_shared<const collective::RingNetwork>(
            rings.terminals, rings.capacities, rings.routes, std::vector<collective::LinkCut>{});
        made_.rules = {{{3000, 2000, 1000}, {}}, {{2000}, {}}};
        made_.slower = {{{500, 250}, {}}, {}};
        Numbers classes;
        for (std::int32_t i = 0; i < most_; ++i) classes.push_back(draw_.below(2));
        collective::RingRatesParams params{classes, made_.rules, made_.slower, {}};
        params.per_unit.fill(0.001);
        made_.rates = std::make_shared<const collective::RingRates>(*made_.rings, params);
    }

    void add_machine(std::int32_t number) {
        const std::int32_t rack = number / 2, size = 1 + draw_.below(most_);
        if (number % 2 == 0) racks_.push_back(Numbers(static_cast<std::size_t>(most_), -1));
        made_.rack_of.push_back(rack);
        const std::int32_t kind = draw_.below(4);  // 0, 1: NVSwitches; 2: links; 3: ports alone
        made_.rates_of.push_back(draw_.below(3) == 0 ? -1 : 0);
        const std::int32_t sharing = 1 + draw_.below(3);
        const double speed = 1.0 + draw_.below(3);
        const Numbers near = permutation(draw_, size);
        std::int32_t adapter = -1;
        for (std::int32_t i = 0; i < size; ++i) {
            if (i % sharing == 0) adapter = draw_.below(24) == 0 ? -1 : add_port(speed);
            add_vertex(number, i, kind, adapter, i / sharing);
            made_.near.push_back(near[static_cast<std::size_t>(i)]);
        }
        if (kind == 2) add_links(size);
    }

    void add_vertex(std::int32_t machine, std::int32_t local, std::int32_t kind, std::int32_t adapter,
                    std::int32_t rail) {
        const std::int32_t rack = made_.rack_of.back();
        const bool has_switches = made_.racks_switch || kind < 2;
        made_.machine.push_back(machine);
        made_.local.push_back(local);
        made_.domain.push_back(made_.racks_switch ? machines_ + rack : machine);
        made_.adapter.push_back(adapter);
        made_.rail.push_back(rail);
        made_.switches.push_back(has_switches ? made_.domain.back() : -1);
        made_.switched.push_back(has_switches ? draw_.below(3) * 2.0 : 0.0);
        made_.reduced.push_back(draw_.below(2) * 3.0);
        made_.most_reduced.push_back(3.5);
        made_.has_links.push_back(0);
        near_entry_.push_back(add_port(4.0));
        far_entry_.push_back(adapter);
        near_domain_.push_back(made_.domain.back());
        far_domain_.push_back(has_rails_ ? rack * most_ + rail : rack);
        std::int32_t& uplink = racks_.back()[static_cast<std::size_t>(has_rails_ ? rail : 0)];
        if (uplink < 0) uplink = add_port(1.0 + draw_.below(3));
        uplink_.push_back(uplink);
        access_.push_back(draw_.below(3) == 0 ? add_port(2.0) : -1);
    }

    void add_links(std::int32_t size) {
        const auto end = static_cast<std::int32_t>(made_.machine.size());
        for (std::int32_t u = end - size; u < end; ++u) {
            for (std::int32_t v = u + 1; v < end; ++v) {
                if (draw_.below(2) == 0) continue;
                made_.network.links.insert(made_.network.links.end(), {u, v, add_port(2.0)});
                made_.network.is_slower.push_back(0);
                made_.has_links[static_cast<std::size_t>(u)] = made_.has_links[static_cast<std::size_t>(v)] =
                    1;
            }
        }
    }

    void flatten() {
        NetworkCase& network = made_.network;
        network.n = static_cast<std::int32_t>(made_.machine.size());
        Numbers none(made_.machine.size(), -1), all(made_.machine.size(), 0);
        for (const Numbers* row : {&near_entry_, &far_entry_}) append(network.entry, *row);
        for (const Numbers* row : {&near_domain_, &far_domain_, &all}) append(network.domain, *row);
        for (const Numbers* row : {&none, &uplink_, &none}) append(network.uplink, *row);
        if (draw_.below(2) == 0) network.access = access_;
        if (draw_.below(4) != 0) return;
        network.group = made_.machine;
        network.lane = made_.rail;
    }

    static void append(Numbers& all, const Numbers& row) { all.insert(all.end(), row.begin(), row.end()); }

    Draw& draw_;
    std::int32_t machines_, most_;
    bool has_rails_ = false;
    Fabric made_{};
    std::vector<Numbers> racks_{};  // of each: uplinks by rail
    Numbers near_entry_{}, far_entry_{}, near_domain_{}, far_domain_{}, uplink_{}, access_{};
};

// Up to `most` vertices on a machine, in racks of two.
template <class Draw>
Fabric random_fabric(Draw& draw, std::int32_t machines, std::int32_t most) {
    Fabric fabric = FabricMaker<Draw>(draw, machines, most).take();
    fabric.make();
    return fabric;
}

struct Collectives {
    std::vector<std::int64_t> phase_ends{}, ends{};
    std::vector<std::uint8_t> kinds{};
    Numbers tasks{};
    Reals gigabytes{}, received{};

    traffic::JobCollectives view() const { return {phase_ends, kinds, ends, tasks, gigabytes, received}; }

    void add(traffic::Kind kind, const Numbers& of, double amount) {
        kinds.push_back(static_cast<std::uint8_t>(kind));
        tasks.insert(tasks.end(), of.begin(), of.end());
        ends.push_back(static_cast<std::int64_t>(tasks.size()));
        gigabytes.push_back(amount);
        received.resize(tasks.size(), -1.0);
    }
    void end_phase() { phase_ends.push_back(static_cast<std::int64_t>(kinds.size())); }
};

template <class Draw>
Collectives random_collectives(Draw& draw, std::int32_t tasks) {
    Collectives made;
    for (std::int32_t phases = 1 + draw.below(3); phases > 0; --phases) {
        for (std::int32_t left = tasks < 2 ? 0 : draw.below(4); left > 0; --left) {
            const auto kind = static_cast<traffic::Kind>(draw.below(5));
            Numbers of = permutation(draw, tasks);
            of.resize(static_cast<std::size_t>(2 + draw.below(tasks - 1)));
            made.add(kind, of, draw.below(5));
            if (kind != traffic::Kind::kPairs || draw.below(2) == 0) continue;
            for (std::size_t i = made.tasks.size() - of.size(); i < made.tasks.size(); ++i) {
                made.received[i] = draw.below(4);
            }
        }
        made.end_phase();
    }
    if (draw.below(2) == 0 && std::ranges::all_of(made.received, [](double one) { return one < 0.0; })) {
        made.received.clear();
    }
    return made;
}

// A gang to map: a leaf for each machine, in racks.
struct GangCase {
    Fabric fabric{};
    Collectives job{};
    TreeCase tree{};
    Numbers tasks{}, places{};
    std::vector<std::int64_t> leaf_ends{};
    std::shared_ptr<ports::FlowCounts> others{};

    gang_mapping::GangParams params() const {
        gang_mapping::GangParams made;
        made.network = fabric.made.get();
        made.job = job.view();
        made.items = tree.params();
        made.tasks = tasks;
        made.leaf_ends = leaf_ends;
        made.places = places;
        made.others = others.get();
        made.work = 20000;
        return made;
    }
    std::size_t size() const {
        return tree.items == 0 ? 1 : tasks.size() / static_cast<std::size_t>(tree.items);
    }

    // Racks, leaves with the vertices of `places` in them, and what the items exchange; `size` tasks are one.
    void make_tree(std::int32_t size) {
        const std::int32_t racks = fabric.rack_of.back() + 1;
        tree.parent.insert(tree.parent.end(), static_cast<std::size_t>(racks), 0);
        for (std::size_t leaf = 0; leaf < fabric.rack_of.size(); ++leaf) {
            tree.parent.push_back(1 + fabric.rack_of[leaf]);
            const auto count = leaf_ends[leaf] - (leaf == 0 ? 0 : leaf_ends[leaf - 1]);
            tree.room.push_back(static_cast<std::int32_t>(count) / size);
        }
        tree.uplink.assign(tree.parent.size(), 0.0);
        std::fill_n(tree.uplink.begin() + 1, racks, 2.0);
        tree.own_class = {0, fabric.racks_switch ? 1 : 0};
        tree.own.assign(fabric.rack_of.size(), 2.0);
        if (fabric.racks_switch) tree.own.insert(tree.own.end(), fabric.rack_of.size(), 4.0);
        tree.items = static_cast<std::int32_t>(tasks.size()) / size;
        add_exchanges(size);
    }

  private:
    void add_exchanges(std::int32_t size) {
        Numbers item_of(tasks.size());
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            item_of[static_cast<std::size_t>(tasks[i])] = static_cast<std::int32_t>(i) / size;
        }
        std::size_t next = 0;
        for (const std::int64_t end : job.phase_ends) {
            for (; static_cast<std::int64_t>(next) < end; ++next) {
                for (std::int64_t i = job.view().begin_of(next); i + 1 < job.ends[next]; ++i) {
                    add_exchange(item_of, static_cast<std::size_t>(i), job.gigabytes[next]);
                }
            }
            tree.ends.push_back(static_cast<std::int64_t>(tree.from.size()));
        }
    }
    void add_exchange(const Numbers& item_of, std::size_t i, double amount) {
        const std::int32_t one = item_of[static_cast<std::size_t>(job.tasks[i])];
        const std::int32_t other = item_of[static_cast<std::size_t>(job.tasks[i + 1])];
        if (one == other) return;
        tree.from.push_back(one);
        tree.to.push_back(other);
        tree.gigabytes.push_back(amount);
    }
};

// What other jobs send, anywhere.
template <class Draw>
std::shared_ptr<ports::FlowCounts> random_others(Draw& draw, const Fabric& fabric) {
    auto counts = std::make_shared<ports::FlowCounts>(*fabric.ports);
    Numbers from, to;
    Reals there;
    for (std::int32_t left = draw.below(8); left > 0; --left) {
        from.push_back(draw.below(fabric.network.n));
        to.push_back(draw.below(fabric.network.n));
        there.push_back(draw.below(4));
    }
    counts->add({from, to, there, Reals(there.size(), 0.0)});
    return counts;
}

// At most `most_places` vertices are free, in any order on their machines, and `most_tasks` tasks.
template <class Draw>
GangCase random_gang(Draw& draw, const Fabric& fabric, std::int32_t most_places, std::int32_t most_tasks) {
    GangCase made;
    made.fabric = fabric;
    std::vector<std::uint8_t> is_free(static_cast<std::size_t>(fabric.network.n), 0);
    Numbers chosen = permutation(draw, fabric.network.n);
    chosen.resize(std::min(chosen.size(), static_cast<std::size_t>(most_places)));
    for (std::size_t leaf = 0; leaf < fabric.rack_of.size(); ++leaf) {
        for (const std::int32_t vertex : chosen) {
            if (fabric.machine[static_cast<std::size_t>(vertex)] == static_cast<std::int32_t>(leaf)) {
                made.places.push_back(vertex);
            }
        }
        made.leaf_ends.push_back(static_cast<std::int64_t>(made.places.size()));
    }
    const std::int32_t size = 1 + draw.below(2);
    const auto room = std::min(most_tasks, static_cast<std::int32_t>(chosen.size()));
    made.tasks = permutation(draw, size * (1 + draw.below(std::max(1, room / size))));
    made.job = random_collectives(draw, static_cast<std::int32_t>(made.tasks.size()));
    made.make_tree(size);
    if (draw.below(2) == 0) made.others = random_others(draw, fabric);
    return made;
}

struct GangTime {
    double seconds = 0.0, port_seconds = 0.0;
};

inline GangTime gang_time(const GangCase& c, std::span<const std::int32_t> vertex_of) {
    const auto flows = traffic::flows_of(*c.fabric.made, c.job.view(), vertex_of);
    const auto times = ports::phase_times(*c.fabric.ports, flows.phase_ends, flows.flows(), c.others.get());
    GangTime sum;
    for (std::size_t i = 0; i < times.size(); ++i) {
        sum.seconds += std::max(times[i].seconds, flows.rings[i].seconds);
        sum.port_seconds += times[i].port_seconds;
    }
    return sum;
}

}  // namespace oracle
