// Tasks of one unit each on places of limited capacity, with prices that prove the assignment optimal: a
// scheduling graph once its pass-through nodes are taken out.
//
// A target is a place or a hub. A place takes up to `capacity` tasks at `exit_cost` each; a hub stands for
// all its member places, each at its own distance. A task has options, each a target and a cost. Every
// target has a value: what one more unit there would cost on its way out. A place's value is its exit cost
// plus its price; a hub's value is the least distance plus value among its members. Two invariants:
//
//   1. a price is never negative, and zero at a place that is not full;
//   2. an assigned task is at an option whose cost plus value is the least of all its options.
//
// Together they prove that no assignment of these tasks costs less. Every operation keeps both, except at the
// tasks and places of the worklist, which the searches empty (solver/assignment_solver.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "flow/scheduling/assignment/tournament.hpp"
#include "graph/index.hpp"
#include "graph/prefetch.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

// Larger than any cost, value or distance; four of them still fit 64 bits.
inline constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;

struct Option {
    std::int64_t cost = 0;
    std::int32_t target = 0;
    std::int32_t arc = 0;  // the caller's number
};

struct Member {
    std::int32_t place = 0;
    std::int64_t distance = 0;
};

// How a task gets to a place: by one of its options and, through a hub, as one of the hub's members.
struct Route {
    std::int32_t option = kAbsent;
    std::int32_t hub = kAbsent;
    std::int32_t leaf = kAbsent;
};

// Is notified of changes to an assignment; the base of indexes over it.
class AssignmentListener {
  public:
    virtual ~AssignmentListener() = default;
    virtual void place_added() {}
    virtual void hub_added() {}
    virtual void exits_changed() {}  // a place ceased to be an exit, or its capacity made it one
    virtual void exit_gained() {}    // a place has become an exit because a task that named it is gone
    virtual void price_changed(std::int32_t /*place*/) {}  // or its exit cost
    virtual void task_assigned(std::int32_t /*task*/) {}
    virtual void task_leaves(std::int32_t /*task*/) {}     // it is still at its place
    virtual void task_withdrawn(std::int32_t /*task*/) {}  // it left, and goes nowhere else at once
};

class Assignment {
  public:
    struct Task {
        std::int32_t first = 0;  // of its options
        std::int32_t count = 0;
        std::int32_t place = kAbsent;  // where it is, by which option and, through a hub, as which member
        std::int32_t option = kAbsent;
        std::int32_t leaf = kAbsent;
        std::int64_t cost = 0;  // from the task to its place
        bool moved = false;     // since `take_moved` was last called

        bool assigned() const { return place >= 0; }
        std::int32_t end() const { return first + count; }
    };
    struct Place {
        std::int32_t capacity = 0;  // of a hub: 0
        std::int32_t load = 0;
        std::int32_t in_degree = 0;  // number of options that name it
        std::int32_t first_task = kAbsent;
        std::int32_t first_membership = kAbsent;
        std::int64_t exit_cost = 0;

        bool full() const { return load >= capacity; }
    };
    struct Membership {
        std::int32_t hub = 0;  // number of the hub, not of its target
        std::int32_t leaf = 0;
        std::int32_t next = kAbsent;
    };
    struct Hub {
        std::int32_t target = 0;
        std::vector<Member> members;
        Tournament best;  // by member: twice its distance, plus the place's key
    };
    // The best place for a task.
    struct Choice {
        std::int64_t key = kFar;  // twice the cost to the end, plus one if the place is full
        std::int32_t place = kAbsent;
        Route route;
    };
    // Tasks and places that the searches still have to visit until the assignment is optimal.
    struct Worklist {
        std::vector<std::int32_t> waiting;    // tasks to insert, the last first; may hold some in vain
        std::vector<std::int32_t> unsettled;  // places whose price may be too high
        bool empty() const { return waiting.empty() && unsettled.empty(); }
    };

