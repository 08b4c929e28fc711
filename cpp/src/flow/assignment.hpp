// Tasks of one unit each on places of limited capacity: what a scheduling graph is once its pass-through
// nodes are taken out, solved by successive shortest paths.
//
// A target is a place or a hub. A place takes up to `capacity` tasks at `exit_cost` each; a hub stands for
// all its member places, each at a distance of its own. A task has options, each a target and a cost. Every
// target has a value: what one more unit there would cost on its way out, for a place its exit cost plus a
// price, for a hub the least of distance plus value over its members. What is kept true between calls:
//
//   1. a price is never negative, and zero at a place that is not full;
//   2. an assigned task is where cost plus value is the least of all its options.
//
// Together they prove that no assignment of these tasks costs less. `insert` assigns one more task along the
// shortest path that displaces others (Dijkstra on reduced costs; Jonker and Volgenant, "A shortest
// augmenting path algorithm for dense and sparse linear assignment problems", Computing 38 (1987)); `settle`
// mends what left: a place that is no longer full lowers its price until tasks come, or until it is zero.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "flow/tournament.hpp"
#include "topoplace/deadline.hpp"

namespace topoplace::flow {

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

class Assignment {
  public:
    struct Task {
        std::int32_t first = 0;  // of its options
        std::int32_t count = 0;
        std::int32_t place = -1;  // where it is, by which option and, through a hub, as which member
        std::int32_t option = -1;
        std::int32_t leaf = -1;
        std::int32_t next = -1;  // at the same place
        std::int32_t previous = -1;
        std::int64_t cost = 0;  // from the task to its place
    };

    // Targets are numbered in the order they are made, tasks too.
    std::int32_t add_place(std::int64_t capacity, std::int64_t exit_cost);
    std::int32_t add_hub(std::span<const Member> members);
    // The first tasks, with room for so many options each, which are then put at their positions.
    void add_tasks(std::span<const std::int32_t> counts);
    void put_option(std::int32_t task, std::int32_t position, const Option& option) {
        options_[index(tasks_[index(task)].first + position)] = option;
        ++places_[index(option.target)].comers;
    }

    // Changes to an assignment that is kept; `mend` makes it optimal again. Numbers of what was removed are
    // used again.
    std::int32_t take_task(std::span<const Option> options);
    void drop_task(std::int32_t task);
    void set_option_cost(std::int32_t task, std::int32_t option, std::int64_t cost);
    void set_exit_cost(std::int32_t place, std::int64_t cost);
    void set_capacity(std::int32_t place, std::int64_t capacity);
    bool drop_place(std::int32_t place);  // false if tasks or hubs name it
    // False if there is no way for all, or `counter` stops; what is left to do is done by the next call.
    bool mend(NodeCounter& counter);
    // The tasks that have moved since the last call, some of them more than once.
    std::vector<std::int32_t> moved() { return std::exchange(moved_, {}); }

