// Progressive filling.
#include "ports/fair_rates.hpp"

#include <algorithm>

namespace topoplace::ports {
namespace {

constexpr double kSame = 1 + 1e-12;

std::size_t place_of(Hop hop) { return static_cast<std::size_t>(hop); }

}  // namespace

FairRates::FairRates(const PortNetwork& network)
    : network_(network),
      free_(2 * static_cast<std::size_t>(network.num_ports())),
      waiting_(free_.size()),
      first_(free_.size()) {}

void FairRates::assign(std::span<const std::size_t> active, std::vector<Stream>& streams,
                       std::span<const Hop> hops) {
    gather(active, streams, hops);
    for (const std::size_t one : active) streams[one].held_by = kNone;
    for (const Hop hop : used_) push(hop);
    while (!shares_.empty()) {
        const auto [share, hop] = shares_.top();
        shares_.pop();
        const std::int64_t waiting = waiting_[place_of(hop)];
        if (waiting == 0) continue;
        const double now = free_[place_of(hop)] / static_cast<double>(waiting);
        if (now > share * kSame) {
            push(hop);
            continue;
        }
        // `first_` is where the members of the hop end, by now.
        for (std::size_t i = first_[place_of(hop)]; waiting_[place_of(hop)] > 0; --i) {
            Stream& stream = streams[members_[i - 1]];
            if (stream.held_by == kNone) give(stream, share, hop, hops);
        }
    }
}

// Lists the streams of each hop.
void FairRates::gather(std::span<const std::size_t> active, std::span<const Stream> streams,
                       std::span<const Hop> hops) {
    used_.clear();
    std::size_t total = 0;
    for (const std::size_t one : active) {
        for (const Hop hop : hops.subspan(streams[one].begin, streams[one].end - streams[one].begin)) {
            if (waiting_[place_of(hop)]++ == 0) used_.push_back(hop);
            ++total;
        }
    }
    std::size_t begin = 0;
    for (const Hop hop : used_) {
        free_[place_of(hop)] = network_.gb_per_s(hop / 2);
        first_[place_of(hop)] = begin;
        begin += static_cast<std::size_t>(waiting_[place_of(hop)]);
    }
    members_.resize(total);
    for (const std::size_t one : active) {
        for (const Hop hop : hops.subspan(streams[one].begin, streams[one].end - streams[one].begin)) {
            members_[first_[place_of(hop)]++] = one;
        }
    }
}

void FairRates::push(Hop hop) {
    shares_.emplace(free_[place_of(hop)] / static_cast<double>(waiting_[place_of(hop)]), hop);
}

void FairRates::give(Stream& stream, double rate, Hop hop, std::span<const Hop> hops) {
    stream.rate = rate;
    stream.held_by = hop;
    for (const Hop passed : hops.subspan(stream.begin, stream.end - stream.begin)) {
        free_[place_of(passed)] = std::max(0.0, free_[place_of(passed)] - rate);
        --waiting_[place_of(passed)];
    }
}

}  // namespace topoplace::ports
