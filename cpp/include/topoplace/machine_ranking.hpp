// The machines of a cluster, ordered by what a rule says of their conditions: the smallest key first, then
// the lowest machine.
//
// A ranking asks for the key of each condition once, and follows the machines from condition to condition
// after that. A query costs as much as conditions share the smallest key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "topoplace/domain_fill.hpp"
#include "topoplace/machine_conditions.hpp"

namespace topoplace {

class MachineRanking {
  public:
    using Key = std::vector<double>;  // compared number by number; none of them is a NaN

    struct Ranked {
        std::int32_t machine = -1;
        std::int32_t condition = -1;
    };

    // The conditions must outlive this object.
    explicit MachineRanking(MachineConditions& conditions) : conditions_(&conditions) {}

    // The conditions that have machines now, but no key yet; call it before each of the queries below.
    std::vector<std::int32_t> unknown();
    bool knows(std::int32_t condition) const {
        return condition >= 0 && condition < static_cast<std::int32_t>(entries_.size());
    }
    // What was set for a condition that it knows; nothing where it has no key.
    const std::optional<Key>& key(std::int32_t condition) const {
        return entries_[static_cast<std::size_t>(condition)].key;
    }
    // Sets what the rule says of a condition: its key, or nothing for machines that cannot take the job.
    void set(std::int32_t condition, std::optional<Key> key);

    // The first machine with at least these CPUs and memory free; kAbsent where there is none.
    Ranked best(const HostAmounts& needs) const;

    // As best(), but among machines whose keys begin with the same `prefix` numbers, those in the fullest
    // domains come first, and then those of the smallest key.
    Ranked best_by_domain(DomainFill& domains, std::size_t prefix, const HostAmounts& needs) const;

    // The first `count` machines with at least these amounts free and no key above `last`, in order.
    std::vector<Ranked> in_order(std::int32_t count, const HostAmounts& needs, const Key& last) const;
    // All machines with at least these amounts free and no key above `last`, ascending.
    std::vector<std::int32_t> up_to(const Key& last, const HostAmounts& needs) const;
    // The number of machines of each key, in order.
    std::vector<std::pair<Key, std::int64_t>> counts() const;

    // The first machine of each of the first `count` conditions that have one; conditions of equal keys are
    // in no order.
    std::vector<Ranked> first(std::int32_t count, const HostAmounts& needs) const;

  private:
    struct Entry {
        bool is_known = false;
        bool is_listed = false;  // in its group, or in unknown_
        std::optional<Key> key;
    };

    void start();
    void follow(std::int32_t condition);
    void remove(std::int32_t condition);
    std::vector<Ranked> lowest_of(const std::vector<std::int32_t>& group, std::size_t count,
                                  const HostAmounts& needs) const;

    MachineConditions* conditions_;
    std::vector<Entry> entries_;                       // by condition
    std::map<Key, std::vector<std::int32_t>> groups_;  // conditions with machines, by key
    std::vector<std::int32_t> unknown_;
    std::uint64_t seen_ = 0;
    std::uint64_t generation_ = 0;
    bool has_started_ = false;
};

}  // namespace topoplace
