// Channels of the best rate and level, searched in the order of a collective library.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "collective/chosen_routes.hpp"
#include "collective/ring_search.hpp"
#include "graph/index.hpp"
#include "topoplace/ring_packing.hpp"

namespace topoplace::collective {

namespace {

Fault check_positive(std::int64_t value, const std::string& name) {
    if (value >= 1) return std::nullopt;
    return name + " = " + std::to_string(value) + " is not positive";
}

class ChannelSearch {
  public:
    ChannelSearch(const ChosenRoutes& routes, const ChannelParams& params)
        : routes_(routes), params_(params), search_(routes), least_(num_groups() == 2 ? 2 : 1) {}

    Channels run() {
        for (const std::int64_t rate : params_.rates) {
            if (best_.count > 0 && 1000 * rate <= params_.slowest_thousandths * best_.rate) break;
            try_levels(rate);
        }
        if (best_.count > 0) {
            split();
            raise();
        }
        best_.complete = complete_;
        best_.nodes = nodes_;
        return std::move(best_);
    }

  private:
    // Of several terminals each.
    std::int32_t num_groups() const {
        std::array<std::int32_t, RingNetwork::kMaxTerminals> group{};
        std::array<std::int32_t, RingNetwork::kMaxTerminals> members{};
        std::iota(group.begin(), group.end(), 0);
        std::int32_t found = 0;
        for (std::int32_t to = 0; to < routes_.size(); ++to) {
            for (std::int32_t from = 0; from < to; ++from) {
                const auto* hop = routes_.hop(from, to);
                if (hop != nullptr && hop->level <= params_.group_level) {
                    group[index(to)] = group[index(from)];
                }
            }
            if (++members[index(group[index(to)])] == 2) ++found;
        }
        return found;
    }
    // From the nearest level up to the one at which something was found.
    void try_levels(std::int64_t rate) {
        for (std::int32_t level = 0; level <= RingNetwork::kMaxLevel; ++level) {
            if ((routes_.levels() >> level & 1U) == 0) continue;
            if (best_.count > 0 && level > best_.level) break;
            pack(rate, level, std::max(best_.total() / rate + 1, least_));
        }
    }
    // Looks for at least `at_least` channels of this rate, which then replace the best ones; false if there
    // are fewer.
    bool pack(std::int64_t rate, std::int32_t level, std::int64_t at_least) {
        if (rate > routes_.fastest(level) || rate * at_least > routes_.most(level)) return false;
        const PackParams params{rate, level, params_.max_channels, level >= params_.equal_level,
                                params_.stop};
        if (search_.begin(params, at_least) < at_least) return false;
        RingPacking found = search_.run();
        nodes_ += found.nodes;
        complete_ = complete_ && found.complete;
        if (found.count < at_least) return false;
        best_.count = found.count;
        best_.rate = rate;
        best_.level = level;
        best_.rings = std::move(found.rings);
        return true;
    }
    void split() {
        if (best_.rate < params_.split_rate) return;
        if (best_.rate < params_.whole_rate && best_.count > params_.whole_count) return;
        const std::int32_t count = std::min(2 * best_.count, params_.max_channels);
        const std::int32_t parts = (count + best_.count - 1) / best_.count;
        best_.rate /= parts;
        std::int32_t left = count;
        for (Ring& ring : best_.rings) {
            ring.count = std::min(2 * ring.count, left);
            left -= ring.count;
        }
        std::erase_if(best_.rings, [](const Ring& ring) { return ring.count == 0; });
        best_.count = count;
    }
    // As many channels at the next faster rates, while there are.
    void raise() {
        const auto rates = params_.rates;
        auto rate = std::find_if(rates.begin(), rates.end(), [&](auto r) { return r <= best_.rate; });
        while (rate != rates.begin()) {
            --rate;
            if (!pack(*rate, best_.level, best_.count)) break;
        }
    }

    const ChosenRoutes& routes_;
    const ChannelParams& params_;
    RingSearch search_;
    std::int64_t least_;  // channels
    Channels best_;
    bool complete_ = true;
    std::uint64_t nodes_ = 0;
};

}  // namespace

Fault check(const PackParams& params) {
    if (auto fault = check_positive(params.rate, "rate")) return fault;
    if (auto fault = check_positive(params.max_rings, "max_rings")) return fault;
    if (params.rate <= RingNetwork::kMaxCapacity) return std::nullopt;
    return "rate = " + std::to_string(params.rate) + " is not in 1..2^40";
}

Fault check(const ChannelParams& params) {
    if (auto fault = check_positive(params.max_channels, "max_channels")) return fault;
    std::int64_t before = RingNetwork::kMaxCapacity;
    for (std::size_t i = 0; i < params.rates.size(); ++i) {
        const std::string name = "rates[" + std::to_string(i) + "]";
        if (auto fault = check_positive(params.rates[i], name)) return fault;
        if (params.rates[i] > before)
            return name + " = " + std::to_string(params.rates[i]) + " is above the one before or 2^40";
        before = params.rates[i];
    }
    return std::nullopt;
}

RingPacking pack_rings(const RingNetwork& network, std::span<const std::int32_t> chosen,
                       const PackParams& params) {
    TOPOPLACE_ASSERT(!check(params));
    const ChosenRoutes routes(network, chosen);
    RingSearch search(routes);
    search.begin(params);
    return search.run();
}

Channels best_channels(const RingNetwork& network, std::span<const std::int32_t> chosen,
                       const ChannelParams& params) {
    TOPOPLACE_ASSERT(!check(params));
    return ChannelSearch(ChosenRoutes(network, chosen), params).run();
}

}  // namespace topoplace::collective
