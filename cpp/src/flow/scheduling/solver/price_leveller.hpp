// Raises or lowers the prices of all limited places together, until as many tasks want one as there is room.
//
// What each task prefers among these places stays as it is, so that only those move that compare them with
// their exit. Where many tasks come and go this pays, although it scans all tasks: otherwise each of them
// would have to search most places to find how far prices have to move.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/scheduling/assignment/assignment.hpp"
#include "flow/scheduling/assignment/entrance_index.hpp"
#include "flow/scheduling/assignment/exit_index.hpp"

namespace topoplace::flow {

class PriceLeveller {
  public:
    PriceLeveller(Assignment& assignment, ExitIndex& exits, EntranceIndex& entrances)
        : assignment_(assignment), exits_(exits), entrances_(entrances) {}

    // Tasks that change between a limited place and their exit are withdrawn and put on the worklist.
    void level();

  private:
    std::int64_t common_shift() const;
    std::int64_t exit_margin(std::int32_t task) const;

    Assignment& assignment_;
    ExitIndex& exits_;
    EntranceIndex& entrances_;
    std::vector<std::int64_t> margins_;  // by task: exit_margin before the shift
};

}  // namespace topoplace::flow
