// What collectives send against loops over the rule, and the arguments that are refused.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/job_traffic.hpp"
#include "topoplace/random.hpp"

namespace collective = topoplace::collective;
namespace traffic = topoplace::traffic;
using oracle::Collectives;
using oracle::Fabric;
using oracle::Numbers;
using traffic::Kind;

namespace {

std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

// GB from one vertex to another; and how long the slowest rings take.
struct Expected {
    std::map<std::pair<std::int32_t, std::int32_t>, double> sent{};
    double rings = 0.0;

    void send(std::int32_t from, std::int32_t to, double gigabytes) {
        if (gigabytes > 0.0) sent[{from, to}] += gigabytes;
    }
};

struct Known {
    double gb_per_s = 0.0;
    bool by_ports = false;
};

double channels_of(const Fabric& f, const Numbers& part) {
    const std::size_t machine = at(f.machine[at(part[0])]);
    const auto elsewhere = [&](auto one) { return at(f.machine[at(one)]) != machine; };
    if (f.rates_of[machine] < 0 || std::ranges::any_of(part, elsewhere)) return 0.0;
    Numbers chosen;
    for (const auto one : part) chosen.push_back(f.local[at(one)]);
    std::ranges::sort(chosen);
    return f.rates->gb_per_s(chosen);
}

// How rings among these vertices of one domain run, of which a reduction may be one in the switches.
Known known_of(const Fabric& f, const Numbers& part, bool reduces) {
    const std::int32_t switches = f.switches[at(part[0])];
    double switched = 1e9, reduced = 1e9, most = 1e9;
    bool shares = switches >= 0, has_links = false;
    for (const auto one : part) {
        shares = shares && f.switches[at(one)] == switches;
        has_links = has_links || f.has_links[at(one)] != 0;
        switched = std::min(switched, f.switched[at(one)]);
        reduced = std::min(reduced, f.reduced[at(one)]);
        most = std::min(most, f.most_reduced[at(one)]);
    }
    const auto n = static_cast<double>(part.size());
    if (shares && switched > 0.0) {
        return {reduces ? std::max(switched, std::min(most, 2 * (n - 1) / (n + 1) * reduced)) : switched,
                false};
    }
    const double rate = channels_of(f, part);
    return {rate, rate == 0.0 || (!has_links && !shares)};
}

struct End {
    std::int32_t rail, machine, adapter, in, out;

