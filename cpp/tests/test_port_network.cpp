// Port networks against loops over the definition, and the arguments that they refuse.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "oracles/port_cases.hpp"
#include "topoplace/max_min.hpp"
#include "topoplace/port_network.hpp"
#include "topoplace/random.hpp"

namespace ports = topoplace::ports;
using ports::Flows;
using ports::Hop;

namespace {

using Ints = std::vector<std::int32_t>;

using Network = oracle::NetworkCase;

struct Traffic {
    std::vector<std::int64_t> ends{};
    Ints from{}, to{};
    std::vector<double> there{}, back{};

    Flows flows() const { return {from, to, there, back}; }
};

// Two segments of two levels each.
Network random_network(topoplace::Random& random) {
    Network made;
    made.n = 1 + random.below(6);
    const std::int32_t number = 1 + random.below(8);
    for (std::int32_t i = 0; i < number; ++i) made.speeds.push_back(1.0 + random.below(5));
    const auto port = [&] { return random.below(number + 1) - 1; };
    for (std::int32_t i = 0; i < 2 * made.n; ++i) made.entry.push_back(port());
    made.segment_of = {0, 0, 1, 1};
    for (std::int32_t i = 0; i < 4 * made.n; ++i) {
        made.domain.push_back(random.below(4) - 1);
        made.uplink.push_back(port());
    }
    for (std::int32_t u = 0; u < made.n; ++u) {
        for (std::int32_t v = u + 1; v < made.n; ++v) {
            if (random.below(4) != 0) continue;
            made.links.insert(made.links.end(), {u, v, random.below(number)});
            made.is_slower.push_back(random.below(2) == 0 ? 1 : 0);
        }
    }
    for (std::int32_t u = 0; u < made.n && made.n % 2 == 0; ++u) made.access.push_back(port());
    if (random.below(2) == 0) return made;
    for (std::int32_t u = 0; u < made.n; ++u) {
        made.group.push_back(random.below(3) - 1);
        made.lane.push_back(random.below(3));
    }
    return made;
}

Traffic random_traffic(topoplace::Random& random, std::int32_t ends) {
    Traffic made;
    const std::int32_t phases = random.below(4);
    for (std::int32_t phase = 0; phase < phases; ++phase) {
        for (std::int32_t left = random.below(6); left > 0; --left) {
            made.from.push_back(random.below(ends));
            made.to.push_back(random.below(ends));
            made.there.push_back(random.below(4));
            made.back.push_back(random.below(4));
        }
        made.ends.push_back(static_cast<std::int64_t>(made.from.size()));
    }
    return made;
}

// Appends the hops of both vertices up to a level.
void append_climb(const Network& c, std::size_t level, std::size_t u, std::size_t v, Ints& hops) {
    const auto n = static_cast<std::size_t>(c.n), segment = std::size_t(c.segment_of[level]) * n;
    hops.push_back(2 * c.entry[segment + u]);
    hops.push_back(2 * c.entry[segment + v] + 1);
    if (!c.access.empty() && c.segment_of[level] == c.segment_of.back()) {
        if (c.access[u] >= 0) hops.push_back(2 * c.access[u]);
        if (c.access[v] >= 0) hops.push_back(2 * c.access[v] + 1);
    }
    for (std::size_t below = 0; below < level; ++below) {
        const std::int32_t up = c.uplink[below * n + u], down = c.uplink[below * n + v];
        if (c.segment_of[below] != c.segment_of[level] || up == down) continue;
        if (up >= 0) hops.push_back(2 * up);
        if (down >= 0) hops.push_back(2 * down + 1);
    }
}

bool meet_at(const Network& c, std::size_t level, std::size_t u, std::size_t v) {
    const auto n = static_cast<std::size_t>(c.n), segment = std::size_t(c.segment_of[level]) * n;
    const bool share = c.domain[level * n + u] >= 0 && c.domain[level * n + u] == c.domain[level * n + v];
    return share && c.entry[segment + u] >= 0 && c.entry[segment + v] >= 0;
}

std::size_t meeting(const Network& c, std::int32_t from, std::int32_t to) {
    std::size_t level = 0;
    while (level < 4 && !meet_at(c, level, std::size_t(from), std::size_t(to))) ++level;
    return level;
}

// The hops from one vertex to another by a link of their own or where they meet, ascending; {-1} without a
// path.
Ints direct_route(const Network& c, std::int32_t from, std::int32_t to) {
    Ints hops;
    if (from == to) return hops;
    for (std::size_t i = 0; i < c.is_slower.size(); ++i) {
        if (c.links[3 * i] != std::min(from, to) || c.links[3 * i + 1] != std::max(from, to)) continue;
        hops.push_back(2 * c.links[3 * i + 2] + (from < to ? 0 : 1));
        if (c.is_slower[i] == 0) return hops;
    }
    const std::size_t level = meeting(c, from, to);
    if (level < 4) append_climb(c, level, std::size_t(from), std::size_t(to), hops);
    std::ranges::sort(hops);
    return hops.empty() ? Ints{-1} : hops;
}

// The vertex that relays between two others in the network of levels 2 and 3; -1 for none.
std::int32_t relay_between(const Network& c, std::int32_t from, std::int32_t to) {
    if (c.group.empty()) return -1;
    const auto u = std::size_t(from), v = std::size_t(to);
    const bool apart = c.group[u] >= 0 && c.group[v] >= 0 && c.group[u] != c.group[v];
    if (!apart || c.lane[u] == c.lane[v] || meeting(c, from, to) < 2) return -1;
    for (std::int32_t one = 0; one < c.n; ++one) {
        if (c.group[std::size_t(one)] != c.group[u] || c.lane[std::size_t(one)] != c.lane[v]) continue;
        return meeting(c, from, one) < 2 && meeting(c, one, to) < 4 ? one : -1;
    }
    return -1;
}

// As direct_route(), through the vertex that relays, if there is one.
Ints expected_route(const Network& c, std::int32_t from, std::int32_t to) {
    const std::int32_t relay = relay_between(c, from, to);
    if (relay < 0) return direct_route(c, from, to);
    Ints hops = direct_route(c, from, relay);
    const Ints rest = direct_route(c, relay, to);
    hops.insert(hops.end(), rest.begin(), rest.end());
    std::ranges::sort(hops);
    return hops;
}

struct Way {
    std::int32_t from, to;
    double gigabytes;
};

// Each crossing of a hop by a flow: its GB.
using Crossings = std::map<Hop, std::vector<double>>;

Crossings crossings_of(const Network& c, const Traffic& t) {
    Crossings found;
    for (std::size_t i = 0; i < t.from.size(); ++i) {
        for (const auto& [from, to, gigabytes] :
             {Way{t.from[i], t.to[i], t.there[i]}, Way{t.to[i], t.from[i], t.back[i]}}) {
            for (const Hop hop : expected_route(c, from, to)) {
                if (hop >= 0 && gigabytes > 0.0) found[hop].push_back(gigabytes);
            }
        }
    }
    return found;
}

double counted(const Crossings& crossings, Hop hop, double most) {
    double sum = 0.0;
    if (!crossings.contains(hop)) return sum;
    for (const double gigabytes : crossings.at(hop)) sum += std::min(gigabytes, most);
    return sum;
}

ports::PhaseTime expected_time(const Network& c, const Traffic& t, std::size_t begin, std::size_t end,
                               const Crossings& others = {}) {
    std::map<Hop, double> gigabytes, largest;
    ports::PhaseTime time;
    for (std::size_t i = begin; i < end; ++i) {
        for (const auto& [from, to, sent] :
             {Way{t.from[i], t.to[i], t.there[i]}, Way{t.to[i], t.from[i], t.back[i]}}) {
            if (sent <= 0.0) continue;
            for (const Hop hop : expected_route(c, from, to)) {
                if (hop < 0) return {.seconds = std::numeric_limits<double>::infinity()};
                gigabytes[hop] += sent;
                largest[hop] = std::max(largest[hop], sent);
            }
        }
    }
    for (const auto& [hop, sum] : gigabytes) {
        const double seconds = sum / c.speeds[std::size_t(hop / 2)];
        const double shared = (sum + counted(others, hop, largest[hop])) / c.speeds[std::size_t(hop / 2)];
        if (shared > time.seconds) time = {shared, hop, time.port_seconds};
        if (std::ranges::find(c.uplink, hop / 2) != c.uplink.end()) time.port_seconds += seconds;
    }
    return time;
}

bool are_near(double one, double other) {
    return one == other || std::abs(one - other) <= 1e-9 * std::max(one, other);
}

double seconds_of(const ports::PortNetwork& network, const Traffic& tasks,
                  std::span<const std::int32_t> set) {
    Traffic placed = tasks;
    for (auto& one : placed.from) one = set[std::size_t(one)];
    for (auto& one : placed.to) one = set[std::size_t(one)];
    double sum = 0.0;
    for (const auto& phase : ports::phase_times(network, placed.ends, placed.flows())) sum += phase.seconds;
    return sum;
}

void refuses(const topoplace::Fault& fault, const std::string& what) {
    CHECK(fault && fault->find(what) != std::string::npos);
}

void refuses_network(const Network& c, const std::string& what) {
    refuses(ports::PortNetwork::check(c.params()), what);
}

// Two vertices with a port each into one segment, a level with uplinks, and one around it.
Network pair() { return {2, {1, 2, 3}, {0, 1}, {0, 0}, {0, 1, 0, 0}, {2, -1, -1, -1}, {}, {}}; }

}  // namespace