    Assignment() = default;
    // Takes the memory of its tables from here.
    explicit Assignment(std::pmr::memory_resource& memory) : memory_(&memory) {}
    Assignment(const Assignment&) = delete;  // listeners hold references to it
    Assignment& operator=(const Assignment&) = delete;

    // At most kMostListeners at a time; one may remove itself while it is notified.
    void add_listener(AssignmentListener& listener);
    void remove_listener(AssignmentListener& listener);

    // Makes room for `count` targets in all.
    void reserve_targets(std::size_t count);
    // Targets are numbered in the order they are added, tasks too. Numbers of removed ones are reused.
    std::int32_t add_place(std::int64_t capacity, std::int64_t exit_cost);
    std::int32_t add_hub(std::span<const Member> members);
    // The first tasks, with their options, one task's after the other's; `ends` tells where each one's end.
    void add_tasks(std::span<const std::int32_t> ends, std::pmr::vector<Option>&& options);
    std::int32_t add_task(std::span<const Option> options);
    void remove_task(std::int32_t task);    // which is not assigned
    bool remove_place(std::int32_t place);  // false if tasks or hubs name it

    // Moves. `assign` and `unassign` leave it to the caller to restore the invariants.
    void assign(std::int32_t task, std::int32_t place, const Route& route);
    void unassign(std::int32_t task);
    // Unassigns a task and puts its place on the worklist.
    void withdraw(std::int32_t task);
    // Withdraws a task and puts it on the worklist if another option has become better.
    void reconsider(std::int32_t task);
    void unassign_all();  // and sets all prices to zero

    // Prices and costs. Each keeps hubs up to date.
    void set_value(std::int32_t place, std::int64_t value);
    void refresh(std::int32_t place);  // after a change of load or capacity, which leaves the value as it is
    // Adds `by` to the price of every limited place.
    void shift_prices(std::int64_t by);
    void set_option_cost(std::int32_t task, std::int32_t option, std::int64_t cost);
    void set_exit_cost(std::int32_t place, std::int64_t cost) { places_[index(place)].exit_cost = cost; }
    void set_capacity(std::int32_t place, std::int64_t capacity);

    // The option of a task with the least cost plus value; no place if it has none.
    Choice best_choice(std::int32_t task) const;
    // True for a place with room for every task that names it, and in no hub.
    bool is_exit(std::int32_t place) const {
        const Place& at = places_[index(place)];
        return at.first_membership < 0 && at.in_degree <= at.capacity;
    }
    bool is_hub(std::int32_t target) const { return hub_of_[index(target)] >= 0; }
    bool is_limited(std::int32_t target) const { return !is_hub(target) && !is_exit(target); }
    // True for a target that a large share of the tasks names.
    bool is_popular(std::int32_t target) const;
    std::int64_t limited_room() const;  // capacity of all limited places

    std::int64_t value(std::int32_t target) const { return key_[index(target)] >> 1; }
    std::int64_t price(std::int32_t place) const { return value(place) - exit_cost(place); }
    std::int64_t exit_cost(std::int32_t place) const { return places_[index(place)].exit_cost; }
    // Cost of an assigned task's way out by the current values.
    std::int64_t current_cost(std::int32_t task) const {
        const Task& of = tasks_[index(task)];
        TOPOPLACE_ASSERT(of.assigned());
        return of.cost + value(of.place);
    }