    auto key() const { return std::tuple(rail, machine, adapter); }
};

struct Part {
    Numbers vertices{};
    Known known{};
    std::vector<End> ends{};
};

// The vertices of a ring that passes ports follow each other by machine and nearness.
Numbers in_order(const Fabric& f, const Part& part) {
    Numbers order = part.vertices;
    if (part.known.by_ports) {
        std::ranges::sort(order, {},
                          [&](auto one) { return std::pair(f.machine[at(one)], f.near[at(one)]); });
    }
    return order;
}

void add_ends(const Fabric& f, Part& part) {
    std::map<std::int32_t, Numbers> users;
    for (const auto one : in_order(f, part)) users[f.adapter[at(one)]].push_back(one);
    for (const auto& [adapter, of] : users) {
        const std::int32_t last = part.known.by_ports ? of.back() : of.front();
        part.ends.push_back({f.rail[at(part.vertices[0])], f.machine[at(of[0])], adapter, of[0], last});
        part.ends.back().rail = f.rail[at(of[0])];
    }
    std::ranges::sort(part.ends, {}, &End::key);
}

std::vector<Part> parts_of(const Fabric& f, const Numbers& vertices, bool reduces) {
    std::vector<Part> parts;
    for (const auto one : vertices) {
        const auto same = [&](const Part& p) { return f.domain[at(p.vertices[0])] == f.domain[at(one)]; };
        if (std::ranges::none_of(parts, same)) parts.emplace_back();
        const auto own =
            std::ranges::find_if(parts, [&](const Part& p) { return p.vertices.empty() || same(p); });
        own->vertices.push_back(one);
    }
    for (Part& part : parts) {
        if (part.vertices.size() > 1) part.known = known_of(f, part.vertices, reduces);
        add_ends(f, part);
    }
    return parts;
}

// Pairs of ends: those of equal rail, in their order, then the others.
std::vector<std::pair<End, End>> paired(std::vector<End> ours, std::vector<End> theirs) {
    std::vector<std::pair<End, End>> found;
    for (std::size_t i = 0; i < ours.size();) {
        const auto same =
            std::ranges::find_if(theirs, [&](const End& one) { return one.rail == ours[i].rail; });
        if (same == theirs.end()) {
            ++i;
            continue;
        }
        found.emplace_back(ours[i], *same);
        ours.erase(ours.begin() + static_cast<std::ptrdiff_t>(i));
        theirs.erase(same);
    }
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        found.emplace_back(ours[i], theirs[i]);
    return found;
}

// The seconds of flows alone; 0 without a path.
double seconds_of(const Fabric& f, const Expected& flows) {
    std::map<std::int32_t, double> loads;
    double longest = 0.0;
    for (const auto& [ends, gigabytes] : flows.sent) {
        Numbers hops;
        if (!f.ports->route(ends.first, ends.second, hops)) return 0.0;
        for (const auto hop : hops)
            longest = std::max(longest, (loads[hop] += gigabytes) / f.ports->gb_per_s(hop / 2));
    }
    return longest;
}

void add_ring_inside(const Fabric& f, const Part& part, double gigabytes, std::size_t channels,
                     Expected& found) {
    const double planned = part.known.gb_per_s > 0.0 ? gigabytes / part.known.gb_per_s : 0.0;
    found.rings = std::max(found.rings, planned);
    if (!part.known.by_ports) return;
    const Numbers order = in_order(f, part);
    Expected ring;
    for (std::size_t i = 0; i < order.size(); ++i) {
        double passed = gigabytes;
        for (std::size_t c = 0; c < channels; ++c) {
            passed -= part.ends[c].out == order[i] ? gigabytes / static_cast<double>(channels) : 0.0;
        }
        if (passed > 1e-12) ring.send(order[i], order[(i + 1) % order.size()], passed);
    }
    const double alone = seconds_of(f, ring);
    const double scale = planned > 0.0 && alone > planned ? planned / alone : 1.0;
    for (const auto& [ends, amount] : ring.sent) found.send(ends.first, ends.second, amount * scale);
}

void add_between(const std::vector<Part>& parts, std::size_t steps, double gigabytes, std::size_t channels,
                 Expected& found) {
    for (std::size_t i = 0; i < steps; ++i) {
        const auto pairs = paired(parts[i].ends, parts[(i + 1) % parts.size()].ends);
        for (std::size_t c = 0; c < channels; ++c) {
            found.send(pairs[c].first.out, pairs[c].second.in, gigabytes / static_cast<double>(channels));
        }
    }
}

void add_ring(const Fabric& f, Kind kind, const Numbers& vertices, double gigabytes, Expected& found) {
    const std::size_t open = kind == Kind::kChain ? 1 : 0;
    const std::vector<Part> parts = parts_of(f, vertices, kind == Kind::kReduce);
    const bool have = std::ranges::all_of(vertices, [&](auto one) { return f.adapter[at(one)] >= 0; });
    if (parts.size() > 1 && !have) {
        for (std::size_t i = 0; i + open < vertices.size(); ++i) {
            found.send(vertices[i], vertices[(i + 1) % vertices.size()], gigabytes);
        }
        return;
    }
    std::size_t channels = parts.size() > 1 ? 1000 : 0;
    for (const Part& part : parts) channels = std::min(channels, part.ends.size());
    for (const Part& part : parts) {
        if (part.vertices.size() > 1) add_ring_inside(f, part, gigabytes, channels, found);
    }
    if (channels > 0) add_between(parts, parts.size() - open, gigabytes, channels, found);
}

// GB from the i-th task of a collective to the j-th of n, by its own route.
double sent_between(const Collectives& job, std::size_t one, std::size_t i, std::size_t j, std::size_t n) {
    const double gigabytes = job.gigabytes[one];
    const auto begin = static_cast<std::size_t>(job.view().begin_of(one));
    switch (static_cast<Kind>(job.kinds[one])) {
        case Kind::kPairs:
            return job.received.empty() || job.received[begin] < 0.0 ? gigabytes / 2
                                                                     : job.received[begin + j];
        case Kind::kSends:
            return i == j + 1 || j == i + 1 ? gigabytes / 2 : 0.0;
        case Kind::kChain:
            return j == i + 1 ? gigabytes : 0.0;
        default:
            return j == (i + 1) % n ? gigabytes : 0.0;
    }
}

void add(const Fabric& f, const Collectives& job, std::size_t one, const Numbers& vertex_of, bool planned,
         Expected& found) {
    const auto kind = static_cast<Kind>(job.kinds[one]);
    Numbers vertices;
    for (auto i = static_cast<std::size_t>(job.view().begin_of(one));
         static_cast<std::int64_t>(i) < job.ends[one]; ++i) {
        vertices.push_back(vertex_of[at(job.tasks[i])]);
    }
    if (kind < Kind::kPairs && planned) return add_ring(f, kind, vertices, job.gigabytes[one], found);
    const std::size_t n = vertices.size();
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            if (i != j) found.send(vertices[i], vertices[j], sent_between(job, one, i, j, n));
        }
    }
}