TEST(routes_and_times_are_those_of_the_definition) {
    topoplace::Random random(19);
    std::int32_t paths = 0, infinite = 0;
    for (std::int32_t i = 0; i < check::rounds(2000); ++i) {
        const Network c = random_network(random);
        const ports::PortNetwork network(c.params());
        for (std::int32_t u = 0; u < c.n; ++u) {
            for (std::int32_t v = 0; v < c.n; ++v) {
                Ints hops;
                if (!network.route(u, v, hops)) hops.assign(1, -1);
                std::ranges::sort(hops);
                CHECK(hops == expected_route(c, u, v));
                paths += hops.empty() || hops[0] < 0 ? 0 : 1;
            }
        }
        const Traffic t = random_traffic(random, c.n);
        const auto times = ports::phase_times(network, t.ends, t.flows());
        CHECK(times.size() == t.ends.size());
        for (std::size_t phase = 0; phase < times.size(); ++phase) {
            const auto begin = phase == 0 ? 0 : std::size_t(t.ends[phase - 1]);
            const auto expected = expected_time(c, t, begin, std::size_t(t.ends[phase]));
            CHECK(are_near(times[phase].seconds, expected.seconds));
            CHECK(are_near(times[phase].port_seconds, expected.port_seconds));
            CHECK(times[phase].slowest == expected.slowest);
            infinite += std::isinf(expected.seconds) ? 1 : 0;
        }
    }
    CHECK(paths > check::rounds(2000) && infinite > check::rounds(2000) / 10);
}