    // Assigns all tasks; false if there is no way for all, `counter` stops, or it takes `most` nodes.
    bool solve(NodeCounter& counter, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
    // Whether a place can never fill.
    bool is_exit(std::int32_t place) const {
        const Place& at = places_[index(place)];
        return at.first_membership < 0 && at.comers <= at.capacity;
    }
    bool is_hub(std::int32_t target) const { return hub_of_[index(target)] >= 0; }
    std::int64_t price(std::int32_t place) const { return value(place) - exit_cost(place); }
    std::int32_t num_targets() const { return static_cast<std::int32_t>(places_.size()); }

    std::int64_t value(std::int32_t target) const { return key_[index(target)] >> 1; }
    std::int64_t exit_cost(std::int32_t place) const { return places_[index(place)].exit_cost; }
    const Task& task(std::int32_t task) const { return tasks_[index(task)]; }
    const Option& option(std::int32_t option) const { return options_[index(option)]; }
    std::int32_t num_tasks() const { return static_cast<std::int32_t>(tasks_.size()); }

  private:
    struct Place {
        std::int32_t capacity = 0;  // of a hub: 0
        std::int32_t load = 0;
        std::int32_t comers = 0;  // options that name it
        std::int32_t first_task = -1;
        std::int32_t first_membership = -1;
        std::int64_t exit_cost = 0;
        bool full() const { return load >= capacity; }
    };
    struct Membership {
        std::int32_t hub = 0;  // index in hubs_
        std::int32_t leaf = 0;
        std::int32_t next = -1;
    };
    struct Hub {
        std::int32_t target = 0;
        std::vector<Member> members;
        Tournament best;
        Tournament leaving;  // by task: what it costs the way there, to its exit, once its place is reached
    };
    // How a search came to a target.
    struct Label {
        std::int64_t distance = 0;
        std::uint64_t search = 0;
        std::int32_t task = -1;
        std::int32_t option = -1;
        std::int32_t hub = -1;  // through this hub as the member `leaf`
        std::int32_t leaf = -1;
        std::int32_t place = -1;  // looking for a task: where it would go from here
        bool done = false;
    };
    // An option as its target sees it.
    struct Comer {
        std::int64_t cost = 0;
        std::int32_t task = -1;
        std::int32_t option = -1;
    };
    // A hub that many tasks can choose, and how much each of them would lose by it.
    struct Entrance {
        std::int32_t hub = 0;
        std::vector<std::int64_t> cost;  // by task; kNone where it has no such option
        // By task: twice the cost less the value of where it is, and one more if that place has a price.
        Tournament loss;
    };
    // Where a task would go.
    struct Choice {
        std::int64_t key = kFar;  // twice the cost to the end, one more if the place is full
        std::int32_t place = -1;
        Label label;
    };
    struct Event {
        std::int64_t distance = 0;
        std::int32_t target = 0;  // or ~hub: its next member
        bool operator<(const Event& other) const {
            return distance != other.distance ? distance > other.distance : target > other.target;
        }
    };

    static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
    static std::int64_t key(std::int64_t value, bool full) { return 2 * value + (full ? 1 : 0); }
    void set_value(std::int32_t place, std::int64_t value);

    std::int64_t value_of_task(std::int32_t task) const {
        return tasks_[index(task)].cost + value(tasks_[index(task)].place);
    }
    void seat(std::int32_t task, std::int32_t place, const Label& label);
    void unseat(std::int32_t task);
    std::int64_t room() const;  // of all places of limited capacity
    bool mend_one(NodeCounter& counter);

    // A task looks for a place (assignment.cpp). Inserting is false if there is no way for it, or `counter`
    // stops; it is then left in `unseated_`.
    bool insert(std::int32_t task, NodeCounter& counter);
    bool insert_directly(std::int32_t task);
    Choice best_choice(std::int32_t task) const;
    void start_search();
    bool search(NodeCounter& counter);
    void relax(std::int32_t target, std::int64_t distance, const Label& from);
    void push(std::int64_t distance, std::int32_t event);
    bool pop(Event& event);
    void scan_options(std::int32_t task, std::int64_t base);
    void scan_place(std::int32_t place);
    bool looked_at_tasks(std::int32_t place, NodeCounter& counter);
    void scan_hub(std::int32_t hub);
    void scan_exits(std::int32_t hub);
    void raise_values();
    void augment(std::int32_t root);
    void open_exits();
    void choose_exit(std::int32_t task);
    void refresh_exits(std::int32_t task);
    void forget_exits(std::int32_t task);

    // A place looks for tasks (attract.cpp): lowers its price until one comes or the price is zero.
    void attract(std::int32_t place, NodeCounter& counter);
    bool attract_search(NodeCounter& counter);
    void offer(std::int32_t task, std::int64_t distance, const Label& label);
    void offer_all(std::int32_t target, std::int64_t base, Label& label);
    void offer_place(std::int32_t place);
    void offer_hub(std::int32_t target);
    void lower_values();
    void move_along(std::int32_t root);
    std::int32_t option_for(std::int32_t task, std::int32_t target) const;
    std::int64_t loss_key(std::int32_t task, std::int64_t cost) const {
        const bool priced = price(tasks_[index(task)].place) > 0;
        return 2 * (cost - value_of_task(task)) + (priced ? 1 : 0);
    }
    bool is_wide(std::int32_t target) const;
    void open_entrances();
    void refresh_entrances(std::int32_t task);
    void link(std::int32_t task);
    void unlink(std::int32_t task);

    // All prices at once (estimate.cpp, level.cpp).
    class Estimate;
    void estimate_values(std::int32_t rounds);
    void level();
    std::int64_t common_shift();
    std::int64_t patience(std::int32_t task) const;
    void shift(std::int64_t by);

    // Changes (churn.cpp).
    void unseat_fully(std::int32_t task);
    void reconsider(std::int32_t task);
    void reconsider_comers(std::int32_t place);
    std::int32_t room_for_options(std::size_t count);
    void grow();
    void empty();

    std::vector<Place> places_;  // by target
    // By target: twice the value, and one more if the place, or the best member of the hub, is full.
    std::vector<std::int64_t> key_;
    std::vector<std::int32_t> hub_of_;
    std::vector<Hub> hubs_;
    std::vector<Membership> memberships_;
    std::vector<Task> tasks_;
    std::vector<Option> options_;

    std::uint64_t nodes_from_nothing_ = 0;  // that the last `solve` took

    // Changes under way.
    std::vector<std::int32_t> unseated_;  // tasks to insert
    std::vector<std::int32_t> loose_;     // places to settle
    std::vector<std::int32_t> moved_;
    std::vector<std::int32_t> free_tasks_;
    std::vector<std::int32_t> free_places_;
    std::vector<std::vector<std::int32_t>> free_options_;  // by count: where as many were

    // How each task could leave altogether, made when first needed.
    bool exits_open_ = false;
    bool short_of_room_ = false;      // places of limited capacity cannot take all tasks
    std::vector<std::int32_t> exit_;  // by task: its cheapest option that is an exit; -1: none

    // Who could come to a target: the options that name it, made when first needed.
    bool entrances_open_ = false;
    std::vector<std::vector<Comer>> comers_;  // by target
    std::vector<std::int32_t> position_;      // by option: among the comers of its target
    std::vector<std::int64_t> task_value_;    // by task: of where it is, with its cost; -kFar: nowhere
    std::vector<std::int32_t> entrance_of_;   // by target
    std::vector<Entrance> entrances_;

    // The search under way.
    std::vector<Label> labels_;
    std::vector<Event> heap_;
    std::vector<Event> level_;  // at the distance of the one taken last
    std::vector<std::int32_t> done_;
    std::uint64_t searches_ = 0;
    std::uint64_t looks_ = 0;  // at tasks, since the clock was looked at
    std::int64_t reached_ = 0;
    std::int64_t limit_ = kFar;
    std::int32_t goal_ = -1;
};

}  // namespace topoplace::flow