    const Task& task(std::int32_t task) const { return tasks_[index(task)]; }
    // The tasks of a place: from Place::first_task on; kAbsent after the last.
    std::int32_t next_task(std::int32_t task) const { return next_[index(task)]; }
    // Have a task, and then its options, loaded that are read soon.
    void prefetch(std::int32_t task) const { topoplace::prefetch(tasks_.data() + task); }
    void prefetch_options(std::int32_t task) const {
        const Option* const first = options_.data() + tasks_[index(task)].first;
        topoplace::prefetch(first);
        topoplace::prefetch(first + kCacheLine / sizeof(Option));
    }
    const Option& option(std::int32_t option) const { return options_[index(option)]; }
    std::span<const Option> options_of(const Task& task) const {
        return {options_.data() + task.first, static_cast<std::size_t>(task.count)};
    }
    const Place& place(std::int32_t place) const { return places_[index(place)]; }
    const Membership& membership(std::int32_t membership) const { return memberships_[index(membership)]; }
    std::int32_t hub_of(std::int32_t target) const { return hub_of_[index(target)]; }
    const Hub& hub(std::int32_t hub) const { return hubs_[index(hub)]; }
    Tournament& best_members(std::int32_t hub) { return hubs_[index(hub)].best; }  // to visit them in order
    std::span<const Task> tasks() const { return tasks_; }
    std::span<const Option> options() const { return options_; }
    std::span<const Place> places() const { return places_; }
    std::span<const Hub> hubs() const { return hubs_; }
    std::int32_t num_targets() const { return static_cast<std::int32_t>(places_.size()); }
    std::int32_t num_tasks() const { return static_cast<std::int32_t>(tasks_.size()); }
    // Tasks that were added and not removed.
    std::int64_t num_present_tasks() const {
        return static_cast<std::int64_t>(tasks_.size() - free_tasks_.size());
    }

    Worklist& worklist() { return worklist_; }
    const Worklist& worklist() const { return worklist_; }
    // From here on, the tasks that move are listed.
    void list_moved() {
        lists_moved_ = true;
        moved_.reserve(tasks_.size());
    }
    // Records that the cost or place of a task has changed, if such tasks are listed.
    void mark_moved(std::int32_t task) {
        if (lists_moved_ && !std::exchange(tasks_[index(task)].moved, true)) moved_.push_back(task);
    }
    // Returns the tasks that have moved since the last call; those whose numbers were reused may be there
    // more than once.
    std::vector<std::int32_t> take_moved();

    // Checks both invariants and the links between tasks, places and hubs. Does nothing unless assertions are
    // on; takes one pass over everything.
    void assert_invariants() const;

  private:
    static constexpr std::size_t kMostListeners = 2;

    // Calls `notify` with each listener.
    template <class Notify>
    void notify_all(const Notify& notify) {
        for (AssignmentListener* listener : listeners_) {
            if (listener != nullptr) notify(*listener);
        }
    }
    static std::int64_t key(std::int64_t value, bool full) { return 2 * value + (full ? 1 : 0); }
    void put_option(std::int32_t task, std::int32_t position, const Option& option);
    std::int32_t room_for_options(std::size_t count);
    Tournament best_of(std::span<const Member> members) const;
    void set_key(std::int32_t place, std::int64_t key);
    void rebuild_hubs();
    void assert_place(std::int32_t place, bool settled) const;
    void assert_hub(const Hub& hub) const;
    void assert_task(std::int32_t task, bool waits) const;

    std::pmr::memory_resource* memory_ = std::pmr::get_default_resource();
    std::array<AssignmentListener*, kMostListeners> listeners_{};
    std::pmr::vector<Place> places_{memory_};  // by target
    // By target: twice the value, and one more if the place, or the best member of the hub, is full. A place
    // between two moves of a path may keep the one more until its value changes next.
    std::pmr::vector<std::int64_t> key_{memory_};
    std::pmr::vector<std::int32_t> hub_of_{memory_};  // by target
    std::pmr::vector<Hub> hubs_{memory_};
    std::pmr::vector<Membership> memberships_{memory_};
    std::pmr::vector<Task> tasks_{memory_};
    std::pmr::vector<std::int32_t> next_{memory_};  // by task: at the same place
    std::pmr::vector<std::int32_t> previous_{memory_};
    std::pmr::vector<Option> options_{memory_};

    Worklist worklist_;
    bool lists_moved_ = false;
    std::vector<std::int32_t> moved_;
    std::vector<std::int32_t> free_tasks_;
    std::vector<std::int32_t> free_places_;
    std::vector<std::vector<std::int32_t>> free_options_;  // by count: first of a removed task's options
};

}  // namespace topoplace::flow