// What one vertex passes on its side, and the other one on its own, is the route.
TEST(approaches_are_both_sides_of_a_route) {
    topoplace::Random random(23);
    std::int32_t paths = 0;
    for (std::int32_t i = 0; i < check::rounds(1000); ++i) {
        Network c = random_network(random);
        const bool has_others =
            !c.links.empty() || std::ranges::any_of(c.group, [](auto g) { return g >= 0; });
        CHECK((ports::PortNetwork(c.params()).num_approaches() == 0) == has_others);
        c.links = c.group = c.lane = {};
        c.is_slower = {};
        const ports::PortNetwork network(c.params());
        for (std::int32_t u = 0; u < c.n; ++u) {
            for (std::int32_t v = 0; v < c.n; ++v) {
                if (u == v) continue;
                Ints hops, back;
                const std::int32_t approach = network.approach(u, v);
                CHECK(approach == network.approach(v, u) && approach < network.num_approaches());
                CHECK((approach == ports::kNone) == (expected_route(c, u, v) == Ints{-1}));
                if (approach == ports::kNone) continue;
                network.approach_hops(approach, u, hops);
                network.approach_hops(approach, v, back);
                for (const Hop hop : back) hops.push_back(hop ^ 1);
                std::ranges::sort(hops);
                CHECK(hops == expected_route(c, u, v));
                ++paths;
            }
        }
    }
    CHECK(paths > check::rounds(1000));
}

