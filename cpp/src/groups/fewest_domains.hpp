// The fewest domains that take a job, exactly, by dynamic programming over the tree.
//
// What is to be placed below a domain is a state: how many groups of each kind, and how many free tasks,
// which may be anywhere there. For each state, the least value of a domain is found from those of its
// children: the number of domains used at each depth, the top ones first, and then the room of these domains,
// so that the fullest ones are taken. Domains of one kind share their values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "groups/domains.hpp"
#include "groups/fit.hpp"
#include "groups/group_kinds.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::groups {

class FewestDomains {
  public:
    // `work`: the most pairs of states to combine; what is used is taken from it.
    FewestDomains(const Domains& domains, const GroupKinds& kinds, WorkMeter& meter, std::uint64_t& work)
        : domains_(domains), kinds_(kinds), meter_(meter), work_(work) {}

    // Finds the values for what the root has to place. False if that takes too much work, or is stopped.
    bool solve(const Counts& groups, std::int64_t free_tasks);

    // After `solve`: what each child gets of a state that a domain has to place; none if it does not fit.
    std::optional<Division> division(std::int32_t domain, const Counts& groups,
                                     std::int64_t free_tasks) const;

  private:
    using Place = std::uint32_t;              // of a state in its box
    using State = std::vector<std::int32_t>;  // of each kind the number of groups, and last the free tasks

    // The states that may be below domains of one depth.
    struct Box {
        State most{};
        std::vector<Place> stride{};
        std::vector<State> states{};
        std::vector<std::int64_t> tasks{};  // of each state
        std::vector<Place> opened{};        // of each state, its place in the next box
    };

    struct Value {
        std::uint64_t used = 0;  // domains by depth, the top ones in the highest bits
        std::uint64_t room = 0;  // of these domains, the same

        auto operator<=>(const Value&) const = default;
    };

    // The values of a domain, and how it divides what is below it.
    struct Table {
        std::vector<Place> taken{};   // the states that it takes, of the box above, ascending
        std::vector<Value> values{};  // of each of them
        std::vector<Place> below{};   // the states that may be below it, ascending
        std::vector<std::vector<std::uint32_t>>
            choice{};  // [child][state below]: the number of what it takes
    };

    bool make_boxes(const Counts& groups, std::int64_t free_tasks);
    bool fill(Box& box);
    State opened(const State& state, std::int32_t depth) const;
    static Place place_in(const Box& box, const State& state);
    bool weigh();
    Value value_of(std::int32_t domain) const;
    const Table* table_of(std::int32_t domain);
    bool combine(std::int32_t domain, Table& table, std::vector<Value>& best);
    bool add_child(const Box& box, const Table& child, const Table& table, std::vector<Value>& best,
                   std::vector<std::uint32_t>& choice);

    const Domains& domains_;
    const GroupKinds& kinds_;
    WorkMeter& meter_;
    std::uint64_t& work_;
    std::vector<Box> boxes_{};                      // by depth
    std::vector<int> used_shift_{}, room_shift_{};  // by depth; room of depths without bits does not count
    std::map<std::int32_t, Table> tables_{};        // by kind of domain
};

}  // namespace topoplace::groups
