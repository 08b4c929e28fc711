// The assignment of a scheduling graph that is kept while the network changes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flow/arc_lists.hpp"
#include "flow/structure.hpp"

namespace topoplace::flow {

class KeptAssignment {
  public:
    // What has happened to the network: told after an addition or a change, and before a removal.
    void node_added(std::int32_t node) {
        if (started_) fresh_.push_back(node);
    }
    void node_leaves(const ArcLists& network, std::int32_t node);
    void arc_added(const ArcLists& network, std::int32_t arc);
    void arc_leaves(const ArcLists& network, std::int32_t arc);
    void supply_changed(ArcLists& network, std::int32_t node);
    void capacity_changed(ArcLists& network, std::int32_t arc, std::int64_t before);
    void cost_changed(ArcLists& network, std::int32_t arc);

    // The optimum, from nothing the first time; nothing if the network is no scheduling graph, or is
    // infeasible.
    std::optional<FlowResult> solve(const ArcLists& network, NodeCounter& counter);

  private:
    bool start(const ArcLists& lists);
    void forget() { *this = KeptAssignment{}; }
    bool is_task(std::int32_t node) const {
        const auto i = static_cast<std::size_t>(node);
        return i < task_of_.size() && task_of_[i] >= 0;
    }
    void release(std::int32_t node);  // a task, to be looked at anew
    void count_out(std::int32_t task);
    bool adopt(const ArcLists& network);
    bool adopt_places(const ArcLists& network, std::span<const std::int32_t> fresh);
    bool adopt_place(const ArcLists& network, std::int32_t node);
    bool adopt_task(const ArcLists& network, std::int32_t node);
    void update(const Network& network);

    bool started_ = false;
    bool wider_ = false;  // a place takes more than when it was last seen that all can come there
    Infrastructure infrastructure_;
    Assignment assignment_;
    std::vector<std::int32_t> task_of_;    // by node; -1: no task
    std::vector<std::int32_t> option_of_;  // by arc of a task
    std::vector<std::int32_t> node_of_;    // by task; -1: none
    std::vector<std::int32_t> fresh_;      // nodes to look at
    // The solution last given out, and where each task was in it.
    FlowResult result_;
    std::vector<Way> way_of_;  // by task
    std::int64_t tasks_ = 0;
};

}  // namespace topoplace::flow