TEST(flows_of_others_count_up_to_the_largest_own_one) {
    topoplace::Random random(21);
    std::int32_t slower = 0;
    for (std::int32_t i = 0; i < check::rounds(2000); ++i) {
        const Network c = random_network(random);
        const ports::PortNetwork network(c.params());
        ports::FlowCounts counts(network);
        const Traffic gone = random_traffic(random, c.n), stays = random_traffic(random, c.n);
        counts.add(gone.flows());
        counts.add(stays.flows());
        CHECK(!counts.remove(gone.flows()));
        const Crossings crossings = crossings_of(c, stays);
        for (Hop hop = 0; hop < 2 * network.num_ports(); ++hop) {
            for (const double most : {0.0, 1.5, 9.0}) {
                CHECK(are_near(counts.counted(hop, most), counted(crossings, hop, most)));
            }
        }
        const Traffic t = random_traffic(random, c.n);
        const auto alone = ports::phase_times(network, t.ends, t.flows());
        const auto times = ports::phase_times(network, t.ends, t.flows(), &counts);
        for (std::size_t phase = 0; phase < times.size(); ++phase) {
            const auto begin = phase == 0 ? 0 : std::size_t(t.ends[phase - 1]);
            const auto expected = expected_time(c, t, begin, std::size_t(t.ends[phase]), crossings);
            CHECK(are_near(times[phase].seconds, expected.seconds));
            CHECK(times[phase].slowest == expected.slowest);
            CHECK(are_near(times[phase].port_seconds, alone[phase].port_seconds));
            slower += times[phase].seconds > alone[phase].seconds ? 1 : 0;
        }
    }
    CHECK(slower > check::rounds(2000) / 10);
}

TEST(fair_shares_of_equal_flows_take_as_long_as_the_busiest_hop) {
    topoplace::Random random(22);
    std::int32_t some = 0;
    for (std::int32_t i = 0; i < check::rounds(2000); ++i) {
        const Network c = random_network(random);
        const ports::PortNetwork network(c.params());
        Traffic t = random_traffic(random, c.n);
        for (double& gigabytes : t.there) gigabytes = std::min(gigabytes, 1.0);
        for (double& gigabytes : t.back) gigabytes = std::min(gigabytes, 1.0);
        const auto found = ports::max_min_times(network, std::vector{ports::SharingJob{t.ends, t.flows()}});
        const auto bound = ports::phase_times(network, t.ends, t.flows());
        CHECK(found.complete && found.phases.size() == bound.size());
        for (std::size_t phase = 0; phase < bound.size(); ++phase) {
            CHECK(are_near(found.phases[phase].seconds, bound[phase].seconds));
            some += bound[phase].seconds > 0.0 ? 1 : 0;
        }
    }
    CHECK(some > check::rounds(2000) / 2);
}

// Of two flows of 3 and 1 GB through one port of 2 GB/s, each has half, then the first has all.
TEST(fair_shares_go_from_moment_to_moment) {
    const Network c{2, {2, 8}, {0, 1}, {0}, {0, 0}, {-1, -1}, {}, {}};
    const ports::PortNetwork network(c.params());
    const Traffic big{{1}, {0}, {1}, {3}, {0}}, two{{1, 2}, {0, 0}, {1, 1}, {1, 4}, {0, 0}};
    const ports::SharingJob first{big.ends, big.flows()}, other{two.ends, two.flows()};
    const std::vector<double> least{5.0};
    const ports::SharingJob late{big.ends, big.flows(), least};
    const auto beside = ports::max_min_times(network, std::vector{first, other});
    // 1 of 3 GB in the first second; the other 2 beside the 4 of the next phase take 2 more
    CHECK(beside.complete && beside.nodes == 2);
    CHECK(are_near(beside.phases[0].seconds, 3.0) && beside.phases[0].slowest == 0);
    const auto phases = ports::max_min_times(network, std::vector{other, late}).phases;
    CHECK(are_near(phases[0].seconds, 1.0) && are_near(phases[1].seconds, 3.0));
    topoplace::StopCondition stop;
    stop.max_nodes = 1;
    const auto stopped = ports::max_min_times(network, std::vector{first, other}, stop);
    CHECK(!stopped.complete && stopped.phases[0].seconds == 0.0);
    refuses(ports::check(network, {}), "jobs is empty");
    refuses(ports::check(network, std::vector{ports::SharingJob{two.ends, two.flows(), least}}),
            "at_least has 1 entries, not 2");
}

TEST(only_flows_that_were_added_are_removed) {
    const Network c = pair();
    const ports::PortNetwork network(c.params());
    ports::FlowCounts counts(network);
    const Traffic t{{1}, {0}, {1}, {1}, {0}}, other{{1}, {0}, {1}, {2}, {0}};
    counts.add(t.flows());
    refuses(counts.remove(other.flows()), "flows that were not added cannot be removed");
    CHECK(!counts.remove(t.flows()));
    refuses(counts.remove(t.flows()), "not added");
    refuses(ports::check({t.from, t.to, t.there, {}}, 2), "differ in length");
    refuses(counts.check(-1), "hop = -1: out of range");
    refuses(counts.check(2 * network.num_ports()), "hop = 6: out of range");
}

