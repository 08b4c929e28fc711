// A bound on the sums of trees and rings that are spread over machines.
//
// The pieces on the machines are worth what their forms are worth there, and what joins them crosses between
// machines. A form's price stands between both sides: the pattern falls into the pieces that bring the most
// at these prices, whatever room there is, and each machine holds the pieces that are worth the most beyond
// their prices, whatever the pattern. At any prices, no embedding has a larger sum than both sides have
// together (Lagrange relaxation). The price of what the pattern has more of than the machines falls, and that
// of what it has less of rises, until the bound falls no further (subgradients).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "match/graphs/pattern.hpp"
#include "match/graphs/target.hpp"

namespace topoplace::match {

class PieceBound {
  public:
    using Machines = std::vector<std::vector<std::int32_t>>;  // their free vertices
    // Edges between machines.
    struct Crossing {
        Fixed heaviest;  // kNone: there are none
        Fixed lost;      // how much lighter all of the pattern's are together, at least

        static constexpr Fixed kNone = -1;
    };

    // This and all that takes a meter have no value where it stops.
    static std::optional<PieceBound> make(const Pattern::Impl& pattern, const Target::Impl& target,
                                          Machines machines, const Crossing& crossing, WorkMeter& meter);

    // The pattern is no forest and no cycle, or falls into too many different pieces.
    bool empty() const;
    // Changes prices until no embedding can reach `need`, or the bound falls no further.
    [[nodiscard]] bool improve(Fixed need, WorkMeter& meter);
    // No embedding has a larger sum.
    Fixed most() const;
    // No embedding over at least `machines` machines has a larger sum; below 0 if there is none.
    std::optional<Fixed> most_over(std::int32_t machines, WorkMeter& meter);
    // No embedding into these machines, by number, has a larger sum; below 0 where there is none. crossing:
    // between them.
    std::optional<Fixed> most_within(std::span<const std::size_t> machines, const Crossing& crossing,
                                     WorkMeter& meter);

    class Impl;

  private:
    explicit PieceBound(std::shared_ptr<Impl> impl);

    std::shared_ptr<Impl> impl_;
};

}  // namespace topoplace::match