void check_phase(const traffic::JobFlows& flows, std::size_t phase, const Expected& expected) {
    Expected found;
    const auto end = static_cast<std::size_t>(flows.phase_ends[phase]);
    for (std::size_t i = phase == 0 ? 0 : static_cast<std::size_t>(flows.phase_ends[phase - 1]); i < end;
         ++i) {
        if (flows.there[i] > 1e-12) found.send(flows.from[i], flows.to[i], flows.there[i]);
        if (flows.back[i] > 1e-12) found.send(flows.to[i], flows.from[i], flows.back[i]);
    }
    CHECK(found.sent.size() == expected.sent.size());
    for (const auto& [ends, gigabytes] : expected.sent) {
        CHECK(std::abs(found.sent[ends] - gigabytes) <= 1e-9 * gigabytes);
    }
    CHECK(std::abs(flows.rings[phase].seconds - expected.rings) <= 1e-9 * expected.rings);
    CHECK((flows.rings[phase].collective >= 0) == (expected.rings > 0.0));
}

void refuses(const topoplace::Fault& fault, const std::string& what) {
    const bool says = fault.value_or("").find(what) != std::string::npos;
    if (!says) std::cerr << fault.value_or("nothing") << " does not say " << what << '\n';
    CHECK(says);
}

// Two machines of two vertices with rates, each vertex with an adapter.
Fabric two_machines() {
    topoplace::Random random(3);
    Fabric f = oracle::random_fabric(random, 2, 2);
    while (f.network.n != 4 || f.rates_of[0] < 0) f = oracle::random_fabric(random, 2, 2);
    return f;
}

}  // namespace

TEST(flows_are_those_of_the_rule) {
    topoplace::Random random(41);
    std::int32_t flows_seen = 0, rings_seen = 0;
    for (std::int32_t i = 0; i < check::rounds(3000); ++i) {
        const Fabric f = oracle::random_fabric(random, 1 + random.below(5), 1 + random.below(4));
        Numbers vertex_of = oracle::permutation(random, f.network.n);
        vertex_of.resize(std::min<std::size_t>(vertex_of.size(), 1 + at(random.below(8))));
        const Collectives job =
            oracle::random_collectives(random, static_cast<std::int32_t>(vertex_of.size()));
        const bool planned = random.below(4) != 0;
        const auto flows = traffic::flows_of(*f.made, job.view(), vertex_of, planned);
        CHECK(flows.phase_ends.size() == job.phase_ends.size());
        std::size_t one = 0;
        for (std::size_t phase = 0; phase < job.phase_ends.size(); ++phase) {
            Expected expected;
            for (; static_cast<std::int64_t>(one) < job.phase_ends[phase]; ++one) {
                add(f, job, one, vertex_of, planned, expected);
            }
            check_phase(flows, phase, expected);
            flows_seen += static_cast<std::int32_t>(expected.sent.size());
            rings_seen += expected.rings > 0.0 ? 1 : 0;
        }
    }
    CHECK(flows_seen > check::rounds(3000) && rings_seen > check::rounds(3000) / 10);
}