TEST(orders_have_their_time_and_are_never_worse) {
    topoplace::Random random(20);
    std::int32_t better = 0;
    for (std::int32_t i = 0; i < check::rounds(1000); ++i) {
        const Network c = random_network(random);
        const ports::PortNetwork network(c.params());
        const std::int32_t size = 1 + random.below(c.n);
        const Traffic t = random_traffic(random, size);
        Ints set(std::size_t(c.n));
        std::iota(set.begin(), set.end(), 0);
        for (std::size_t k = 0; k < set.size(); ++k)
            std::swap(set[k], set[std::size_t(random.below(std::int32_t(k + 1)))]);
        set.resize(std::size_t(size));
        const auto found = ports::best_orders(network, t.ends, t.flows(), size, set);
        CHECK(found.size() == 1);
        const double before = seconds_of(network, t, set), after = seconds_of(network, t, found[0].vertices);
        CHECK(are_near(found[0].seconds, after));
        CHECK(!(after > before * (1 + 1e-9)));
        if (size <= 4) {
            Ints order = set;
            std::ranges::sort(order);
            do CHECK(!(seconds_of(network, t, order) * (1 + 1e-9) < after));
            while (std::ranges::next_permutation(order).found);
        }
        better += after < before ? 1 : 0;
        CHECK(std::is_permutation(set.begin(), set.end(), found[0].vertices.begin()));
    }
    CHECK(better > check::rounds(1000) / 100);
}

// Task 0 exchanges with all others, and the even ones with each other: only swaps of tasks that differ can
// help.
TEST(no_swap_helps_where_tasks_are_alike) {
    topoplace::Random random(29);
    std::int32_t better = 0;
    for (std::int32_t round = 0; round < check::rounds(300); ++round) {
        const Network c = random_network(random);
        if (c.n < 5) continue;
        const ports::PortNetwork network(c.params());
        Traffic t;
        const auto add = [&](std::int32_t from, std::int32_t to, double there, double back) {
            t.from.push_back(from);
            t.to.push_back(to);
            t.there.push_back(there);
            t.back.push_back(back);
        };
        for (std::int32_t one = 1; one < c.n; ++one) {
            add(0, one, 2, 1);
            for (std::int32_t other = 2; other < one && one % 2 == 0; other += 2) add(other, one, 1, 1);
        }
        t.ends = {std::int64_t(t.from.size())};
        Ints set(std::size_t(c.n));
        std::iota(set.begin(), set.end(), 0);
        Ints order = ports::best_orders(network, t.ends, t.flows(), c.n, set)[0].vertices;
        const double seconds = seconds_of(network, t, order);
        better += seconds < seconds_of(network, t, set) ? 1 : 0;
        for (std::size_t a = 0; a < order.size(); ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                std::swap(order[a], order[b]);
                CHECK(!(seconds_of(network, t, order) * (1 + 1e-9) < seconds));
                std::swap(order[a], order[b]);
            }
        }
    }
    CHECK(better > 0);
}

// Five vertices on a star: the two tasks that exchange the most belong on the fastest ports.
TEST(a_stopped_search_keeps_the_given_order) {
    const Network c{5, {1, 2, 3, 4, 5}, {0, 1, 2, 3, 4}, {0}, Ints(5, 0), Ints(5, -1), {}, {}};
    const ports::PortNetwork network(c.params());
    const Traffic t{{5}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}};
    const Ints sets{0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
    const auto best = ports::best_orders(network, t.ends, t.flows(), 5, sets);
    CHECK(best[1].seconds == 5.0 / 4);
    topoplace::StopCondition stop;
    stop.max_nodes = 1;
    const auto found = ports::best_orders(network, t.ends, t.flows(), 5, sets, stop);
    CHECK(found[1].vertices == Ints({0, 1, 2, 3, 4}) && found[1].seconds == 5.0);
}

