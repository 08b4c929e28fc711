// An assignment that is solved, kept while tasks come and go, and repaired.
//
// `solve` assigns each task to its best place if that has room, after estimating prices where many places are
// short (scheduling/start), and inserts the others one by one. Changes put tasks and places on the
// assignment's worklist; `repair` empties it: tasks are inserted, and places with room and a price pull
// tasks. Where many tasks changed, all prices are levelled first.
#pragma once

#include <cstdint>
#include <limits>
#include <memory_resource>
#include <span>
#include <vector>

#include "flow/scheduling/assignment/assignment.hpp"
#include "flow/scheduling/assignment/entrance_index.hpp"
#include "flow/scheduling/assignment/exit_index.hpp"
#include "flow/scheduling/solver/price_leveller.hpp"
#include "flow/scheduling/solver/two_sided_search.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::flow {

class AssignmentSolver {
  public:
    AssignmentSolver() = default;
    // Takes the memory of the assignment from here.
    explicit AssignmentSolver(std::pmr::memory_resource& memory) : assignment_(memory) {}

    // Targets and the first tasks are added here.
    Assignment& assignment() { return assignment_; }
    const Assignment& assignment() const { return assignment_; }

    // Assigns all tasks; false if there is no way for all, `meter` stops, or it takes `most` nodes, or is
    // about to.
    bool solve(WorkMeter& meter, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

    // Changes to a solved assignment; `repair` makes it optimal again.
    std::int32_t add_task(std::span<const Option> options);
    void remove_task(std::int32_t task);
    void set_option_cost(std::int32_t task, std::int32_t option, std::int64_t cost);
    void set_exit_cost(std::int32_t place, std::int64_t cost);
    void set_capacity(std::int32_t place, std::int64_t capacity);
    // False if there is no way for all, or `meter` stops; the next call continues.
    bool repair(WorkMeter& meter);

  private:
    bool short_of_room() const;
    void assign_directly();
    bool crowded() const;
    bool start(bool tight, WorkMeter& meter);
    bool work_off(const std::vector<std::int32_t>& list, WorkMeter& meter, std::uint64_t before,
                  std::uint64_t most);
    bool assign_all(WorkMeter& meter, std::uint64_t most);
    void list_unsettled();
    bool repair_all(WorkMeter& meter);
    bool repair_one(WorkMeter& meter);
    void reconsider_entrances(std::int32_t place);
    void reconsider_all_at(std::int32_t place);
    void restart();

    Assignment assignment_;
    ExitIndex exits_{assignment_};
    EntranceIndex entrances_{assignment_};
    TwoSidedSearch search_{assignment_, exits_, entrances_};
    PriceLeveller leveller_{assignment_, exits_, entrances_};
    std::uint64_t nodes_from_scratch_ = 0;  // that the last `solve` took
};

}  // namespace topoplace::flow
