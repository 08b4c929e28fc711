// What a search for the best embedding is asked for, and what it returns, in either layout of the target.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "match/scores.hpp"

namespace topoplace::match {

enum class Goal {
    best,   // the best score above the floor, or one that is within the tolerance of it
    any,    // the first embedding found that reaches the floor
    first,  // of those that reach the floor, the lexicographically smallest in the plan's order
};

inline constexpr Fixed kEnough = std::numeric_limits<Fixed>::max();

struct SearchResult {
    bool found = false;
    std::span<const std::int32_t> vertices{};  // images by pattern vertex, until the search runs again
    Fixed score = kNoScore;
    Fixed need = kNoScore;    // what the next embedding has to score to be of use
    Fixed bound = kEnough;    // no embedding that the search was asked for scores more
    bool is_limited = false;  // ended by a limit on nodes
};

}  // namespace topoplace::match