TEST(a_flow_of_nothing_needs_no_path) {
    const Network c{2, {}, {}, {}, {}, {}, {}, {}};
    const ports::PortNetwork network(c.params());
    Traffic t{{1}, {0}, {1}, {0}, {0}};
    CHECK(ports::phase_times(network, t.ends, t.flows())[0].seconds == 0.0);
    CHECK(ports::best_orders(network, t.ends, t.flows(), 2, Ints{0, 1})[0].seconds == 0.0);
    t.back[0] = 1;
    CHECK(std::isinf(ports::phase_times(network, t.ends, t.flows())[0].seconds));
    CHECK(std::isinf(ports::best_orders(network, t.ends, t.flows(), 2, Ints{0, 1})[0].seconds));
}

TEST(nothing_passes_a_port_of_no_speed) {
    Network c = pair();
    c.speeds[0] = 0.0;
    const ports::PortNetwork network(c.params());
    const Traffic t{{1, 1}, {0}, {1}, {1}, {0}};
    const auto times = ports::phase_times(network, t.ends, t.flows());
    CHECK(std::isinf(times[0].seconds) && times[0].slowest == 0);
    CHECK(times[1].seconds == 0.0 && times[1].slowest == ports::kNone);
}

TEST(refuses_bad_networks) {
    CHECK(ports::PortNetwork(pair().params()).num_ports() == 3);
    CHECK(ports::PortNetwork(Network{}.params()).num_vertices() == 0);
    Network c = pair();
    c.speeds[1] = std::nan("");
    refuses_network(c, "gb_per_s[1] = nan: not a finite number of 0 or above");
    c.speeds[1] = std::numeric_limits<double>::infinity();
    refuses_network(c, "gb_per_s[1] = inf");
    c.speeds[1] = -1;
    refuses_network(c, "gb_per_s[1] = -1");
    c = pair();
    c.entry[1] = 3;
    refuses_network(c, "entry[1] = 3: out of range");
    c = pair();
    c.access = {0};
    refuses_network(c, "access has 1 entries, not 2");
    c.access = {0, 3};
    refuses_network(c, "access[1] = 3: out of range");
    c = pair();
    c.entry.push_back(0);
    refuses_network(c, "entry has 3 entries, not 2");
    c = pair();
    c.segment_of[1] = 1;
    refuses_network(c, "segment_of[1] = 1: out of range");
    c = pair();
    c.uplink[2] = -2;
    refuses_network(c, "uplink[2] = -2: out of range");
    c = pair();
    c.domain.pop_back();
    refuses_network(c, "domain has 3 entries, not 4");
    c = pair();
    c.links = {1, 0, 0};
    c.is_slower = {0};
    refuses_network(c, "links[0] = 1, 0: pairs are ascending and sorted");
    c.links = {0, 1, 0, 0, 1, 0};
    c.is_slower = {0, 0};
    refuses_network(c, "links[1] = 0, 1: pairs");
    c.links = {0, 1, 0, 0, 1, 5};
    refuses_network(c, "links[1] = 5: out of range");
    c.links.pop_back();
    refuses_network(c, "links has 5 entries, not 6");
}

TEST(refuses_bad_flows) {
    const Network c = pair();
    const ports::PortNetwork network(c.params());
    const Traffic good{{1}, {0}, {1}, {1}, {0}};
    const auto refuses_flows = [&](const Traffic& t, const std::string& what) {
        refuses(ports::check(t.ends, t.flows(), network.num_vertices()), what);
        refuses(ports::check(network, t.ends, t.flows(), 2, Ints{0, 1}), what);
    };
    Traffic t = good;
    t.ends = {1, 0};
    refuses_flows(t, "phase_ends[1] = 0: descends");
    t.ends = {};
    refuses_flows(t, "phase_ends ends at 0 of 1 flows");
    t.ends = {2};
    refuses_flows(t, "phase_ends ends at 2 of 1 flows");
    t = good;
    t.to[0] = 2;
    refuses_flows(t, "end[0] = 2: out of range");
    t = good;
    t.there[0] = std::nan("");
    refuses_flows(t, "there[0] = nan");
    t.there[0] = -1;
    refuses_flows(t, "there[0] = -1");
    t = good;
    t.back.clear();
    refuses_flows(t, "differ in length");
    refuses(ports::check(network, good.ends, good.flows(), 2, Ints{0, 1, 0}), "rows of 2");
    refuses(ports::check(network, good.ends, good.flows(), 0, {}), "rows of 0");
    refuses(ports::check(network, good.ends, good.flows(), 2, Ints{0, 1, 1, 9}),
            "sets[1, 1] = 9: out of range");
}
