// Units that are joined by what they exchange, the most first, as far as domains have room for them: which
// exchanges have to cross domains, and on which leaves a search may start.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/gang_exchanges.hpp"

namespace topoplace::decide {

// What two units exchange.
struct UnitPair {
    std::int32_t from = 0, to = 0;
    double gigabytes = 0.0;
};

// What each two units exchange, the most first.
void sort_by_most(std::vector<UnitPair>& pairs);

// The most GB such that wherever units are, two of them are in different domains that exchange so much or
// more; 0 where there may be none. pairs: sorted. rooms: the most units in each domain.
double least_apart(std::span<const UnitPair> pairs, std::int32_t units, std::span<const std::int64_t> rooms);

// The leaf of each unit where those that exchange the most are together, in the fullest domain of the
// innermost level that has room for all; none where all pairs exchange the same, or no such leaves are found.
// room: the most units on each leaf. domains: of each level, the outermost first, the first leaf of each
// domain.
std::vector<std::int32_t> joined_on_leaves(const Exchanges& exchanges, std::int32_t units,
                                           std::span<const std::int32_t> room,
                                           const std::vector<std::vector<std::int32_t>>& domains);

}  // namespace topoplace::decide
