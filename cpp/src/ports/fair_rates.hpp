// The max-min fair rates of flows at one moment, by progressive filling.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "topoplace/port_network.hpp"

namespace topoplace::ports {

// One way of a flow.
struct Stream {
    std::size_t begin = 0, end = 0;  // of its hops
    std::size_t phase = 0;
    double gigabytes = 0.0;
    double left = 0.0;    // GB
    double rate = 0.0;    // GB/s
    Hop held_by = kNone;  // the full hop on which no stream has more
};

class FairRates {
  public:
    explicit FairRates(const PortNetwork& network);

    // Sets the rate of each of these streams, which all pass hops of more than 0 GB/s; `hops` has the hops of
    // all.
    void assign(std::span<const std::size_t> active, std::vector<Stream>& streams, std::span<const Hop> hops);

  private:
    using Share = std::pair<double, Hop>;  // what a hop has for each of its streams without a rate

    void gather(std::span<const std::size_t> active, std::span<const Stream> streams,
                std::span<const Hop> hops);
    void push(Hop hop);
    void give(Stream& stream, double rate, Hop hop, std::span<const Hop> hops);

    const PortNetwork& network_;
    std::vector<double> free_;           // GB/s of each hop
    std::vector<std::int64_t> waiting_;  // streams without a rate on each hop
    std::vector<std::size_t> first_;     // place in `members_` of each used hop's streams
    std::vector<Hop> used_;
    std::vector<std::size_t> members_;
    std::priority_queue<Share, std::vector<Share>, std::greater<>> shares_;
};

}  // namespace topoplace::ports
