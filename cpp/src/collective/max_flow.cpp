// Maximum flow by blocking flows.
#include "collective/max_flow.hpp"

#include <algorithm>
#include <limits>

#include "graph/index.hpp"

namespace topoplace::collective {

std::int32_t MaxFlow::add(std::int32_t tail, std::int32_t head) {
    const auto arc = static_cast<std::int32_t>(head_.size());
    for (const auto& [from, to] : {std::pair{tail, head}, std::pair{head, tail}}) {
        next_.push_back(first_[index(from)]);
        first_[index(from)] = static_cast<std::int32_t>(head_.size());
        head_.push_back(to);
        residual_.push_back(0);
    }
    return arc;
}

void MaxFlow::reset(std::int32_t arc, std::int64_t capacity) {
    residual_[index(arc)] = capacity;
    residual_[index(arc) + 1] = 0;
}

std::int64_t MaxFlow::run(std::int32_t source, std::int32_t sink, std::int64_t most) {
    std::int64_t flow = 0;
    while (flow < most && find_levels(source, sink)) {
        current_ = first_;
        flow += push(source, sink, most - flow);
    }
    return flow;
}

bool MaxFlow::find_levels(std::int32_t source, std::int32_t sink) {
    level_.assign(first_.size(), -1);
    level_[index(source)] = 0;
    queue_.assign(1, source);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
        const std::int32_t vertex = queue_[i];
        for (std::int32_t arc = first_[index(vertex)]; arc >= 0; arc = next_[index(arc)]) {
            const std::int32_t head = head_[index(arc)];
            if (residual_[index(arc)] == 0 || level_[index(head)] >= 0) continue;
            level_[index(head)] = level_[index(vertex)] + 1;
            if (head == sink) return true;
            queue_.push_back(head);
        }
    }
    return level_[index(sink)] >= 0;
}

// The depth is at most the number of vertices.
std::int64_t MaxFlow::push(std::int32_t vertex, std::int32_t sink, std::int64_t most) {
    if (vertex == sink) return most;
    std::int64_t pushed = 0;
    for (std::int32_t& arc = current_[index(vertex)]; arc >= 0; arc = next_[index(arc)]) {
        const std::int32_t head = head_[index(arc)];
        if (residual_[index(arc)] > 0 && level_[index(head)] == level_[index(vertex)] + 1) {
            const std::int64_t step = push(head, sink, std::min(most - pushed, residual_[index(arc)]));
            residual_[index(arc)] -= step;
            residual_[index(arc ^ 1)] += step;
            pushed += step;
            if (pushed == most) break;  // the arc may have room left
        }
    }
    return pushed;
}

}  // namespace topoplace::collective
