// Port networks against the definition: the GB of each hop summed over the routes of all flows, and orders of
// tasks against all permutations.
#include <algorithm>
#include <cmath>
#include <vector>

#include "fuzz.hpp"
#include "oracles/port_cases.hpp"
#include "topoplace/max_min.hpp"
#include "topoplace/port_network.hpp"

namespace {

namespace ports = topoplace::ports;
using Ints = std::vector<std::int32_t>;

constexpr std::int32_t kLevels = 3, kSegments = 2;

struct Case : oracle::NetworkCase {
    Ints from{}, to{};
    std::vector<double> there{}, back{};
    std::vector<std::int64_t> ends{};

    ports::Flows flows() const { return {from, to, there, back}; }
};

Case read_case(fuzz::Bytes& bytes) {
    Case c;
    c.n = 1 + bytes.below(4);
    const std::int32_t number = 1 + bytes.below(6);
    for (std::int32_t i = 0; i < number; ++i) c.speeds.push_back(bytes.below(4));
    c.segment_of = {0, bytes.below(2), 1};
    for (std::int32_t i = 0; i < kSegments * c.n; ++i) c.entry.push_back(bytes.below(number + 1) - 1);
    for (std::int32_t i = 0; i < kLevels * c.n; ++i) {
        c.domain.push_back(bytes.below(3) - 1);
        c.uplink.push_back(bytes.below(number + 1) - 1);
    }
    for (std::int32_t u = 0; u < c.n; ++u) {
        for (std::int32_t v = u + 1; v < c.n; ++v) {
            if (bytes.below(4) != 1) continue;
            c.links.insert(c.links.end(), {u, v, bytes.below(number)});
            c.is_slower.push_back(static_cast<std::uint8_t>(bytes.below(2)));
        }
    }
    for (std::int32_t u = 0, some = bytes.below(2); u < c.n && some > 0; ++u) {
        c.group.push_back(bytes.below(3) - 1);
        c.lane.push_back(bytes.below(2));
    }
    for (std::int32_t phases = bytes.below(3); phases > 0; --phases) {
        for (std::int32_t flows = bytes.below(4); flows > 0; --flows) {
            c.from.push_back(bytes.below(c.n));
            c.to.push_back(bytes.below(c.n));
            c.there.push_back(bytes.below(3));
            c.back.push_back(bytes.below(3));
        }
        c.ends.push_back(static_cast<std::int64_t>(c.from.size()));
    }
    return c;
}

// Seconds of all phases if task i is on the i-th of these vertices.
double seconds_of(const Case& c, const ports::PortNetwork& network, const Ints& vertices) {
    double sum = 0.0;
    std::size_t i = 0;
    for (const std::int64_t end : c.ends) {
        std::vector<double> gigabytes(2 * c.speeds.size(), 0.0);
        double longest = 0.0;
        for (; i < static_cast<std::size_t>(end); ++i) {
            const std::int32_t from = vertices[std::size_t(c.from[i])], to = vertices[std::size_t(c.to[i])];
            std::vector<ports::Hop> there, back;
            if (!network.route(from, to, there) && c.there[i] > 0.0) longest = HUGE_VAL;
            if (!network.route(to, from, back) && c.back[i] > 0.0) longest = HUGE_VAL;
            for (const ports::Hop hop : there) gigabytes[std::size_t(hop)] += c.there[i];
            for (const ports::Hop hop : back) gigabytes[std::size_t(hop)] += c.back[i];
        }
        for (std::size_t hop = 0; hop < gigabytes.size(); ++hop) {
            if (gigabytes[hop] > 0.0) longest = std::max(longest, gigabytes[hop] / c.speeds[hop / 2]);
        }
        sum += longest;
    }
    return sum;
}

// Fair shares take at least as long as the busiest hop, and no longer than all flows one after the other.
void check_fair_shares(const Case& c, const ports::PortNetwork& network, double bound) {
    const ports::SharingJob job{c.ends, c.flows()};
    const auto alone = ports::max_min_times(network, std::vector{job});
    REQUIRE(alone.complete && alone.phases.size() == c.ends.size());
    double sum = 0.0, slowest = HUGE_VAL, gigabytes = 0.0;
    for (const auto& phase : alone.phases) sum += phase.seconds;
    for (const double speed : c.speeds) slowest = speed > 0.0 ? std::min(slowest, speed) : slowest;
    for (std::size_t i = 0; i < c.there.size(); ++i) gigabytes += c.there[i] + c.back[i];
    REQUIRE(sum >= bound * (1 - 1e-9));
    REQUIRE(std::isinf(bound) || sum <= 20 * gigabytes / slowest);  // a route may pass a hop several times
    const auto beside = ports::max_min_times(network, std::vector{job, job});
    for (std::size_t i = 0; i < c.ends.size(); ++i) {
        REQUIRE(std::isinf(alone.phases[i].seconds) == std::isinf(beside.phases[i].seconds));
    }
}

bool are_equal(double one, double other) {
    return one == other || std::abs(one - other) <= 1e-9 * std::max(one, other);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const Case c = read_case(bytes);
    const ports::PortNetwork network(c.params());
    Ints vertices;
    for (std::int32_t v = 0; v < c.n; ++v) vertices.push_back(v);
    const double given = seconds_of(c, network, vertices);
    double sum = 0.0;
    for (const auto& time : ports::phase_times(network, c.ends, c.flows())) sum += time.seconds;
    REQUIRE(are_equal(sum, given));
    check_fair_shares(c, network, given);
    const auto found = ports::best_orders(network, c.ends, c.flows(), c.n, vertices);
    REQUIRE(are_equal(found[0].seconds, seconds_of(c, network, found[0].vertices)));
    double best = given;
    Ints order = vertices;
    do best = std::min(best, seconds_of(c, network, order));
    while (std::ranges::next_permutation(order).found);
    REQUIRE(are_equal(best, found[0].seconds));  // of so few vertices, all orders are tried
    return 0;
}