// By the search itself, under the rules of the lowest class, then under the slower ones.
TEST(rates_of_rings_are_those_of_the_rules) {
    topoplace::Random random(42);
    std::int32_t fast = 0, slow = 0;
    for (std::int32_t i = 0; i < check::rounds(300); ++i) {
        const oracle::RingCase made = oracle::random_rings(random, 5);
        const collective::RingNetwork network = made.network();
        const Numbers class_of{1, 0, 1, 1, 0};
        const std::vector<collective::ChannelRules> rules{{{3000, 2000}, {}}, {{1000}, {}}};
        const std::vector<collective::ChannelRules> slower{{{300}, {}}, {}};
        collective::RingRatesParams params{class_of, rules, slower, {}};
        for (std::size_t level = 0; level < params.per_unit.size(); ++level) {
            params.per_unit[level] = 0.001 * static_cast<double>(level + 1);
        }
        const collective::RingRates rates(network, params);
        Numbers chosen = oracle::permutation(random, 5);
        chosen.resize(at(2 + random.below(4)));
        std::ranges::sort(chosen);
        std::size_t least = 1;
        for (const auto terminal : chosen) least = std::min(least, at(class_of[at(terminal)]));
        double expected = 0.0;
        for (const auto* own : {&rules[least], &slower[least]}) {
            if (expected > 0.0 || own->rates.empty()) continue;
            collective::ChannelParams search = own->params;
            search.rates = own->rates;
            const auto found = collective::best_channels(network, chosen, search);
            expected = static_cast<double>(found.total()) * 0.001 * (found.level + 1);
            (own == &slower[least] ? slow : fast) += found.count > 0 ? 1 : 0;
        }
        CHECK(std::abs(rates.gb_per_s(chosen) - expected) < 1e-12);
        CHECK(rates.gb_per_s(chosen) == rates.gb_per_s(chosen));
    }
    CHECK(fast > 0 && slow > 0);
}

TEST(switches_reduce_for_more_than_a_few) {
    CHECK(std::abs(traffic::reduced_bandwidth(2, 300, 1e9) - 200) < 1e-9);
    CHECK(std::abs(traffic::reduced_bandwidth(8, 300, 450) - 450) < 1e-9);
}

TEST(refuses_networks_that_are_none) {
    const Fabric good = two_machines();
    const auto refused = [&](auto change, const std::string& what) {
        Fabric f = good;
        change(f);
        refuses(traffic::CollectiveNetwork::check(*f.ports, f.params()), what);
    };
    refused([](Fabric& f) { f.machine[1] = 2; }, "machine[1] = 2: out of range");
    refused([](Fabric& f) { f.machine.pop_back(); }, "machine has 3 entries, not 4");
    refused([](Fabric& f) { f.domain[3] = -1; }, "domain[3] = -1: out of range");
    refused([](Fabric& f) { f.adapter[2] = 1000; }, "adapter[2] = 1000: out of range");
    refused([](Fabric& f) { f.local[1] = 0; }, "local[1] = 0: twice on one machine");
    refused([](Fabric& f) { f.local[0] = 64; }, "local[0] = 64: out of range");
    refused([](Fabric& f) { f.rates_of[1] = 1; }, "rates_of[1] = 1: out of range");
    refused([](Fabric& f) { f.switched[3] = std::nan(""); }, "switched[3] = nan: below 0");
    refused([](Fabric& f) { f.reduced[0] = -1; }, "reduced[0] = -1");
    refused([](Fabric& f) { f.has_links.clear(); }, "has_links has 0 entries, not 4");
    const Numbers classes{0, 2};
    refuses(collective::RingRates::check(*good.rings, {classes, good.rules, good.slower, {}}),
            "class_of[1] = 2: there is no such class");
    refuses(collective::RingRates::check(*good.rings, {classes, good.rules, {}, {}}), "no slower rules");
}

