// Moves the tasks of a hub together: from its cheapest places to those with a price that have room.
//
// All best members of a hub cost its tasks the same, so the tasks may change places as long as prices stay.
// Room is then left only at the cheapest places, and pulling (pull_search.hpp) does not have to cross all the
// others for every place with room.
#pragma once

#include "flow/scheduling/assignment/assignment.hpp"

namespace topoplace::flow {

// Keeps both invariants except that other places may have a price and room.
void pack_hubs(Assignment& assignment);

}  // namespace topoplace::flow
