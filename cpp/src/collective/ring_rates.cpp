// What channels among sets of terminals carry, each searched once.
#include "topoplace/ring_rates.hpp"

#include <algorithm>
#include <string>

#include "graph/index.hpp"

namespace topoplace::collective {

Fault RingRates::check(const RingNetwork& network, const RingRatesParams& params) {
    const auto& class_of = params.class_of;
    if (class_of.size() != index(network.num_terminals()) || params.rules.size() != params.slower.size())
        return "class_of has not one class for each terminal, or one has no slower rules";
    for (std::size_t i = 0; i < class_of.size(); ++i) {
        if (class_of[i] >= 0 && index(class_of[i]) < params.rules.size()) continue;
        return "class_of[" + std::to_string(i) + "] = " + std::to_string(class_of[i]) +
               ": there is no such class";
    }
    for (const auto* rules : {&params.rules, &params.slower}) {
        for (const ChannelRules& own : *rules) {
            ChannelParams channels = own.params;
            channels.rates = own.rates;
            if (own.rates.empty()) continue;
            if (auto fault = collective::check(channels)) return fault;
        }
    }
    return std::nullopt;
}

RingRates::RingRates(const RingNetwork& network, const RingRatesParams& params)
    : network_(network),
      class_of_(params.class_of.begin(), params.class_of.end()),
      rules_(params.rules),
      slower_(params.slower),
      per_unit_(params.per_unit) {
    TOPOPLACE_ASSERT(!check(network, params));
}

double RingRates::gb_per_s(std::span<const std::int32_t> chosen) const {
    std::uint64_t key = 0;
    for (const std::int32_t one : chosen) key |= std::uint64_t{1} << index(one);
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = kept_.find(key); known != kept_.end()) return known->second;
    }
    const double found = searched(chosen);
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= kMostKept) kept_.clear();
    kept_.emplace(key, found);
    return found;
}

double RingRates::searched(std::span<const std::int32_t> chosen) const {
    std::int32_t least = class_of_[index(chosen.front())];
    for (const std::int32_t one : chosen) least = std::min(least, class_of_[index(one)]);
    for (const auto* rules : {&rules_, &slower_}) {
        const ChannelRules& own = (*rules)[index(least)];
        if (own.rates.empty()) continue;
        ChannelParams params = own.params;
        params.rates = own.rates;
        const Channels found = best_channels(network_, chosen, params);
        if (found.count > 0) return static_cast<double>(found.total()) * per_unit_[index(found.level)];
    }
    return 0.0;
}

}  // namespace topoplace::collective