TEST(refuses_jobs_that_are_none) {
    const Fabric f = two_machines();
    const auto refused = [&](auto change, const std::string& what) {
        Collectives job;
        Numbers vertex_of{0, 2, 3};
        job.add(Kind::kRing, {0, 1}, 1.0);
        job.add(Kind::kPairs, {1, 2}, 1.0);
        job.end_phase();
        change(job, vertex_of);
        refuses(traffic::check(*f.made, job.view(), vertex_of), what);
    };
    refused([](Collectives& job, Numbers&) { job.phase_ends = {1}; }, "phase_ends ends at 1 of 2");
    refused([](Collectives& job, Numbers&) { job.phase_ends = {2, 1}; }, "phase_ends[1] = 1: descends");
    refused([](Collectives& job, Numbers&) { job.kinds[1] = 5; }, "kinds[1] = 5: there is no such kind");
    refused([](Collectives& job, Numbers&) { job.ends[0] = 1; },
            "ends[0] = 1: a collective of fewer than two");
    refused([](Collectives& job, Numbers&) { job.ends.pop_back(); }, "ends has 1 entries, not 2");
    refused([](Collectives& job, Numbers&) { job.tasks[2] = 3; }, "tasks[2] = 3: out of range");
    refused([](Collectives& job, Numbers&) { job.tasks[3] = 1; }, "tasks[3] = 1: twice in one collective");
    refused([](Collectives& job, Numbers&) { job.gigabytes[0] = -1; }, "gigabytes[0] = -1");
    refused([](Collectives& job, Numbers&) { job.gigabytes.clear(); }, "gigabytes has 0 entries, not 2");
    refused([](Collectives& job, Numbers&) { job.received.pop_back(); }, "received has 3 entries, not 4");
    refused([](Collectives& job, Numbers&) { job.received[2] = 1; }, "received[3] = -1");
    refused([](Collectives& job, Numbers&) { job.received[3] = std::nan(""); }, "received[3] = nan");
    refused([](Collectives&, Numbers& vertex_of) { vertex_of[1] = 4; }, "vertex_of[1] = 4: out of range");
    refused([](Collectives&, Numbers& vertex_of) { vertex_of[2] = 0; }, "vertex_of[2] = 0: of two tasks");
}

TEST(batches_are_joined_in_their_order) {
    const std::vector<std::int64_t> rings{0, 1, 2, 3, 4, 5}, pairs{5, 0};
    const std::vector<double> of_rings{1.0, 2.0}, of_pairs{4.0}, received{3.0, 2.0};
    const std::vector<traffic::Batch> first{{Kind::kRing, 3, rings, of_rings, {}}},
        second{{Kind::kPairs, 2, pairs, of_pairs, received}};
    const auto found = traffic::joined(std::vector<std::vector<traffic::Batch>>{first, {}, second});
    CHECK(found.phase_ends == (std::vector<std::int64_t>{2, 2, 3}));
    CHECK(found.ends == (std::vector<std::int64_t>{3, 6, 8}));
    CHECK(found.batch_ends == (std::vector<std::int64_t>{2, 3}));
    CHECK(found.kinds == (std::vector<std::uint8_t>{1, 1, 3}));
    CHECK(found.tasks == (Numbers{0, 1, 2, 3, 4, 5, 5, 0}));
    CHECK(found.gigabytes == (std::vector<double>{1.0, 2.0, 4.0}));
    CHECK(found.received == (std::vector<double>{-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 3.0, 2.0}));
    CHECK(traffic::joined(std::vector<std::vector<traffic::Batch>>{first}).received.empty());
    CHECK(!traffic::check(found.view(), 6));
}
