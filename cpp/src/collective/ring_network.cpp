// The links, routes and cuts that rings are packed into, checked.
#include <algorithm>
#include <string>

#include "graph/index.hpp"
#include "topoplace/ring_packing.hpp"

namespace topoplace::collective {

namespace {

std::string wrong(const char* list, std::size_t i, const std::string& what) {
    return std::string(list) + "[" + std::to_string(i) + "] " + what;
}

bool in_range(std::int32_t value, std::size_t size) { return value >= 0 && index(value) < size; }

Fault check_route(const Route& route, std::size_t i, std::int32_t terminals, std::size_t links) {
    const auto size = index(terminals);
    if (!in_range(route.from, size) || !in_range(route.to, size) || route.from == route.to) {
        return wrong("routes", i, "does not join two of " + std::to_string(terminals) + " terminals");
    }
    if (route.relay != kAbsent &&
        (!in_range(route.relay, size) || route.relay == route.from || route.relay == route.to)) {
        return wrong("routes", i, "has the relay " + std::to_string(route.relay) + ", not a third terminal");
    }
    if (route.level < 0 || route.level > RingNetwork::kMaxLevel) {
        return wrong("routes", i, "has the level " + std::to_string(route.level) + ", not one of 0..15");
    }
    if (route.uses.empty()) return wrong("routes", i, "uses no link");
    for (const LinkUse& use : route.uses) {
        if (!in_range(use.link, links) || use.thousandths < 1000 || use.thousandths > 1000000) {
            return wrong("routes", i,
                         "uses " + std::to_string(use.thousandths) + " thousandths of link " +
                             std::to_string(use.link) + ": links are known ones, thousandths 1000..1000000");
        }
    }
    return std::nullopt;
}

bool crosses(const LinkCut& cut, const Route& route) {
    const auto near = [&](std::int32_t terminal) { return (cut.near >> terminal & 1U) != 0; };
    return near(route.from) && !near(route.to);
}

bool meets(const LinkCut& cut, const Route& route) {
    return std::any_of(route.uses.begin(), route.uses.end(), [&](const LinkUse& use) {
        return std::find(cut.links.begin(), cut.links.end(), use.link) != cut.links.end();
    });
}

Fault check_cut(const LinkCut& cut, std::size_t i, std::size_t links, std::span<const Route> routes) {
    for (const std::int32_t link : cut.links) {
        if (!in_range(link, links))
            return wrong("cuts", i, "has link " + std::to_string(link) + ", which is none");
    }
    for (const Route& route : routes) {
        if (!crosses(cut, route) || meets(cut, route)) continue;
        return wrong(
            "cuts", i,
            "is avoided by a route from " + std::to_string(route.from) + " to " + std::to_string(route.to));
    }
    return std::nullopt;
}

}  // namespace

Fault RingNetwork::check(std::int32_t num_terminals, std::span<const std::int64_t> capacities,
                         std::span<const Route> routes, std::span<const LinkCut> cuts) {
    if (num_terminals < 0 || num_terminals > kMaxTerminals)
        return "num_terminals = " + std::to_string(num_terminals) + " is not in 0..64";
    for (std::size_t i = 0; i < capacities.size(); ++i) {
        if (capacities[i] < 0 || capacities[i] > kMaxCapacity)
            return wrong("capacities", i, "= " + std::to_string(capacities[i]) + " is not in 0..2^40");
    }
    for (std::size_t i = 0; i < routes.size(); ++i) {
        if (auto fault = check_route(routes[i], i, num_terminals, capacities.size())) return fault;
    }
    for (std::size_t i = 0; i < cuts.size(); ++i) {
        if (auto fault = check_cut(cuts[i], i, capacities.size(), routes)) return fault;
    }
    return std::nullopt;
}

RingNetwork::RingNetwork(std::int32_t num_terminals, std::vector<std::int64_t> capacities,
                         std::vector<Route> routes, std::vector<LinkCut> cuts)
    : num_terminals_(num_terminals),
      capacities_(std::move(capacities)),
      routes_(std::move(routes)),
      cuts_(std::move(cuts)) {
    TOPOPLACE_ASSERT(!check(num_terminals_, capacities_, routes_, cuts_));
    sort_routes();
    add_cuts_around_terminals();
}

std::span<const Route> RingNetwork::routes(std::int32_t from, std::int32_t to) const {
    const std::size_t pair = index(from * num_terminals_ + to);
    return std::span(routes_).subspan(index(first_[pair]), index(first_[pair + 1] - first_[pair]));
}

std::span<const RingNetwork::Hop> RingNetwork::hops(std::int32_t from, std::int32_t to) const {
    const std::size_t pair = index(from * num_terminals_ + to);
    return std::span(hops_).subspan(index(first_[pair]), index(first_[pair + 1] - first_[pair]));
}

void RingNetwork::sort_routes() {
    const auto pair = [&](const Route& route) { return route.from * num_terminals_ + route.to; };
    std::stable_sort(routes_.begin(), routes_.end(),
                     [&](const Route& a, const Route& b) { return pair(a) < pair(b); });
    first_.assign(index(num_terminals_ * num_terminals_) + 1, 0);
    for (const Route& route : routes_) ++first_[index(pair(route)) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    for (const Route& route : routes_) {
        std::int64_t fastest = kMaxCapacity;
        for (const LinkUse& use : route.uses) {
            fastest = std::min(fastest, capacities_[index(use.link)] * 1000 / use.thousandths);
        }
        hops_.push_back({route.relay, route.level, fastest, route.uses});
    }
}

// Every route out of a terminal uses one of its first links, every route into it one of its last.
void RingNetwork::add_cuts_around_terminals() {
    const std::uint64_t all = num_terminals_ == 0 ? 0 : ~std::uint64_t{0} >> (kMaxTerminals - num_terminals_);
    for (std::int32_t v = 0; v < num_terminals_; ++v) {
        LinkCut out{std::uint64_t{1} << v, {}};
        LinkCut in{all & ~out.near, {}};
        for (const Route& route : routes_) {
            if (route.from == v) out.links.push_back(route.uses.front().link);
            if (route.to == v) in.links.push_back(route.uses.back().link);
        }
        for (LinkCut* cut : {&out, &in}) {
            std::sort(cut->links.begin(), cut->links.end());
            cut->links.erase(std::unique(cut->links.begin(), cut->links.end()), cut->links.end());
            cuts_.push_back(*cut);
        }
    }
}

}  // namespace topoplace::collective
