// What the two searches over targets share: a label for every target reached, and a queue of targets by
// distance.
//
// Two searches towards each other may be linked. Where both have a label, their paths meet; how long the
// shortest path is on which they do limits both.
//
// Dijkstra's algorithm with a binary heap. What is farther than some distance gets no label and no place in
// the queue until nothing nearer is left; then all targets done so far are looked at again. Most searches end
// before. Targets at the distance of the one taken last stand on a stack
// next to the heap, the last first, as many prices are equal. An event is a target or, as ~target or ~hub,
// the rest of a target's neighbours, which stand ready in the order of their distances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "flow/scheduling/assignment/assignment.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

class SearchState {
  public:
    // How a search reached a target.
    struct Label {
        std::int64_t distance = 0;
        std::uint64_t search = 0;  // number of the search that wrote it
        std::int32_t task = kAbsent;
        Route route;
        std::int32_t next_place = kAbsent;  // pulling: where the task would go from here
        bool done = false;
    };
    struct Event {
        std::int64_t distance = 0;
        std::int32_t target = 0;
        bool operator<(const Event& other) const {
            return distance != other.distance ? distance > other.distance : target > other.target;
        }
    };

    void start(std::int32_t num_targets) {
        if (labels_.size() < index(num_targets)) labels_.resize(index(num_targets));
        ++searches_;
        heap_.clear();
        tied_.clear();
        far_.clear();
        near_ = kNear;
        left_out_ = kFar;
        done_.clear();
        reached_ = -kFar;
        limit_ = kFar;
        goal_ = kAbsent;
        opposite_ = nullptr;
        meeting_ = {.distance = kFar, .target = kAbsent};
    }
    // Links two searches that go towards each other, the second of which has no labels yet.
    void link(SearchState& opposite) {
        opposite_ = &opposite;
        opposite.opposite_ = this;
    }

    const Label& label(std::int32_t target) const {
        TOPOPLACE_ASSERT(labels_[index(target)].search == searches_);
        return labels_[index(target)];
    }
    bool is_labelled(std::int32_t target) const { return labels_[index(target)].search == searches_; }
    // True if this search has already been at the target at no greater distance.
    bool is_labelled(std::int32_t target, std::int64_t distance) const {
        const Label& label = labels_[index(target)];
        return label.search == searches_ && label.distance <= distance;
    }
    Label& set_label(std::int32_t target, std::int64_t distance, const Label& from) {
        TOPOPLACE_ASSERT(!is_labelled(target, distance));
        TOPOPLACE_ASSERT(distance >= reached_);
        TOPOPLACE_ASSERT(!from.done);
        Label& label = labels_[index(target)];
        TOPOPLACE_ASSERT(label.search != searches_ || !label.done);
        label = from;
        label.search = searches_;
        label.distance = distance;
        if (opposite_ != nullptr && opposite_->is_labelled(target)) {
            const Event at{.distance = distance + opposite_->label(target).distance, .target = target};
            meet(at);
            opposite_->meet(at);
        }
        return label;
    }

    void push(std::int64_t distance, std::int32_t event) {
        TOPOPLACE_ASSERT(distance >= reached_);
        const Event added{.distance = distance, .target = event};
        if (distance == reached_) {
            tied_.push_back(added);
        } else if (distance > near_) {
            far_.push_back(added);
        } else {
            heap_.push_back(added);
            std::push_heap(heap_.begin(), heap_.end());
        }
    }
    // The next event nearer than the limit; nothing if there is none, or not before `look_farther`.
    std::optional<Event> pop() {
        if (limit_ <= reached_) return std::nullopt;
        Event event;
        if (!tied_.empty()) {
            event = tied_.back();
            tied_.pop_back();
        } else {
            if (heap_.empty()) return std::nullopt;
            event = heap_.front();
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.pop_back();
            TOPOPLACE_ASSERT(event.distance >= reached_);
            reached_ = event.distance;
        }
        return event.distance < limit_ ? std::optional(event) : std::nullopt;
    }
    // False if the target was taken before, or has come nearer since it was pushed.
    bool finish(const Event& event) {
        Label& label = labels_[index(event.target)];
        TOPOPLACE_ASSERT(label.search == searches_ && label.distance <= event.distance);
        if (label.done || label.distance != event.distance) return false;
        label.done = true;
        done_.push_back(event.target);
        return true;
    }

    // A goal at this distance: nothing farther is of interest.
    void set_goal(std::int32_t target, std::int64_t distance) {
        TOPOPLACE_ASSERT(distance <= limit_);
        limit_ = distance;
        goal_ = target;
    }
    std::int64_t limit() const { return limit_; }
    std::int64_t reached() const { return reached_; }  // distance of the event taken last
    // Everything nearer than this is done.
    std::int64_t radius() const { return std::min(std::max(reached_, std::int64_t{0}), limit_); }
    // Absent: there is none, or the paths of the two searches meet before it.
    std::int32_t goal() const { return goal_; }
    // The target at which the two searches meet on the shortest path known, and the length of that path.
    const Event& meeting() const { return meeting_; }
    // True if nothing is nearer than the meeting.
    bool is_meeting() const { return meeting_.target >= 0 && limit_ == meeting_.distance && goal_ < 0; }
    const std::vector<std::int32_t>& done() const { return done_; }

    // False for what is not worth a label: it is not nearer than the limit, or too far for now.
    bool takes(std::int64_t distance) {
        if (distance <= near_) return distance < limit_;
        leave_out(distance);
        return false;
    }
    // What is farther than this is left out.
    std::int64_t near() const { return near_; }
    void leave_out(std::int64_t distance) { left_out_ = std::min(left_out_, distance); }
    // The least distance not taken.
    std::int64_t left_out() const { return left_out_; }
    // After the last event: true if there is more farther on. What was not taken has to be offered again.
    bool look_farther() {
        const auto nearest = std::max_element(far_.begin(), far_.end());  // by their order in the queue
        const std::int64_t next = std::min(left_out_, nearest == far_.end() ? kFar : nearest->distance);
        if (next >= limit_) return false;
        TOPOPLACE_ASSERT(heap_.empty() && tied_.empty() && next >= reached_);
        reached_ = next;
        widen(next);
        return true;
    }
    // Takes distances up to this one at least.
    void widen(std::int64_t least) {
        near_ = std::max(4 * near_, least);
        left_out_ = kFar;
        const auto rest = std::partition(far_.begin(), far_.end(),
                                         [&](const Event& event) { return event.distance > near_; });
        heap_.insert(heap_.end(), rest, far_.end());
        far_.erase(rest, far_.end());
        std::make_heap(heap_.begin(), heap_.end());
    }

  private:
    static constexpr std::int64_t kNear = 8;

    void meet(const Event& at) {
        if (at.distance < meeting_.distance) meeting_ = at;
        if (at.distance >= limit_) return;
        limit_ = at.distance;
        goal_ = kAbsent;
    }

    std::vector<Label> labels_;  // by target
    std::vector<Event> heap_;
    std::vector<Event> far_;  // farther than near_
    std::int64_t near_ = kNear;
    std::int64_t left_out_ = kFar;
    std::vector<Event> tied_;  // at the distance of the one taken last
    std::vector<std::int32_t> done_;
    std::uint64_t searches_ = 0;
    std::int64_t reached_ = 0;
    std::int64_t limit_ = kFar;
    std::int32_t goal_ = kAbsent;
    SearchState* opposite_ = nullptr;
    Event meeting_;
};

}  // namespace topoplace::flow
